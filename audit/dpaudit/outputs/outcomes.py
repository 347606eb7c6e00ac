"""Defines the outcomes of runs that raise exceptions or are timed, and the exception for unreadable outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpaudit.values import Output

_ENCODERS: dict[type, Callable[[Any], object]] = {}


def register_encoder(kind: type, function: Callable[[Any], object]) -> None:
    """Register a function that converts objects of a class to a type that dpaudit can read.

    The objects may be outputs of a mechanism or parts of outputs.  A later registration for the same class replaces an
    earlier registration.  If several encoders apply to an object, the encoder of the first class in the method
    resolution order is used.

    Args:
        kind: The class of the objects.  The encoder also applies to subclasses.
        function: The encoder, which maps an object of the class to a number, text, bytes, None, tuple, list, dict, set,
            array or data frame.  The returned value may contain objects of other classes with registered encoders.  The
            encoder must keep all information that the analyst sees.  It must add no other information, such as a memory
            address.

    Raises:
        TypeError: If `kind` is not a class or `function` is not callable.
    """
    if not isinstance(kind, type):
        raise TypeError(f"register_encoder needs a class, got {kind!r}")
    if not callable(function):
        raise TypeError(f"register_encoder needs a function for {kind.__name__}, got {function!r}")
    _ENCODERS[kind] = function


def encoder_of(output: Output) -> Callable[[Any], object] | None:
    """Return the encoder that is registered for the class of an output or for its nearest ancestor, or None."""
    if not _ENCODERS:
        return None
    return next((_ENCODERS[kind] for kind in type(output).__mro__ if kind in _ENCODERS), None)


class OutputError(Exception):
    """Raised for an output that dpaudit cannot read.  The message states the reason."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The outcome of a run that raised an exception, if the analyst observes the exception."""

    type: str  # the name of the class of the exception
    message: str

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        """Return the outcome of a run that raised the given exception."""
        try:
            message = f"{error}"
        except Exception as another:
            message = f"(message unavailable: __str__ raised {type(another).__name__})"
        return cls(type(error).__name__, message)


@dataclass(frozen=True, slots=True)
class Timed:
    """An output together with the running time of the run, if the analyst observes running times."""

    output: Output
    seconds: float  # running time of the run, in seconds, >= 0
