"""Plain values as JSON, from which exactly the same values are made again."""

from __future__ import annotations

import json
import math

import numpy as np

from dpaudit.values import Foreign, Json

_LONGEST = 4_000  # characters of the JSON of a value; a script holds no longer values, so a result needs none


def stored(value: Foreign) -> list[Json]:
    """Return a list of one JSON value; an empty list if the value is not plain, or is long."""
    try:
        found = _stored(value)
        return [found] if len(json.dumps(found)) <= _LONGEST else []
    except (ValueError, RecursionError):
        return []


def _stored(value: Foreign) -> Json:
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [_stored(one) for one in value]
    if kind is float:
        return {"float": str(value)}
    if kind is dict:
        return {"dict": [[_stored(key), _stored(one)] for key, one in value.items()]}
    if kind in (tuple, set, bytes):
        return {kind.__name__: [_stored(one) for one in (sorted(value, key=repr) if kind is set else value)]}
    if kind is np.ndarray and value.dtype.kind in "biuf":
        return {"array": _stored(value.tolist()), "dtype": value.dtype.name}
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return _stored(value.item())
    raise ValueError(f"a value of type {kind.__name__} is not plain")


def restored(value: Json) -> Foreign:
    """Return the value of which a result file holds the JSON, or raise ValueError or TypeError if it holds another."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [restored(one) for one in value]
        case {"float": str() as text}:
            return float(text)
        case {"dict": list() as items}:
            return {restored(key): restored(one) for key, one in items}
        case {"tuple": list() as items}:
            return tuple(map(restored, items))
        case {"set": list() as items}:
            return set(map(restored, items))
        case {"bytes": list() as items}:
            return bytes(items)
        case {"array": items, "dtype": str() as name} if np.dtype(name).kind in "biuf":
            return np.array(restored(items), dtype=name)
    raise ValueError("it is no value that a result file can hold")
