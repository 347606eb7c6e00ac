"""Values of a column that one dataset has never shown: a number, a category, a length, or an entry of a new kind.

The event is "the value is none of those that this dataset has shown".  Its probability on this dataset is estimated by
the share of values that were shown once (Good 1953, Biometrika 40, 237-264), and on the other dataset by its frequency.
The evidence for such an event is a Bayes factor, divided by the number of different events that were compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from dpaudit.numerics import Array

_SURE = 20.0  # score of a value that identifies a dataset, in nats
_ENOUGH = 3.5  # evidence for an event, in nats, from which on it is used
_PRIOR = 0.02  # pseudo-count of outputs with an event on the dataset that has not shown it


@dataclass(frozen=True, slots=True)
class Event:
    """Values of one column that one dataset has not shown."""

    evidence: float  # nats
    column: int
    where: bytes  # which outputs of the other dataset show it; equal for columns that say the same
    known: npt.NDArray[np.int64]  # bits of the values that this dataset has shown, sorted
    inside: float  # log-likelihood ratio of the event, positive if d1 has shown it
    outside: float  # log-likelihood ratio of all other outputs


@dataclass(frozen=True, slots=True)
class NewValues:
    """The likelihood ratio of values that one dataset has never shown, in the column that shows most."""

    name: ClassVar[str] = "new_values"
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True
    head_start: ClassVar[float] = 8.0
    most_rows: ClassVar[int] = 2_000
    identifies: ClassVar[bool] = True

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        return _clearest(outputs0, outputs1) is not None

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        event = _clearest(outputs0, outputs1)
        if event is None:
            return lambda outputs: np.zeros(len(outputs))
        return lambda outputs: np.where(
            np.isin(_bits(outputs[:, event.column]), event.known), event.outside, event.inside
        )


def _clearest(outputs0: Array, outputs1: Array) -> Event | None:
    """Return the event with the most evidence; None if there is not enough."""
    found: list[Event] = []
    for column, (values0, values1) in enumerate(zip(_bits(outputs0).T, _bits(outputs1).T, strict=True)):
        both = new_values_of(column, values0, values1, 1), new_values_of(column, values1, values0, -1)
        found += [event for event in both if event is not None]
    most = max(found, key=lambda event: event.evidence, default=None)
    different = len({event.where for event in found})
    return most if most is not None and most.evidence > _ENOUGH + math.log(different) else None


def new_values_of(column: int, without: npt.NDArray[np.int64], other: npt.NDArray[np.int64], sign: int) -> Event | None:
    """Return the event that a value is not one of `without`, given the other dataset's values; None if it has none."""
    known, times = np.unique(without, return_counts=True)
    n, m = len(without), len(other)
    if len(known) > max(3, n // 4):  # most values are new on every dataset
        return None
    new = ~np.isin(other, known)
    shown, once = int(np.count_nonzero(new)), int(np.count_nonzero(times == 1))
    if not shown:
        return None
    apart = betaln(once + _PRIOR, n - once + 1) - betaln(_PRIOR, 1) + betaln(shown + 1, m - shown + 1)
    # both datasets show such values equally often, or one of them as often as the other one does not
    alike = [shown + once, n - once + shown]
    explained = max(float(betaln(count + 0.5, n + m - count + 0.5)) for count in alike) - math.log(math.pi)
    rate, share = (once + _PRIOR) / (n + 1 + _PRIOR), (shown + 0.5) / (m + 1)
    inside = math.log(share / rate) if once else _SURE
    outside = math.log((1 - share) / (1 - rate))
    return Event(float(apart) - explained, column, new.tobytes(), known, sign * inside, sign * outside)


def _bits(outputs: Array) -> npt.NDArray[np.int64]:
    """Return equal integers for equal numbers; all NaN are equal."""
    return np.ascontiguousarray(np.where(np.isnan(outputs), np.nan, outputs + 0.0)).view(np.int64)
