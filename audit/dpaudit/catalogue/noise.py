"""Mechanisms that add noise to a sum, a count or histogram cells.  Stated parameters are exact in real arithmetic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.catalogue.promises import (
    ANSWER,
    RECORDS,
    Builtin,
    GaussianSum,
    Inputs,
    Pure,
    Unit,
    check_positive,
    number,
    with_laplace,
)
from dpaudit.claims import LaplaceDP, PureDP, TradeoffFunction, ZeroConcentratedDP
from dpaudit.numerics import Array
from dpaudit.values import Dataset

_CELLS: Inputs = {"relation": "one_value", "size": 5}
_NAMES: Inputs = {"relation": "add_remove", "size": 10, "whole": True, "bounds": (0, 4), "out_of_domain": False}
_COUNT: Inputs = {**ANSWER, "bounds": (0, 5), "step": 1, "out_of_domain": False}


class Gaussian(GaussianSum, inputs=RECORDS, private=True):
    """Sum plus N(0, sigma^2): mu-GDP with mu = 1 / sigma.  Dong, Roth & Su 2022, Thm 1."""

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        return float(np.sum(dataset)) + rng.normal(0.0, self.sigma, n)


@dataclass(frozen=True)
class _Scaled(Builtin, private=True):
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)


class Laplace(_Scaled, inputs=RECORDS):
    """Sum plus Laplace noise: epsilon-DP with epsilon = 1 / scale.  Dwork, McSherry, Nissim & Smith 2006."""

    @property
    def claim(self) -> TradeoffFunction:
        return LaplaceDP(1 / self.scale)

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        return float(np.sum(dataset)) + rng.laplace(0.0, self.scale, n)


class Geometric(_Scaled, inputs={**RECORDS, "whole": True}):
    """Sum of integers plus the difference of two geometric variables: epsilon-DP with epsilon = 1 / scale.

    Ghosh, Roughgarden & Sundararajan 2012: P[noise = k] proportional to exp(-|k| / scale).
    """

    @property
    def claim(self) -> TradeoffFunction:
        return PureDP(1 / self.scale)

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        stop = -math.expm1(-1 / self.scale)
        return float(np.sum(dataset)) + (rng.geometric(stop, n) - rng.geometric(stop, n)).astype(np.float64)


class DiscreteGaussian(GaussianSum, inputs={**RECORDS, "whole": True}, private=True):
    """Sum of integers plus discrete Gaussian noise: rho-zCDP with rho = 1 / (2 sigma^2).

    Canonne, Kamath & Steinke 2020, Thm 4: P[noise = k] proportional to exp(-k^2 / (2 sigma^2)), cut off at 12 sigma.
    """

    @property
    def claim(self) -> TradeoffFunction:
        return ZeroConcentratedDP(1 / (2 * self.sigma**2))

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        reach = math.ceil(12 * self.sigma) + 1
        noise = np.arange(-reach, reach + 1)
        mass = np.exp(-np.square(noise / self.sigma) / 2)
        return float(np.sum(dataset)) + rng.choice(noise, n, p=mass / mass.sum()).astype(np.float64)


@dataclass(frozen=True)
class Snapping(Pure, inputs=ANSWER, private=True):
    """Clamped number plus Laplace noise, rounded to a coarse grid and clamped again: epsilon-DP, also in floats.

    Mironov 2012, "On significance of the least significant bits for differential privacy", section 5.2.
    """

    bound: float = 100.0

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        scale = (1 + self.bound * 2.0**-49) / self.epsilon
        grid = 2.0 ** math.ceil(math.log2(scale))
        x = float(np.clip(number(dataset), -self.bound, self.bound))
        # The standard exponential distribution is that of -log of a uniform number.
        noise = rng.choice([-1.0, 1.0], n) * scale * rng.standard_exponential(n)
        return np.clip(np.round((x + noise) / grid) * grid, -self.bound, self.bound)


@dataclass(frozen=True)
class TruncatedGeometric(Pure, inputs=_COUNT, private=True):
    """Count in 0..most plus truncated geometric noise, computed with integers only: log(1 + 2^-k)-DP.

    Balcer & Vadhan 2018, "Differential privacy on finite computers", Algorithm GeoSample, with k = ceil(log(2 /
    epsilon)).  The claim, log(1 + 2^-k), is the best parameter; it is .1178 for epsilon = .1.
    """

    most: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.most <= 12 or self._k > 4:
            raise ValueError(
                f"most must be in 1..12 and epsilon > .0367, for 64-bit integers; got {self.most}, {self.epsilon}"
            )

    @property
    def _k(self) -> int:
        return math.ceil(math.log(2 / self.epsilon))

    @property
    def claim(self) -> TradeoffFunction:
        return PureDP(math.log1p(2.0**-self._k))

    def cumulative(self, count: int) -> list[int]:
        """Return P[output <= z] for z = 0..most, as integers; the last integer is the common denominator."""
        k, n, c = self._k, self.most, count
        ticks = 2**k + 1
        whole = (2 ** (k + 1) + 1) * ticks ** (n - 1)
        below = [2 ** (k * (c - z)) * ticks ** (n - c + z) for z in range(c)]
        above = [whole - 2 ** (k * (z - c + 1)) * ticks ** (n - 1 - z + c) for z in range(c, n)]
        return [*below, *above, whole]

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        count = int(number(dataset))
        if not 0 <= count <= self.most:
            raise ValueError(f"the count must be in 0..{self.most}, got {count}")
        cumulative = self.cumulative(count)
        drawn = rng.integers(1, cumulative[-1], n, endpoint=True)
        return np.searchsorted(np.array(cumulative), drawn, side="left").astype(np.float64)


@dataclass(frozen=True)
class LaplaceParallel(Pure, inputs=ANSWER, private=True):
    """`times` noisy copies of one number plus Lap(times / epsilon): epsilon-DP.  Bichsel et al. 2021, Table I."""

    times: int = 20

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        return number(dataset) + rng.laplace(0.0, self.times / self.epsilon, (n, self.times))


class NoisyHistogram1(Pure, inputs=_CELLS, private=True):
    """Each x_i + Lap(1 / epsilon): epsilon-DP, because one cell changes by 1.  Dwork, McSherry, Nissim & Smith 2006."""

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        return with_laplace(dataset, n, rng, 1 / self.epsilon)


class NoisyHistogram2(Pure, inputs=_CELLS, private=False):
    """Wrong: each x_i + Lap(epsilon), (1 / epsilon)-DP; delta(.1) = .993 for epsilon = .1 (Ding et al. 2018, 5.2)."""

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        return with_laplace(dataset, n, rng, self.epsilon)


class PrefixSum(Pure, inputs={"relation": "all_values", "size": 10}, private=False):
    """Wrong if all x_i may change: running sums of x_i + Lap(1 / epsilon), which are (d epsilon)-DP for d queries.

    Bichsel et al. 2021.  delta(.1) = .086 for 10 queries and epsilon = .1.
    """

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        return np.cumsum(with_laplace(dataset, n, rng, 1 / self.epsilon), axis=1)


def _noisy_counts(dataset: Dataset, n: int, rng: np.random.Generator, scale: float) -> tuple[list[str], Array]:
    """Return the nonempty cells, and their counts with noise, (n, cells)."""
    counts = Counter(str(record) for record in dataset)
    names = sorted(counts)
    return names, np.array([counts[name] for name in names]) + rng.laplace(0.0, scale, (n, len(names)))


class MissingCells(Unit, inputs=_NAMES, private=False):
    """Wrong: counts of the nonempty cells plus Lap(1 / epsilon).  The output names these cells; no finite epsilon.

    Korolova, Kenthapadi, Mishra & Ntoulas 2009.  Outputs map each cell to its count.
    """

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Sequence[dict[str, float]]:
        names, noisy = _noisy_counts(dataset, n, rng, 1 / self.epsilon)
        return [dict(zip(names, row, strict=True)) for row in noisy.tolist()]


@dataclass(frozen=True)
class ThresholdRelease(Unit, inputs=_NAMES, private=False):
    """Wrong without a delta: counts of the nonempty cells plus Lap(1 / epsilon), where these sums exceed `threshold`.

    Korolova et al. 2009.  A cell with one record is released with probability delta = e^(-epsilon (threshold - 1)) / 2,
    and an empty cell is never released.
    """

    threshold: float = 4.0

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Sequence[dict[str, float]]:
        names, noisy = _noisy_counts(dataset, n, rng, 1 / self.epsilon)
        return [{name: v for name, v in zip(names, row, strict=True) if v > self.threshold} for row in noisy.tolist()]
