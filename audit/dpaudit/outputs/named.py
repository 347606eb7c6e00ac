"""Defines the parts of an output, which are named numbers, labels, counts and tables."""

from __future__ import annotations

import dataclasses

from dpaudit.outputs.tables import Table


@dataclasses.dataclass(slots=True)
class Parts:
    """The parts of one output.  Reports display the names of these parts."""

    numbers: dict[str, int | float] = dataclasses.field(default_factory=dict)  # a missing number is encoded as NaN
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    counts: dict[str, float] = dataclasses.field(default_factory=dict)  # the count of a missing name is 0
    # tables among the parts, from which counting queries are answered
    tables: dict[str, Table] = dataclasses.field(default_factory=dict, compare=False)
