"""The exponent of the last bit of each number, and the last bits themselves, which noise should hide.

The rounded sum of query and noise is a multiple of the coarsest last bit, so near zero and near powers of two the
datasets reach different floats (Mironov 2012; Haney, Desfontaines, Hartman, Shrestha & Hay 2022, arXiv 2207.13793).
`float_bits` thus refutes every mechanism that adds numpy's noise to a float, although claims often refer to real
arithmetic.  So "auto" uses it and `last_bit` for external programs only.  Of whole numbers, the last bits reveal
counters, addresses and identifiers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics import Array
from dpaudit_attacks.ratios import Labels, averaged_ratios, ratios_of_labels

_DIGITS = 53  # binary digits of a float
_ODD = 3999  # exponents of at least this value represent zero, NaN and similar values


@dataclass(frozen=True, slots=True)
class FloatBits:
    """Likelihood ratios of the last bit's place, absolute and relative to the first bit, and of the last eight bits."""

    name: ClassVar[str] = "float_bits"
    automatic: ClassVar[str] = "released"
    sees: ClassVar[str] = "bits"
    calibrated: ClassVar[bool] = True

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        """Return whether the bits vary, and some number is not an integer that a float represents exactly."""
        rows = np.concatenate([outputs0, outputs1])
        first, last = rows[:, 0::3], rows[:, 1::3]
        exact = (last >= _ODD) | ((last >= 0) & (first < _DIGITS))
        return bool(np.any(rows[:, 1:] != rows[0, 1:])) and not bool(np.all(exact))

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        return ratios_of_labels(_labels, outputs0, outputs1)


def _labels(outputs: Array) -> list[Labels]:
    """Return six labels (n,) for each number of the outputs (n, 3 d)."""
    found: list[Labels] = []
    # the first four numbers of an output are used
    for j in range(min(4, outputs.shape[1] // 3)):
        first, last, low = (outputs[:, 3 * j + k].astype(np.intp) for k in range(3))
        zeros = np.where(last < _ODD, last - first, last)
        at = np.where(last < _ODD, np.clip(first, -8, 8) * 100 + np.clip(last - first, -60, 0), last)
        found += [last, zeros, at, low & 1, low & 7, low]
    return found


@dataclass(frozen=True, slots=True)
class LowBits:
    """Likelihood ratios of the last bits, and of the number of trailing zeros."""

    name: ClassVar[str] = "low_bits"
    sees: ClassVar[str] = "bits"
    calibrated: ClassVar[bool] = True
    from_trials: ClassVar[int] = 100
    most_rows: ClassVar[int] = 50_000

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        """Return whether a number of the outputs is always whole and has varying last bits."""
        return bool(len(_whole(outputs0, outputs1)))

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        whole = _whole(outputs0, outputs1)

        def labels(outputs: Array) -> list[Labels]:
            rows = outputs.astype(np.intp)
            return [
                label
                for j in whole
                for label in (rows[:, 3 * j + 1], rows[:, 3 * j + 2] & 1, rows[:, 3 * j + 2] & 7, rows[:, 3 * j + 2])
            ]

        return ratios_of_labels(labels, outputs0, outputs1)


def _whole(outputs0: Array, outputs1: Array) -> list[int]:
    """Return the indices of those of the first eight numbers that are always whole and whose last bits vary."""
    rows = np.concatenate([outputs0, outputs1])
    return [
        j
        for j in range(8)[: rows.shape[1] // 3]
        if np.all(rows[:, 3 * j + 1] >= 0) and np.any(rows[:, 3 * j + 1 : 3 * j + 3] != rows[0, 3 * j + 1 : 3 * j + 3])
    ]


@dataclass(frozen=True, slots=True)
class LastBit:
    """Likelihood ratios of the exponent of the last bit, pooled over neighbouring exponents."""

    name: ClassVar[str] = "last_bit"
    automatic: ClassVar[str] = "released"
    sees: ClassVar[str] = "bits"
    calibrated: ClassVar[bool] = True

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        """Return whether an output is one number and the exponent of its last bit varies."""
        return bool(outputs0.shape[1] == 3 and len(np.unique(np.concatenate([outputs0, outputs1])[:, 1])) > 1)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        exponents, labels = np.unique(np.concatenate([outputs0, outputs1])[:, 1], return_inverse=True)
        counts0, counts1 = (
            np.bincount(side, minlength=len(exponents)) for side in (labels[: len(outputs0)], labels[len(outputs0) :])
        )
        ratios = averaged_ratios(counts0, counts1)

        def score(outputs: Array) -> Array:
            """Return the ratio of the nearest exponent among the fitted outputs."""
            middles = (exponents[1:] + exponents[:-1]) / 2
            return np.asarray(ratios[np.searchsorted(middles, outputs[:, 1])])

        return score
