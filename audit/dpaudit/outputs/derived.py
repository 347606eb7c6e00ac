"""Computes columns from features: additional columns with their names, bits of numbers, and scaled columns.

Each kind of column has revealed bugs in published mechanisms: integrality, parity, decimals and small denominators if
the rounding depends on the data; equality and difference of components that share or lack noise; norms, products and
order if noise has the wrong law.  Each column is a fixed function of the features.

`bits` computes the exact exponent and last bits of numbers.  Every finite nonzero float64 is m 2^k with an odd m.  fl(1
+ noise) loses bits of noise near 0 that fl(0 + noise) keeps, so k can reveal the answer: Mironov 2012, "On significance
of the least significant bits for differential privacy"; Haney, Desfontaines, Hartman, Shrestha & Hay 2022, arXiv
2207.13793.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import EXACT, AnyArray, Array, Flags
from dpaudit.values import Feature

_ALONE = 8  # maximum number of features whose individual properties are computed
_PAIRED = 6  # maximum number of features that are compared in pairs
_DECIMALS = 6  # maximum number of decimal places that are detected
_LARGEST_DENOMINATOR = 12


def derived(features: Array) -> Array:
    """Return the additional columns (n, m) that are computed from features (n, d); m depends only on d."""
    if not features.shape[1]:
        return features
    with np.errstate(all="ignore"):
        alone = _alone(features[:, :_ALONE])
        several = [column for _, column in _several(features, [()] * features.shape[1])]
    return np.column_stack([alone, *several]).astype(np.float64, copy=False)


def derived_names(names: Sequence[Feature]) -> list[Feature]:
    """Return the columns that `derived` computes from the given features."""
    if not names:
        return []
    of_several = [name for name, _ in _several(np.zeros((1, len(names))), names)]
    return [(form, name) for name in names[:_ALONE] for form in _OF_ONE] + of_several


def _several(features: Array, names: Sequence[Feature]) -> Iterator[tuple[Feature, AnyArray]]:
    paired = range(min(_PAIRED, features.shape[1]))
    for i, j in itertools.combinations(paired, 2):
        first, second = features[:, i], features[:, j]
        yield ("{} equals {}", names[i], names[j]), (first == second) & np.isfinite(first)
        yield ("{} is above {}", names[i], names[j]), first > second
        yield ("distance of {} and {}", names[i], names[j]), np.abs(first - second)
        yield ("{} times {}", names[i], names[j]), first * second
    if features.shape[1] < 2:
        return
    known = np.where(np.isfinite(features), features, 0.0)
    yield ("sum of all numbers",), known.sum(axis=1)
    yield ("norm of all numbers",), np.sqrt((known**2).sum(axis=1))
    yield ("largest number",), known.max(axis=1)
    yield ("least number",), known.min(axis=1)
    yield ("place of the largest number",), known.argmax(axis=1)
    yield ("place of the least number",), known.argmin(axis=1)
    yield ("number of zeros",), (features == 0).sum(axis=1)
    ordered = np.sort(known, axis=1)
    yield ("number of different numbers",), 1 + (np.diff(ordered, axis=1) > 0).sum(axis=1)
    yield ("number of steps up",), (np.diff(known, axis=1) > 0).sum(axis=1)
    yield ("sum of products of neighbours",), (known[:, 1:] * known[:, :-1]).sum(axis=1)


_OF_ONE = ("{} is a whole number", "{} is odd", "{} is zero", "decimals of {}", "denominator of {}")


def _alone(columns: Array) -> Array:
    """Return the five properties `_OF_ONE` of each of the k columns as an array of shape (n, 5 k)."""
    finite = np.isfinite(columns)
    value = np.where(finite, columns, 0.5)
    whole = finite & (value == np.floor(value))
    odd = whole & (np.abs(value) < EXACT) & (np.mod(value, 2) == 1)
    decimals = np.full(columns.shape, _DECIMALS + 1.0)
    short = finite & _near_multiple(value, 10.0**-_DECIMALS)
    some, least = value[short], decimals[short]
    for digits in range(_DECIMALS, -1, -1):
        least[np.round(some, digits) == some] = digits
    decimals[short] = least
    denominators = np.full(columns.shape, _LARGEST_DENOMINATOR + 1.0)
    small = finite & _near_multiple(value, 1 / math.lcm(*range(1, _LARGEST_DENOMINATOR + 1)))
    some, least = value[small], denominators[small]
    for q in range(_LARGEST_DENOMINATOR, 0, -1):
        multiple = some * q
        near = np.abs(multiple - np.round(multiple)) <= 1e-12 * np.maximum(1.0, np.abs(multiple))
        least[near & (np.abs(multiple) < 1e9)] = q
    denominators[small] = least
    properties = np.stack([whole, odd, columns == 0, decimals, denominators], axis=-1)
    return properties.reshape(len(columns), columns.shape[1] * len(_OF_ONE))


def _near_multiple(value: Array, unit: float) -> Flags:
    """Return whether a number may be a multiple of a unit, by a wide tolerance; False for nearly all others."""
    multiple = value / unit
    distance = np.abs(multiple - np.round(multiple))
    excluded: Flags = distance > 1e-6 + 1e-10 * np.abs(multiple)
    return ~excluded  # also True for a multiple that is too large for a float


PER_NUMBER = 3  # number of feature columns computed from the bits of each number
_ZERO, _NOT_FINITE, _MISSING = 4000.0, 4001.0, 4002.0  # placeholder exponents of zero, of infinities and of NaN
_LOW = 0xFF  # bit mask that selects the last eight bits of an integer


def bits(values: AnyArray | Sequence[int | float]) -> Array:
    """Return three columns with features of the binary representation of numbers; 3 and 3.0 have the same features."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biu":
        unsigned = values.astype(np.int64).view(np.uint64) if values.dtype.kind in "bi" else values.astype(np.uint64)
        low = unsigned & (~unsigned + np.uint64(1))
        zero = unsigned == 0
        with np.errstate(divide="ignore"):
            last = np.where(zero, _ZERO, np.log2(low.astype(np.float64)))
            size = np.abs(values.astype(np.float64))
            first = np.where(zero, _ZERO, np.floor(np.log2(np.where(size > 0, size, 1.0))))
        return np.column_stack([first, last, (unsigned & np.uint64(_LOW)).astype(np.float64)])
    if isinstance(values, np.ndarray):
        return _floats(values.astype(np.float64))
    whole = [i for i, value in enumerate(values) if isinstance(value, int)]
    if not whole:
        return _floats(np.array(values, dtype=np.float64))
    table = _floats(np.array([math.nan if isinstance(value, int) else value for value in values], dtype=np.float64))
    for i in whole:
        value = int(values[i])
        lowest = (value & -value).bit_length() - 1
        table[i] = (value.bit_length() - 1, lowest, value & _LOW) if value else (_ZERO, _ZERO, 0)
    return table


def _floats(values: Array) -> Array:
    finite = np.isfinite(values)
    fraction, exponent = np.frexp(np.where(finite, values, 1.0))
    significand: npt.NDArray[np.int64] = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    zero = significand == 0
    trailing = np.log2(np.where(zero, 1, significand & -significand).astype(np.float64))
    special = np.where(np.isnan(values), _MISSING, np.where(finite, _ZERO, _NOT_FINITE))
    usual = finite & ~zero
    last = exponent - 53 + trailing
    right, left = np.clip(53 - exponent, 0, 62), np.clip(exponent - 53, 0, 8)  # a shift by 8 sets all eight bits to 0
    whole = (significand >> right << left) & _LOW
    whole = np.where(values < 0, -whole & _LOW, whole)  # the two's complement, as in an array of integers
    return np.column_stack(
        [
            np.where(usual, exponent - 1, special),
            np.where(usual, last, special),
            np.where(usual, np.where(last >= 0, whole, significand & _LOW), 0),
        ]
    )


_QUANTILE_ROWS = 5_000  # about the number of rows by which quantiles are estimated, because sorting all takes longer
_REACH = 8.0  # maximum absolute scaled value; clipping prevents a single output from dominating a fit


@dataclass(frozen=True, slots=True)
class Scale:
    """A robust standardisation of columns, fitted to outputs; NaN becomes the median, marked in additional columns."""

    centre: Array  # median of each column; shape (d,)
    spread: Array  # half the distance between the 16 % and 84 % quantiles of each column, > 0; shape (d,)
    missing: npt.NDArray[np.intp]  # indices of the columns that contain NaN in the training outputs

    @classmethod
    def of(cls, outputs: Array) -> Scale:
        """Estimate centre and spread of the columns of (n, d) by finite numbers; ValueError without any."""
        known = np.isfinite(outputs)
        if not known.any():
            raise ValueError("no number is finite")
        complete = known.all(axis=0)
        centre, spread = np.zeros(outputs.shape[1]), np.ones(outputs.shape[1])
        if complete.all():
            return cls(*_middle(outputs), np.zeros(0, dtype=np.intp))
        if complete.any():
            centre[complete], spread[complete] = _middle(outputs[:, complete])
        for j in np.flatnonzero(known.any(axis=0) & ~complete):
            (centre[j],), (spread[j],) = _middle(outputs[known[:, j], j][:, None])
        return cls(centre, spread, np.flatnonzero(np.any(np.isnan(outputs), axis=0)))

    def __call__(self, outputs: Array) -> Array:
        """Return the scaled columns and the indicator columns of n outputs; shape (n, d + len(missing)), all finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.asarray(outputs - self.centre)
            np.divide(scaled, self.spread, out=scaled)
        np.maximum(scaled, -_REACH, out=scaled)
        np.minimum(scaled, _REACH, out=scaled)
        if np.isnan(scaled.sum()):  # all numbers are finite, so the sum is NaN only if one of them is
            scaled[np.isnan(scaled)] = 0.0
        if not len(self.missing):
            return scaled
        return np.hstack([scaled, np.isnan(outputs[:, self.missing]).astype(np.float64)])

    def columns(self, outputs: Array, chosen: npt.NDArray[np.intp]) -> Array:
        """Return `self(outputs)[:, chosen]` for increasing indices, without scaling the other columns."""
        numbers, marks = chosen[chosen < len(self.centre)], chosen[chosen >= len(self.centre)] - len(self.centre)
        some = Scale(self.centre[numbers], self.spread[numbers], np.zeros(0, dtype=np.intp))
        scaled = some(outputs[:, numbers])
        if not len(marks):
            return scaled
        return np.hstack([scaled, np.isnan(outputs[:, self.missing[marks]]).astype(np.float64)])


def _middle(columns: Array) -> tuple[Array, Array]:
    """Return the centre and the spread of each column of a finite array of shape (n, d), where n >= 1."""
    rows = np.array(columns[:: max(1, len(columns) // _QUANTILE_ROWS)].T, order="C")  # a copy
    rows.sort(axis=1)  # faster than the partial sort of `np.quantile`
    quantiles = []  # as `np.quantile` computes them
    with np.errstate(over="ignore"):
        for share in (0.16, 0.5, 0.84):
            place = share * (rows.shape[1] - 1)
            below = int(place)
            weight = place - below
            first, second = rows[:, below], rows[:, min(below + 1, rows.shape[1] - 1)]
            apart = second - first
            quantiles.append(first + apart * weight if weight < 0.5 else second - apart * (1 - weight))
        low, middle, high = quantiles
        half = high / 2 - low / 2
        wide = columns.max(axis=0) / 2 - columns.min(axis=0) / 2
    return middle, np.where(half > 0, half, np.where(wide > 0, wide, 1.0))
