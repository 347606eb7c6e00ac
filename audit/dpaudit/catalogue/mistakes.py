"""Mechanisms with one mistake each, and their correct controls.  All mistakes occurred in released software.

`LaplaceInverseCdf`, `GaussianBoxMuller` and `GeometricByTrials` are correct in real arithmetic.  `float_bits` detects
the first two, and attacks="auto" uses it only for external programs; the third leaks only with `observe_time`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.catalogue.promises import (
    ANSWER,
    RECORDS,
    Builtin,
    GaussianSum,
    Inputs,
    Unit,
    check_positive,
    check_share,
    number,
    vector,
)
from dpaudit.claims import GaussianDP, TradeoffFunction
from dpaudit.numerics import Array
from dpaudit.values import Dataset

_UNIT: Inputs = {**RECORDS, "bounds": (0.0, 1.0)}
_SAMPLED: Inputs = {**RECORDS, "bounds": (-1.0, 1.0), "out_of_domain": False}
_COUNT: Inputs = {**ANSWER, "bounds": (0, 500), "whole": True, "out_of_domain": False}


class NoisySum(Unit, inputs=_UNIT, private=True):
    """Sum of records clamped to [0, 1], with NaN as 0, plus Lap(1 / epsilon): epsilon-DP for any records.

    The only correct mechanism in this module.  Dwork, McSherry, Nissim & Smith 2006.
    """

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        clamped = np.clip(np.nan_to_num(vector(dataset)), 0.0, 1.0)
        return float(clamped.sum()) + rng.laplace(0.0, 1 / self.epsilon, n)


class NanSurvives(Unit, inputs=_UNIT, private=False):
    """Wrong: like `NoisySum`, but numpy's clip keeps NaN, so the sum may be NaN; no finite epsilon."""

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        return float(np.clip(vector(dataset), 0.0, 1.0).sum()) + rng.laplace(0.0, 1 / self.epsilon, n)


class SensitivityOff(Unit, inputs={"relation": "replace_one", "size": 10, "bounds": (-1.0, 1.0)}, private=False):
    """Wrong: sum of values in [-1, 1] plus Lap(1 / epsilon), under replacement of a record; (2 epsilon)-DP.

    The noise is scaled to the sensitivity to adding or removing a record, which is 1.  Kifer & Machanavajjhala 2011.
    """

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        clamped = np.clip(np.nan_to_num(vector(dataset)), -1.0, 1.0)
        return float(clamped.sum()) + rng.laplace(0.0, 1 / self.epsilon, n)


class BoundsFromData(Unit, inputs=RECORDS, private=False):
    """Wrong: the bounds, which set the scale of the noise, are computed from the records; no finite epsilon."""

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = vector(dataset)
        largest = float(np.abs(x).max()) if len(x) else 0.0
        return float(x.sum()) + largest / self.epsilon * rng.laplace(0.0, 1.0, n)


@dataclass(frozen=True)
class FixedSeed(Unit, inputs=RECORDS, private=False):
    """Wrong: each run creates a generator with the same seed, so the noise is known; no finite epsilon."""

    seed: int = 42

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        noise = np.random.default_rng(self.seed).laplace(0.0, 1 / self.epsilon)
        return np.full(n, float(vector(dataset).sum()) + noise)


class ReusedNoise(Unit, inputs=RECORDS, private=False):
    """Wrong: a sum and a count, each with budget epsilon / 2, share the same noise; no finite epsilon."""

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = vector(dataset)
        noise = rng.laplace(0.0, 2 / self.epsilon, n)
        return np.column_stack([float(x.sum()) + noise, len(x) + noise])


class MeanOfTrueCount(Unit, inputs=_UNIT, private=False):
    """Wrong: mean of m values in [0, 1] plus Lap(1 / (epsilon m)), whose scale reveals m, infinite for m = 0."""

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        clamped = np.clip(np.nan_to_num(vector(dataset)), 0.0, 1.0)
        if not len(clamped):
            return np.zeros(n)
        return float(clamped.mean()) + rng.laplace(0.0, 1 / (self.epsilon * len(clamped)), n)


@dataclass(frozen=True)
class VarianceForDeviation(GaussianSum, inputs=RECORDS, private=False):
    """Wrong if sigma > 1: sum plus noise of variance sigma, not sigma^2; (1 / sqrt(sigma))-GDP, not (1 / sigma)-GDP."""

    sigma: float = 2.0

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        return float(vector(dataset).sum()) + rng.normal(0.0, math.sqrt(self.sigma), n)


@dataclass(frozen=True, slots=True)
class _Subsampled(Builtin):
    sigma: float = 1.0
    rate: float = 0.25

    def __post_init__(self) -> None:
        check_positive("sigma", self.sigma)
        check_share("rate", self.rate)

    @property
    def claim(self) -> TradeoffFunction:
        return GaussianDP(1 / self.sigma).subsampled(self.rate, relation="add_remove")


class SubsampledGaussian(_Subsampled, inputs=_SAMPLED, private=True):
    """Sum of a Poisson sample with rate `rate`, plus N(0, sigma^2): subsampled (1 / sigma)-GDP; records in [-1, 1].

    Bu, Dong, Long & Su 2020, section 3: one step of DP-SGD.
    """

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = np.asarray(dataset, dtype=np.float64)
        total: Array = (rng.random((n, len(x))) < self.rate) @ x
        return total + rng.normal(0.0, self.sigma, n)


class SubsampledWrongly(_Subsampled, inputs={**_SAMPLED, "relation": "replace_one", "size": 8}, private=False):
    """Wrong: a sample of fixed size with one record replaced, accounted as Poisson sampling with one record added.

    Lebeda, Regehr, Kamath & Steinke 2024, "Avoiding pitfalls for privacy accounting of subsampled mechanisms under
    composition", section 5.  The mechanism is a subsampled mu-GDP mechanism with mu = 2 / sigma.
    """

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        x = np.asarray(dataset, dtype=np.float64)
        order = np.argsort(rng.random((n, len(x))), axis=1)[:, : round(self.rate * len(x))]
        total: Array = x[order].sum(axis=1)
        return total + rng.normal(0.0, self.sigma, n)


class LaplaceInverseCdf(Unit, inputs=ANSWER, private=False):
    """Wrong in floats: x + sign(u) b log(1 - 2 |u|), u uniform in [-1/2, 1/2), b = 1 / epsilon; no finite epsilon.

    Mironov 2012, section 3: different x have different sets of reachable outputs.
    """

    leak: ClassVar[str] = "float_bits"

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        u = rng.random(n) - 0.5
        with np.errstate(divide="ignore"):
            noise: Array = np.sign(u) * np.log(1 - 2 * np.abs(u)) / self.epsilon
        return number(dataset) + noise


class GaussianBoxMuller(GaussianSum, inputs=ANSWER, private=False):
    """Wrong in floats: x + sigma sqrt(-2 log u) cos(2 pi v); no finite mu, although mu = 1 / sigma is claimed.

    Jin, McMurtry, Rubinstein & Ohrimenko 2022, "Are we there yet?  Timing and floating-point attacks on differential
    privacy systems", section IV.
    """

    leak: ClassVar[str] = "float_bits"

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        radius = np.sqrt(-2 * np.log(1 - rng.random(n)))
        noise: Array = self.sigma * radius * np.cos(2 * math.pi * rng.random(n))
        return number(dataset) + noise


@dataclass(frozen=True)
class GeometricByTrials(Unit, inputs=_COUNT, private=False):
    """Wrong if running times are observed: a number in 0..most plus geometric noise, sampled by repeated coin tosses.

    The noise has scale most / epsilon, and the time reveals its size, so time and output reveal the number.  Jin et al.
    2022, section V.
    """

    most: int = 500

    leak: ClassVar[str] = "time"

    def __call__(self, dataset: Dataset, rng: np.random.Generator) -> int:
        go_on = math.exp(-self.epsilon / self.most)
        while True:
            size, sign = 0, 1 if rng.random() < 0.5 else -1
            while rng.random() < go_on:
                size += 1
            if size or sign > 0:  # without this condition, zero would have twice its correct probability
                return int(number(dataset)) + sign * size
