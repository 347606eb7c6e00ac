"""The set of reachable floats: the exponent of the last bit of each number, and the last bits themselves.

The rounded sum of query and noise is a multiple of the last bit of the query, of the noise or of the sum, whichever is
coarsest.  So near zero, and near powers of two, the datasets reach different floats (Mironov 2012; Haney, Desfontaines,
Hartman, Shrestha & Hay 2022, arXiv 2207.13793).

The attack refutes every mechanism that adds floating-point noise to a float, such as numpy's noise, within several
thousand trials.  This verdict is correct.  But a claim about a mechanism under development often refers to real
arithmetic.  So an audit with `attacks="auto"` uses this attack for external programs only (in a private environment, or
behind a command).  For other mechanisms, the user must name the attack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit_attacks.ratios import Labels, ratios_of_labels

_MAX_NUMBERS = 4  # maximum number of numbers of an output that are used
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
        """Return whether the bits vary, and some number is not an integer that a float represents exactly.

        Integers below 2**53 were not rounded, so their bits as floats reveal nothing about the addition of noise.
        """
        rows = np.concatenate([outputs0, outputs1])
        first, last = rows[:, 0::3], rows[:, 1::3]
        exact = (last >= _ODD) | ((last >= 0) & (first < _DIGITS))
        return bool(np.any(rows[:, 1:] != rows[0, 1:])) and not bool(np.all(exact))

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """Return a scorer that is fitted to outputs of both datasets."""
        return ratios_of_labels(_labels, outputs0, outputs1)


def _labels(outputs: Array) -> list[Labels]:
    """Return six labels (n,) for each number of the outputs (n, 3 d)."""
    found: list[Labels] = []
    for j in range(min(_MAX_NUMBERS, outputs.shape[1] // 3)):
        first, last, low = (outputs[:, 3 * j + k].astype(np.intp) for k in range(3))
        zeros = np.where(last < _ODD, last - first, last)
        at = np.where(last < _ODD, np.clip(first, -8, 8) * 100 + np.clip(last - first, -60, 0), last)
        found += [last, zeros, at, low & 1, low & 7, low]
    return found
