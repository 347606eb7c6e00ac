"""Outcomes that are more than a value: a run that raised, a run that was timed; and outputs that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.values import Output


class OutputError(Exception):
    """An output that cannot be turned into features; says which, and what can be."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The run ended in an exception, and the analyst sees that."""

    type: str  # the class of the exception
    message: str

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        try:
            message = f"{error}"
        except Exception as another:
            message = f"(its message cannot be had: __str__ raised {type(another).__name__})"
        return cls(type(error).__name__, message)


@dataclass(frozen=True, slots=True)
class Timed:
    """An output and how long it took, where the analyst can tell."""

    output: Output
    seconds: float  # >= 0
