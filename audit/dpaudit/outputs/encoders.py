"""How outputs of other people's types are read: by functions that turn them into something known."""

from __future__ import annotations

from collections.abc import Callable

from dpaudit.values import Foreign, Output

_ENCODERS: dict[type, Callable[[Foreign], object]] = {}


def register_encoder(kind: type, function: Callable[[Foreign], object]) -> None:
    """From now on read an output, or a part of one, of class `kind` (or a subclass) as `function(output)`.

    The function returns what is known: a number, text, bytes, None, a tuple, list, dict, set, array, data frame, ...
    It must keep all that the analyst sees and add nothing, such as an address in memory.  A later registration for the
    same class replaces an earlier one; the nearest class of an object's ancestry counts.
    """
    if not isinstance(kind, type):
        raise TypeError(f"register_encoder needs a class, got {kind!r}")
    if not callable(function):
        raise TypeError(f"register_encoder needs a function for {kind.__name__}, got {function!r}")
    _ENCODERS[kind] = function


def encoder_of(output: Output) -> Callable[[Foreign], object] | None:
    """The function registered for the output's class, or for its nearest ancestor; None if there is none."""
    if not _ENCODERS:
        return None
    return next((_ENCODERS[kind] for kind in type(output).__mro__ if kind in _ENCODERS), None)
