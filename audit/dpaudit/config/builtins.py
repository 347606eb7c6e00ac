"""Creates builtin mechanisms from the `params` of a config."""

from __future__ import annotations

import inspect

from dpaudit.catalogue import BUILTIN
from dpaudit.text.numbers import read_number
from dpaudit.text.spelling import hint
from dpaudit.values import Foreign, JsonObject

_NUMBERS = ("int", "float")  # annotations of parameters that are numbers


def builtin_mechanism(name: str, params: JsonObject | None) -> Foreign:
    """Create a builtin mechanism."""
    if name not in BUILTIN:
        meant = hint(name, BUILTIN, f"builtin must be one of {', '.join(BUILTIN)}")
        raise ValueError(f"unknown builtin mechanism {name[:100]!r}; {meant}  `dpaudit list mechanisms` lists all")
    known = inspect.signature(BUILTIN[name]).parameters
    given: JsonObject = {}
    for key, value in (params or {}).items():
        if key not in known:
            allowed = f"allowed are {', '.join(known)}" if known else "it has no parameters"
            raise ValueError(f"params: {name} has no parameter {key}; {hint(key, known, allowed)}")
        numeric = known[key].annotation in _NUMBERS
        given[key] = _number(key, value) if numeric else value
    try:
        return BUILTIN[name](**given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"params do not fit builtin {name}: {error}") from None


def _number(key: str, value: object) -> object:
    if isinstance(value, int | float):
        return value
    found = read_number(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"params: {key} must be a number such as 0.5, 1/3 or log(3), got {str(value)[:80]!r}")
    return int(found) if found.is_integer() else found
