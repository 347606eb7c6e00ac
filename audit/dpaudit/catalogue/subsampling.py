"""Noisy sums of a random sample of the records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.catalogue.promises import Inputs, check_positive
from dpaudit.claims import GaussianDP, TradeoffFunction
from dpaudit.numerics.arrays import Array
from dpaudit.values import Dataset


@dataclass(frozen=True, slots=True)
class _Subsampled:
    sigma: float = 1.0
    rate: float = 0.25

    def __post_init__(self) -> None:
        check_positive("sigma", self.sigma)
        if not 0 < self.rate < 1:
            raise ValueError(f"rate must lie strictly between 0 and 1, got {self.rate}")

    @property
    def claim(self) -> TradeoffFunction:
        return GaussianDP(1 / self.sigma).subsampled(self.rate, relation="add_remove")


@dataclass(frozen=True, slots=True)
class SubsampledGaussian(_Subsampled):
    """Sum of a Poisson sample with rate `rate`, plus N(0, sigma^2): subsampled (1 / sigma)-GDP; records in [-1, 1].

    Bu, Dong, Long & Su 2020, section 3: one step of DP-SGD.
    """

    inputs: ClassVar[Inputs] = {"relation": "add_remove", "size": 10, "bounds": (-1.0, 1.0), "out_of_domain": False}
    private: ClassVar[bool] = True

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = np.asarray(dataset, dtype=np.float64)
        total: Array = (rng.random((n, len(x))) < self.rate) @ x
        return total + rng.normal(0.0, self.sigma, n)


@dataclass(frozen=True, slots=True)
class SubsampledWrongly(_Subsampled):
    """Wrong: a sample of fixed size with one record replaced, accounted as Poisson sampling with one record added.

    Lebeda, Regehr, Kamath & Steinke 2024, "Avoiding pitfalls for privacy accounting of subsampled mechanisms under
    composition", section 5.  Replacing a record in [-1, 1] changes the sum by up to 2, not 1.  The mechanism is
    therefore a subsampled mu-GDP mechanism with mu = 2 / sigma.
    """

    inputs: ClassVar[Inputs] = {"relation": "replace_one", "size": 8, "bounds": (-1.0, 1.0), "out_of_domain": False}
    private: ClassVar[bool] = False

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = np.asarray(dataset, dtype=np.float64)
        order = np.argsort(rng.random((n, len(x))), axis=1)[:, : round(self.rate * len(x))]
        total: Array = x[order].sum(axis=1)
        return total + rng.normal(0.0, self.sigma, n)
