"""The rows of the calibration, with one module for each part of the table.

A row is a setting in which an event has at most, or at least, a stated probability.  Each module of a part has a
function `rows` that returns its rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from calibration_parts.limit import Limit

BEGAN = time.time()  # before the command imports dpaudit
Outcome = dict[str, float]  # what one audit found


def as_found(outcome: Outcome) -> Mapping[str, bool]:
    """Return the events of an outcome that consists of events."""
    return {name: bool(value) for name, value in outcome.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One setting of the calibration.

    `audit` must be a function of a module, or a `partial` of one, so that other processes can import it.
    """

    part: str  # the part to which the row belongs
    cells: tuple[str, ...]  # the setting in words; different rows of a part have different cells
    audit: Callable[[int], Outcome]  # makes the audit with a given seed
    limits: Mapping[str, Limit]  # maps the name of an event to its stated probability
    full: int  # number of audits in a full calibration
    sources: tuple[str, ...]  # the files of `benchmarks` that determine the audits
    events: Callable[[Outcome], Mapping[str, bool]] = as_found  # returns which events occurred in an audit
    first_seed: int = 0
    audits_of: str = ""  # name of the audits, if several rows count events of the same audits

    @property
    def label(self) -> str:
        return f"{self.part}: {', '.join(self.cells)}"

    @property
    def audited(self) -> str:
        """The name of the row's audits in the store."""
        return self.audits_of or self.label
