"""Reads the complete state of a plain Python object."""

from __future__ import annotations

import struct

_POINTER = struct.calcsize("P")
_OBJECT_SIZE = object.__basicsize__


def attributes(value: object) -> dict[str, object] | None:
    """Return all attributes of an object, or None if the object may hold further state."""
    cls = type(value)
    slots = [name for base in cls.__mro__ for name in _slots(base)]
    size = _OBJECT_SIZE + _POINTER * (len(slots) + (cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0))
    if cls.__basicsize__ != size or cls.__itemsize__:
        return None
    found = dict(getattr(value, "__dict__", {}))
    for name in slots:
        try:
            found[name] = getattr(value, name)
        except AttributeError:
            continue
    return found


def _slots(cls: type) -> list[str]:
    given = vars(cls).get("__slots__", ())
    names = [given] if isinstance(given, str) else list(given)
    mangled = f"_{cls.__name__.lstrip('_')}"
    return [
        f"{mangled}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in names
        if name not in ("__dict__", "__weakref__")
    ]
