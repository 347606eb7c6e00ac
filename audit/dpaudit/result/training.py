"""Defines what a result records about an audit of training, for the training section of reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from dpaudit.numerics import Array

Design = Literal["many runs", "one run", "step by step", "sequential", "fixed"]
"""The design of an audit of training: a function of `dpaudit.training`, or the method of `dpaudit.audit`."""

BARS = 30
"""Number of bars of the histograms."""

_OUTSIDE = 0.005  # share of all scores beyond each end of the histograms; the last bars count these scores


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRecord:
    """The design of an audit of training, and histograms of the scores of both sides.

    The first and the last bar also count more extreme scores.
    """

    design: Design
    training: str = ""
    canary: str = ""
    edges: tuple[float, ...] = ()
    out: tuple[int, ...] = ()
    into: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not all(math.isfinite(low) and low < high < math.inf for low, high in pairwise(self.edges)):
            raise ValueError("the edges of the histograms of scores must increase and be finite")
        bars = max(0, len(self.edges) - 1)
        if {len(self.out), len(self.into)} != {bars} or min((0, *self.out, *self.into)) < 0:
            raise ValueError(f"the histograms of scores must have {bars} counts of 0 or more for each side")


Histograms: TypeAlias = tuple[tuple[float, ...], tuple[int, ...], tuple[int, ...]]
"""The values `edges`, `out` and `into` of a `TrainingRecord`."""


def histograms(out: Array, into: Array) -> Histograms:
    """Return the histograms of the scores of both sides; nan counts as the lowest score."""
    sides = [np.where(np.isnan(side), -np.inf, side) for side in (out, into)]
    finite = np.concatenate(sides)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return (), (), ()
    low, high = (float(end) for end in np.quantile(finite, [_OUTSIDE, 1 - _OUTSIDE]))
    spread = max(high - low, 1e-9 * max(abs(low), abs(high)), 1e-300)
    edges = np.linspace(low - spread / BARS, high + spread / BARS, BARS + 1)
    if not (np.all(np.isfinite(edges)) and np.all(np.diff(edges) > 0)):
        return (), (), ()
    first, second = (np.histogram(np.clip(side, edges[0], edges[-1]), edges)[0].tolist() for side in sides)
    return tuple(edges.tolist()), tuple(first), tuple(second)


def numbers(scores: Sequence[object] | Array) -> Array | None:
    """Return scores as floats; None if some score is not a number."""
    values = np.asarray(scores)
    return values.astype(np.float64) if values.ndim == 1 and values.dtype.kind in "biuf" else None
