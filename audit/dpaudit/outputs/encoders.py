"""Registered encoders, functions that convert outputs of unknown types to known types."""

from __future__ import annotations

from collections.abc import Callable

from dpaudit.values import Foreign, Output

_ENCODERS: dict[type, Callable[[Foreign], object]] = {}


def register_encoder(kind: type, function: Callable[[Foreign], object]) -> None:
    """Register a function that converts outputs, or parts of outputs, of a class to a type that dpaudit can read.

    A later registration for the same class replaces an earlier one.  For an object, the encoder of the nearest class in
    its method resolution order is used.

    Args:
        kind: The class.  Subclasses are included.
        function: Maps an object of the class to a number, text, bytes, None, tuple, list, dict, set, array or data
            frame.  These may contain objects with other encoders.  The function must keep all that the analyst sees and
            add nothing else, such as a memory address.

    Raises:
        TypeError: If `kind` is not a class, or `function` is not callable.
    """
    if not isinstance(kind, type):
        raise TypeError(f"register_encoder needs a class, got {kind!r}")
    if not callable(function):
        raise TypeError(f"register_encoder needs a function for {kind.__name__}, got {function!r}")
    _ENCODERS[kind] = function


def encoder_of(output: Output) -> Callable[[Foreign], object] | None:
    """Return the encoder of the class of an output, or of its nearest ancestor; None if there is none."""
    if not _ENCODERS:
        return None
    return next((_ENCODERS[kind] for kind in type(output).__mro__ if kind in _ENCODERS), None)
