"""Computes distances between datasets exactly, so that every generated pair is certainly a pair of neighbours.

Finite floats are fractions, so `fractions.Fraction` computes sums of their differences without rounding errors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction

from dpaudit.values import Dataset
from dpaudit.values.content import key

Distance = Fraction | float  # inf if the metric does not define a distance between the two datasets


def absolute(x: Dataset, y: Dataset) -> Distance:
    """Return |x - y|.  Two equal values, such as inf and inf, have distance 0."""
    if key(x) == key(y):
        return Fraction(0)
    if not (_finite(x) and _finite(y)):
        return math.inf
    return abs(Fraction(x) - Fraction(y))


def l1(x: Dataset, y: Dataset) -> Distance:
    """Return the sum of the absolute differences of two vectors of the same length."""
    return sum(map(absolute, x, y), Fraction(0)) if len(x) == len(y) else math.inf


def l2(x: Dataset, y: Dataset) -> Distance:
    """Return the square of the Euclidean distance of two vectors of the same length."""
    return sum((absolute(a, b) ** 2 for a, b in zip(x, y, strict=True)), Fraction(0)) if len(x) == len(y) else math.inf


def linf(x: Dataset, y: Dataset) -> Distance:
    """Return the largest absolute difference of two vectors of the same length."""
    return max(map(absolute, x, y), default=Fraction(0)) if len(x) == len(y) else math.inf


def symmetric(x: Dataset, y: Dataset) -> Distance:
    """Return the number of records that must be added or removed to change one multiset into the other."""
    one, other = _multiset(x), _multiset(y)
    return Fraction((one - other).total() + (other - one).total())


def change_one(x: Dataset, y: Dataset) -> Distance:
    """Return the number of records that must be replaced to change one multiset into the other."""
    return symmetric(x, y) / 2 if len(x) == len(y) else math.inf


def hamming(x: Dataset, y: Dataset) -> Distance:
    """Return the number of places at which two vectors of the same length differ."""
    if len(x) != len(y):
        return math.inf
    return Fraction(sum(key(a) != key(b) for a, b in zip(x, y, strict=True)))


def discrete(x: Dataset, y: Dataset) -> Distance:
    """Return 0 for equal datasets, and 1 for any other two datasets."""
    return Fraction(int(key(x) != key(y)))


def maps(x: Mapping[Hashable, float], y: Mapping[Hashable, float]) -> tuple[int, Distance, Distance, Distance]:
    """Return how many keys differ, and the L1 norm, the squared L2 norm and the maximum of the differences.

    A missing key counts as 0 in the norms, and as a difference even from 0 in the number of keys.
    """
    keys = list(x.keys() | y.keys())
    different = sum(k not in x or k not in y or absolute(x[k], y[k]) != 0 for k in keys)
    ones, others = [x.get(k, 0) for k in keys], [y.get(k, 0) for k in keys]
    return different, l1(ones, others), l2(ones, others), linf(ones, others)


BY_METRIC: Mapping[str, Callable[[Dataset, Dataset], Distance]] = {
    "AbsoluteDistance": absolute,
    "L1Distance": l1,
    "L2Distance": l2,
    "LInfDistance": linf,
    "SymmetricDistance": symmetric,
    "InsertDeleteDistance": symmetric,
    "ChangeOneDistance": change_one,
    "HammingDistance": hamming,
    "DiscreteDistance": discrete,
}
"""Distance functions by the name of OpenDP's metric.  The distance of `L2Distance` is a square.

`symmetric` also serves `InsertDeleteDistance`, because both distances are equal for the generated pairs: these pairs
add or replace records at one end of a list.
"""


def within(metric: str, x: Dataset, y: Dataset, limit: float) -> bool:
    """Return whether the distance of two datasets is at most `limit`."""
    bound = Fraction(limit) ** 2 if metric == "L2Distance" else Fraction(limit)
    return BY_METRIC[metric](x, y) <= bound


def _finite(value: Dataset) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _multiset(records: Dataset) -> Counter[Hashable]:
    return Counter(map(key, records))
