"""Private training of a small classifier: correct DP-GD and DP-SGD, and trainings with one mistake each.

A dataset is a `Records` or a mapping with its arguments.  An output holds the releases of all steps: noisy sums of
clipped gradients.  The last two weights are spare; only Dirac records have a gradient there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.catalogue.promises import Builtin, Inputs
from dpaudit.claims import TradeoffFunction
from dpaudit.numerics import Array, Flags
from dpaudit.pairs.pair import Pair
from dpaudit.training.claims import claim
from dpaudit.training.reference import Training
from dpaudit.training.reference.model import FAR, Model, PerExample, Records
from dpaudit.training.reference.trainer import Poisson, Sampling, Shuffled, State, Trainer, streams
from dpaudit.training.views import View, releases, weights
from dpaudit.values import Dataset

SMALL = Model((2, 2), spare=2)
HALF = Poisson(0.5)

EXAMPLES: Mapping[str, Any] = {"features": [[0.5, 0.0], [-0.5, 0.5], [0.0, -1.0], [1.0, 0.5]], "labels": [0, 1, 1, 0]}
"""Four examples that the pairs of these mechanisms share."""


_WIDE = Model((8, 2), spare=2)
_NARROW = Model((1, 2), bias=False, spare=1)
_TWO_PARTS = Shuffled(2)
_TINY = 1e-300  # minimum of a norm that is used as a divisor


def _one_more(fewer: Mapping[str, Any], more: Mapping[str, Any], label: str) -> Inputs:
    """Return inputs with one pair: two datasets, of which the second has one further record."""
    return {
        "relation": "add_remove",
        "generator": lambda rng: Pair(dict(fewer), dict(more), "add_remove", label),
        "most": 1,
    }


def _diracs(sizes: list[float], size: float, label: str) -> Inputs:
    """Return inputs with a pair of Dirac records at spare weight 0, in units of their usual size."""
    fewer, more = ([FAR * value for value in values] for values in (sizes, [*sizes, size]))
    return _one_more({"diracs": [0] * len(fewer), "sizes": fewer}, {"diracs": [0] * len(more), "sizes": more}, label)


_ONE_DIRAC = _one_more(EXAMPLES, {**EXAMPLES, "diracs": [0]}, "one Dirac record")
_REVERSED = _diracs([1.0, -1.0, 1.0], 2.0, "one position reversed")
_FEATURES, _LABELS = [[1.0, 0.0], [-1.0, 0.0]] * 4, [0, 1] * 4
_OUTLIER = _one_more(
    {"features": _FEATURES, "labels": _LABELS},
    {"features": [*_FEATURES, [1000.0, 0.0]], "labels": [*_LABELS, 0]},
    "one large feature",
)


def _clipped(gradients: Array, clip: float) -> Array:
    norms = np.linalg.norm(gradients, axis=-1, keepdims=True)
    return np.asarray(gradients * np.minimum(1.0, clip / np.maximum(norms, _TINY)))


@dataclass(frozen=True, kw_only=True, eq=False)
class DpGd(Trainer, Builtin, inputs=_ONE_DIRAC, private=True):
    """DP-GD: sum of gradients clipped to norm `clip`, plus noise, in each step; (sqrt(steps) / noise_multiplier)-GDP.

    Bassily, Smith & Thakurta 2014; Abadi et al. 2016, Algorithm 1, with full batches.  The default is one step.
    """

    model: Model = SMALL
    noise_multiplier: float = 1.0
    steps: int = 1

    @property
    def view(self) -> View:
        return releases()

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        return Training(self, self.view).sample(dataset, n, rng)

    def check_neighbours(self, d0: Dataset, d1: Dataset, claim: TradeoffFunction) -> None:
        Training(self, self.view).check_neighbours(d0, d1, claim)

    def doubts(self, d0: Dataset, d1: Dataset) -> tuple[str, ...]:
        return Training(self, self.view).doubts(d0, d1)


@dataclass(frozen=True, kw_only=True, eq=False)
class DpSgd(DpGd):
    """DP-SGD, two steps with Poisson batches: subsampled (1 / noise_multiplier)-GDP, composed over the steps.

    Abadi et al. 2016, Algorithm 1; Bu, Dong, Long & Su 2020, section 3.
    """

    steps: int = 2
    sampling: Sampling = HALF


@dataclass(frozen=True, kw_only=True, eq=False)
class UnscaledNoise(DpGd, private=False):
    """Wrong if clip > 1: DP-GD whose noise lacks the factor `clip`; mu is clip / noise_multiplier for one step.

    Tramèr et al. 2022 (arXiv:2202.12219) audited an implementation with miscalibrated noise.  Control: `DpGd`.
    """

    clip: float = 2.0

    def noise(self, state: State) -> Array:
        return np.asarray(super().noise(state) / self.clip)


class ClippedMean(DpGd, private=False):
    """Wrong: DP-GD that clips the mean of n gradients, not each gradient; no better than (2 n / noise_multiplier)-GDP.

    One large gradient can reverse the clipped mean, which then changes by 2 `clip`.  The noise is scaled as for a mean
    of n clipped gradients, with the standard deviation noise_multiplier * clip / n.  Control: `DpGd`.
    """

    def summed(self, gradients: PerExample) -> Array:
        n = np.maximum(gradients.taken.sum(axis=1, keepdims=True), 1.0)
        return np.asarray(n * _clipped(gradients.weighted_sum(gradients.taken) / n, self.clip))


@dataclass(frozen=True, kw_only=True, eq=False)
class TrueBatchSize(DpGd, inputs=_diracs([1.0], -1.0, "one record, and two"), private=False):
    """Wrong: DP-GD that divides the noisy sum by the true number of records, which the scale of the noise reveals.

    Division by the expected batch size is post-processing, but division by the true batch size is not.  Cebere,
    https://github.com/meta-pytorch/opacus/issues/571.  Control: `DpGd`.
    """

    model: Model = _WIDE

    def release(self, gradients: PerExample, state: State) -> Array:
        counts = np.maximum(gradients.taken.sum(axis=1, keepdims=True), 1.0)
        return np.asarray(super().release(gradients, state) / counts)


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentumBeforeNoise(DpGd, private=False):
    """Wrong: DP-GD that adds its noise to the momentum, whose sensitivity is up to clip / (1 - momentum).

    The momentum accumulates exact sums, so every later release contains the record again, while the noise is scaled to
    the sensitivity of one sum.  An output holds the final weights only.  Control: `DpGd`.
    """

    noise_multiplier: float = 10.0
    steps: int = 10
    momentum: float = 0.9

    @property
    def view(self) -> View:
        return weights()

    def release(self, gradients: PerExample, state: State) -> Array:
        before = 0.0 if state.carried is None else self.momentum * state.carried
        state.carried = before + self.summed(gradients)
        return state.carried + self.noise(state)


class SharedNoise(DpGd, private=False):
    """Wrong: DP-GD with the same noise in every layer, which cancels in differences; no finite mu.  Control: `DpGd`."""

    def noise(self, state: State) -> Array:
        noise, spare = super().noise(state), self.model.spare
        noise[:, noise.shape[1] - spare :] = noise[:, :spare]
        return noise


class BatchNorm(DpGd, inputs=_OUTLIER, private=False):
    """Wrong: DP-GD with batch normalisation, through which one record changes the gradients of all records.

    A record with large features moves the mean and standard deviation of the batch, and so all n clipped gradients.
    Control: `DpGd`.
    """

    def gradients(self, weights: Array, records: Records, taken: Flags) -> PerExample:
        x = records.features
        normal = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-3)
        normalised = Records(normal, records.labels, records.diracs, records.sizes)
        return super().gradients(weights, normalised, taken)


class AccumulatedBeforeClipping(DpGd, inputs=_REVERSED, private=False):
    """Wrong: DP-GD that adds gradients of two micro-batches before clipping; mu is 2 / noise_multiplier for one step.

    Gradients at the same position of both micro-batches are added, and only the sums are clipped.  One record can
    reverse the clipped sum of its position, which changes it by 2 `clip`.  Control: `DpGd`.
    """

    def summed(self, gradients: PerExample) -> Array:
        each = gradients.explicit()
        half = (each.shape[1] + 1) // 2
        places = each[:, :half].copy()
        places[:, : each.shape[1] - half] += each[:, half:]
        return np.asarray(_clipped(places, self.clip).sum(axis=1))


class ReusedSeed(DpSgd, inputs=_diracs([], 1.0, "empty, and one Dirac record"), private=False):
    """Wrong: DP-SGD that resets its noise generator to one seed before each step; no finite mu.

    The noise cancels in differences of releases, which show in which batches a record was.  Control: `DpSgd`.
    """

    def noise(self, state: State) -> Array:
        again = State(state.keys, streams(state.keys + np.uint64(1)))
        return super().noise(again)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShuffledAsPoisson(DpSgd, inputs=_diracs([-1.0] * 3, 1.0, "target"), private=False):
    """Wrong: DP-SGD with shuffled batches that claims the amplification of Poisson batches.

    Each record is in exactly one batch of an epoch, so other batches also reveal where the target is.  The clipped
    gradient is +`clip` for the target and -`clip` for all others.  Chua et al. 2024 (arXiv:2403.17673); Annamalai et
    al. 2026 (arXiv:2411.10614).  Control: `DpSgd`.
    """

    model: Model = _NARROW
    noise_multiplier: float = 0.5
    sampling: Sampling = _TWO_PARTS

    @property
    def claim(self) -> TradeoffFunction:
        return claim(
            noise_multiplier=self.noise_multiplier,
            steps=self.steps,
            sampling_rate=self.sampling.rate,
            sampling="shuffled",
            claimed_as="poisson",
        )
