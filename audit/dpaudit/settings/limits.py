"""Limits of arguments, and what is said of a value that breaks one.

Each check takes the `name` of the argument as the user typed it: a keyword, an option, or "" where the caller adds it.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

MIN_TRIALS, MAX_TRIALS = 1, 2**53  # the most that is exact in JSON, whose numbers are doubles
IMPOSSIBLE, CERTAIN = 0, 1  # a confidence or a probability lies strictly between
NO_TIME = 0  # seconds; a timeout is above
ALL_CORES = -1  # the number of jobs that stands for one on each core


def check_trials(given: Any, name: str = "trials") -> int:
    """Return a number of runs per dataset as an int; whole floats such as 1e5 are allowed.

    Raises:
        TypeError: If it is no number.
        ValueError: If it is out of range, or not whole.
    """
    if not _is_number(given):
        raise TypeError(_about(name, f"must be a whole number, got {shown(given)}"))
    if not given >= MIN_TRIALS:
        raise ValueError(_about(name, f"must be at least {MIN_TRIALS}, got {given}"))
    if given > MAX_TRIALS or given != int(given):
        raise ValueError(_about(name, f"must be a whole number up to 2**53, got {given}"))
    return int(given)


def check_confidence(given: Any, name: str = "confidence", *, written: str | None = None) -> None:
    """Check a confidence; `written`: as the caller typed it, if that is known.

    Raises:
        TypeError: If it is no number.
        ValueError: If it is out of range.
    """
    if not _is_number(given):
        raise TypeError(_about(name, f"must be a number such as 0.99, got {shown(given)}"))
    check_probability(given, name, written=f"{written or given}{percent_meant(given)}")


def check_probability(given: float, name: str, *, written: str | None = None) -> None:
    """Check a number that must lie strictly between 0 and 1; `written`: as the caller typed it, if that is known.

    Raises:
        ValueError: If it does not.
    """
    if not IMPOSSIBLE < given < CERTAIN:
        between = f"must lie strictly between {IMPOSSIBLE} and {CERTAIN}"
        raise ValueError(_about(name, f"{between}, got {given if written is None else written}"))


def percent_meant(given: float | str) -> str:
    """Return a hint for a confidence that was given in percent, as a number or its digits; "" for others."""
    if not 1 < float(given) < 100:
        return ""
    return f"; did you mean {Decimal(str(given)).scaleb(-2).normalize():f}?"


def check_jobs(given: int, name: str = "jobs") -> None:
    """Check a number of worker processes; -1 stands for one on each core.

    Raises:
        ValueError: If it is neither -1 nor positive.
    """
    if given == 0 or given < ALL_CORES:
        raise ValueError(_about(name, f"must be {ALL_CORES} or at least 1, got {given}"))


def check_timeout(given: float | None, name: str = "timeout") -> None:
    """Check a number of seconds; None for no limit.

    Raises:
        ValueError: If it is not positive.
    """
    if given is not None and not given > NO_TIME:
        raise ValueError(_about(name, f"must be above {NO_TIME} seconds, got {given}"))


def check_choice(given: Any, allowed: Sequence[str], name: str, *, between: str = ", ", lead: str = "") -> None:
    """Check that one of several words was given.

    Args:
        given: What was given.
        allowed: The words.
        name: Of the argument.
        between: What joins the words in the message.
        lead: What stands before them.

    Raises:
        ValueError: If it is another one.
    """
    if given not in allowed:
        raise ValueError(_about(name, f"must be {lead}{between.join(allowed)}, got {given!r}"))


def shown(given: Any) -> str:
    """A value as Python writes it, shortened."""
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _is_number(given: Any) -> bool:
    return isinstance(given, numbers.Real) and not isinstance(given, bool)


def _about(name: str, words: str) -> str:
    return f"{name} {words}" if name else words
