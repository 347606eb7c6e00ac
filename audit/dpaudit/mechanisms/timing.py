"""Defines a run in another process with its running time, and checks the times that such processes report."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

from dpaudit.values import Output

THIS_PROCESS = "measured in dpaudit's process, around each call of the mechanism"
ENVIRONMENT = "measured in the private environment, around each call of the mechanism"
REPORTED = "reported by the program"
OUTSIDE = "measured from request to answer"
CLOCKS = (THIS_PROCESS, ENVIRONMENT, REPORTED, OUTSIDE)
"""The ways to measure running times, as results state them."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a mechanism in another process."""

    output: Output
    raised: tuple[str, str] | None  # type and message of the exception that is the outcome of the run, if there is one
    seconds: float  # running time of the run, >= 0
    clock: str  # one of CLOCKS


def seconds_of(reported: object) -> float:
    """Return a running time that another process reports, in seconds."""
    seconds = math.nan
    if isinstance(reported, int | float) and not isinstance(reported, bool):
        with contextlib.suppress(OverflowError):  # integers may have any size
            seconds = float(reported)
    if not (math.isfinite(seconds) and seconds >= 0):
        got = reported if isinstance(reported, float) else f"a value of type {type(reported).__name__}"
        raise ValueError(f"the running time of a run must be a finite number of seconds >= 0, got {got}")
    return seconds
