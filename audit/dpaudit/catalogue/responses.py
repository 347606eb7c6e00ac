"""Randomised response: each person's value is randomised before the collection."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.catalogue.promises import Builtin, Inputs, Unit, check_share, number
from dpaudit.claims import PureDP, TradeoffFunction
from dpaudit.numerics import Array, Flags
from dpaudit.values import Dataset

_BIT: Inputs = {"relation": "one_value", "size": 1, "bounds": (0, 1), "whole": True, "out_of_domain": False}


@dataclass(frozen=True)
class _Truth(Builtin, inputs=_BIT, private=True):
    """A mechanism that reports the true bit with probability `truth`."""

    truth: float = 0.5

    def __post_init__(self) -> None:
        check_share("truth", self.truth)


@dataclass(frozen=True)
class Spinner(_Truth):
    """Warner 1965: the true bit with probability `truth`, otherwise its opposite: |log(truth / (1 - truth))|-DP."""

    truth: float = 0.75

    @property
    def claim(self) -> TradeoffFunction:
        return PureDP(abs(math.log(self.truth / (1 - self.truth))))

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        lies = rng.random(n) >= self.truth
        return np.where(lies, 1.0 - number(dataset), number(dataset))


@dataclass(frozen=True)
class SpinnerAndCoin(_Truth):
    """Reports the true bit with probability `truth`, otherwise a fair coin: log((1 + truth) / (1 - truth))-DP.

    Greenberg et al. 1969.  For truth = 1/2, epsilon is log 3, as for the two coins of Dwork & Roth 2014, section 3.2.
    """

    @property
    def claim(self) -> TradeoffFunction:
        return PureDP(math.log1p(self.truth) - math.log1p(-self.truth))

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        return np.where(rng.random(n) < self.truth, number(dataset), rng.integers(0, 2, n)).astype(np.float64)


@dataclass(frozen=True)
class KaryResponse(Unit, inputs={**_BIT, "bounds": (0, 3)}, private=True):
    """Reports one of `k` values; the true value is e^epsilon times as likely as each other value: epsilon-DP.

    Kairouz, Oh & Viswanath 2016, "Extremal mechanisms for local differential privacy", section 4.
    """

    k: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.k >= 2:
            raise ValueError(f"k must be at least 2, got {self.k}")

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        lies = rng.random(n) >= 1 / (1 + (self.k - 1) * math.exp(-self.epsilon))
        return ((number(dataset) + lies * rng.integers(1, self.k, n)) % self.k).astype(np.float64)


def bloom(value: int, bits: int, hashes: int) -> Flags:
    """Return the Bloom filter of a value, (bits,), with `hashes` hash functions."""
    from sklearn.utils import murmurhash3_32  # loads slowly

    filled = np.zeros(bits, dtype=np.bool_)
    filled[[murmurhash3_32(str(value), seed) % bits for seed in range(hashes)]] = True
    return filled


def _reported(filled: Flags, chances: tuple[float, float], n: int, rng: np.random.Generator) -> Array:
    """Return n reports of the filter, (n, bits); chances[b] is the probability that a bit with value b becomes 1."""
    return (rng.random((n, len(filled))) < np.where(filled, chances[1], chances[0])).astype(np.float64)


_WORDS: Inputs = {"relation": "one_value", "size": 1, "bounds": (-10, 10), "whole": True, "out_of_domain": False}


@dataclass(frozen=True, slots=True)
class OneTimeRappor(Builtin, inputs=_WORDS, private=True):
    """Bloom filter with bits kept with probability 1 - f, otherwise fair coins: (2 hashes log((2 - f) / f))-DP.

    Erlingsson, Pihur & Korolova 2014, "RAPPOR", section 3.1.  For f = .95 and 4 hashes, epsilon is .801 for values that
    set no bit in common, and .601 for 0 against 1.
    """

    f: float = 0.95
    bits: int = 20
    hashes: int = 4

    def __post_init__(self) -> None:
        check_share("f", self.f)

    @property
    def claim(self) -> TradeoffFunction:
        return PureDP(2 * self.hashes * math.log((2 - self.f) / self.f))

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        filled = bloom(int(number(dataset)), self.bits, self.hashes)
        return _reported(filled, (self.f / 2, 1 - self.f / 2), n, rng)


@dataclass(frozen=True, slots=True)
class Rappor(Builtin, inputs=_WORDS, private=True):
    """Output of `OneTimeRappor`, randomised again: a bit becomes 1 with probability q if it is 1, and p if it is 0.

    Erlingsson et al. 2014, section 3.2.  For f = .75, p = .45, q = .55 and 4 hashes, epsilon is .400 for values that
    set no bit in common, and .300 for 0 against 1.
    """

    f: float = 0.75
    p: float = 0.45
    q: float = 0.55
    bits: int = 20
    hashes: int = 4

    def __post_init__(self) -> None:
        for name in ("f", "p", "q"):
            check_share(name, getattr(self, name))

    @property
    def chances(self) -> tuple[float, float]:
        """Probabilities that a bit is reported as 1, for unset and for set bits of the Bloom filter."""
        low, high = self.f / 2, 1 - self.f / 2
        return self.p + low * (self.q - self.p), self.p + high * (self.q - self.p)

    @property
    def claim(self) -> TradeoffFunction:
        low, high = self.chances
        return PureDP(self.hashes * abs(math.log(high * (1 - low) / (low * (1 - high)))))

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        return _reported(bloom(int(number(dataset)), self.bits, self.hashes), self.chances, n, rng)
