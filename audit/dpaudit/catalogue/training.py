"""Correct private training: DP-GD and DP-SGD of a small classifier, as controls of `catalogue.training_mistakes`.

A dataset is a mapping with the arguments of `Records`, or an instance of `Records`.  An output holds the releases of
all steps.  The release of a step is the noisy sum of clipped gradients.  The last two weights are spare; only Dirac
records have a gradient there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit.catalogue.promises import Inputs
from dpaudit.claims import TradeoffFunction
from dpaudit.numerics.arrays import Array
from dpaudit.pairs.pair import Pair
from dpaudit.training.reference.experiments import Training
from dpaudit.training.reference.model import Model
from dpaudit.training.reference.records import FAR
from dpaudit.training.reference.sampling import Poisson, Sampling
from dpaudit.training.reference.trainer import Trainer
from dpaudit.training.views import View, releases
from dpaudit.values import Dataset

SMALL = Model((2, 2), spare=2)
HALF = Poisson(0.5)

EXAMPLES: Mapping[str, Any] = {
    "features": [[0.5, 0.0], [-0.5, 0.5], [0.0, -1.0], [1.0, 0.5]],
    "labels": [0, 1, 1, 0],
}
"""Four examples that the pairs of these mechanisms share."""


def one_dirac(rng: np.random.Generator) -> Pair:
    """Return a pair of datasets: the examples, and the examples with one Dirac record."""
    return Pair(dict(EXAMPLES), {**EXAMPLES, "diracs": [0]}, "add_remove", "one Dirac record")


def diracs(sizes: list[float], size: float, label: str) -> Pair:
    """Return a pair of datasets: Dirac records at spare weight 0, and the same records with one further record."""
    shared = [FAR * value for value in sizes]
    return Pair(
        {"diracs": [0] * len(shared), "sizes": shared},
        {"diracs": [0] * (len(shared) + 1), "sizes": [*shared, FAR * size]},
        "add_remove",
        label,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class DpGd(Trainer):
    """DP-GD: sum of gradients clipped to norm `clip`, plus noise, in each step; (sqrt(steps) / noise_multiplier)-GDP.

    Bassily, Smith & Thakurta 2014; Abadi et al. 2016, Algorithm 1, with full batches.  The default is one step.
    """

    model: Model = SMALL
    noise_multiplier: float = 1.0
    steps: int = 1

    inputs: ClassVar[Inputs] = {"relation": "add_remove", "generator": one_dirac, "most": 1}
    private: ClassVar[bool] = True

    @property
    def view(self) -> View:
        """The contents of an output."""
        return releases()

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        return Training(self, self.view).sample(dataset, n, rng)

    def check_neighbours(self, d0: Dataset, d1: Dataset, claim: TradeoffFunction) -> None:
        """Raise ValueError if the claim of this training does not cover the pair; see `Training.check_neighbours`."""
        Training(self, self.view).check_neighbours(d0, d1, claim)

    def doubts(self, d0: Dataset, d1: Dataset) -> tuple[str, ...]:
        """Return warnings if two datasets are not neighbours, or if their difference may hardly affect the weights."""
        return Training(self, self.view).doubts(d0, d1)


@dataclass(frozen=True, kw_only=True, eq=False)
class DpSgd(DpGd):
    """DP-SGD, two steps with Poisson batches: subsampled (1 / noise_multiplier)-GDP, composed over the steps.

    Abadi et al. 2016, Algorithm 1; Bu, Dong, Long & Su 2020, section 3.
    """

    steps: int = 2
    sampling: Sampling = HALF
