"""Explains values that a config must not have: what was found, where, what is allowed, and what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from dpaudit.catalogue import BUILTIN
from dpaudit.claims import parse_claim
from dpaudit.config.models import AuditConfig, MechanismConfig
from dpaudit.config.pair_models import PairConfig, SearchConfig
from dpaudit.config.sweep_models import CatalogueConfig, EntryConfig, EnvironmentConfig
from dpaudit.rounding import comma_meant
from dpaudit.settings import percent_meant, shown
from dpaudit.text import hint, relation_meant

Place = tuple[str | int, ...]
"""The keys and numbers of entries that lead to a value of a YAML file."""

Lines = Mapping[Place, int]
"""The line of each key and list entry."""

_KINDS = {
    "int_type": "must be a whole number such as 1000 or 1e5",
    "int_from_float": "must be a whole number such as 1000 or 1e5",
    "float_type": "must be a number such as 0.5, 1e-5 or 1/3",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "list_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "too_short": "must have at least one entry",
    "greater_than_equal": "must be at least {ge:,}",
    "greater_than": "must be greater than {gt:g}",
    "less_than_equal": "must be at most {le:,}",
    "less_than": "must be less than {lt:g}",
}
"""Words for kinds of errors of pydantic.  The names in braces are those of pydantic's limits."""


def explained(error: ErrorDetails, base: Place, lines: Lines, file: Path, model: type[BaseModel] = AuditConfig) -> str:
    """Return a message about a wrong value, as `file:line: key must be ..., got ...`."""
    location = (*base, *error["loc"])
    written = location
    while written and written not in lines:
        written = written[:-1]
    place = f"{file}:{lines.get(written, 1)}"
    key = _dotted(location if error["type"] == "missing" else written) or "the audit"
    match error["type"]:
        case "missing":
            return f"{place}: {key} is missing"
        case "extra_forbidden":
            allowed = _allowed(error["loc"], model)
            known = [*allowed, "audits"] if len(error["loc"]) == 1 and model is AuditConfig else allowed
            meant = hint(str(error["loc"][-1]), known, _belongs(error["loc"]) or f"allowed are {', '.join(allowed)}")
            return f"{place}: {key} is not a known key; {meant}"
        case "value_error":
            return f"{place}: {key}: {error['ctx']['error']}"
        case "literal_error":
            words = f"{place}: {key} must be {error['ctx']['expected']}, got {shown(error['input'])}"
            return words + relation_meant(error["input"], re.findall("'([^']*)'", error["ctx"]["expected"]))
        case kind if kind in _KINDS:
            words = _KINDS[kind].format(**error.get("ctx", {}))
            return f"{place}: {key} {words}, got {shown(error['input'])}{_meant(written, error['input'])}"
    reason = error["msg"][0].lower() + error["msg"][1:]
    return f"{place}: {key}: {reason}, got {shown(error['input'])}{_meant(written, error['input'])}"


def _meant(location: Sequence[str | int], value: object) -> str:
    """Return a hint for a value of a wrong type, or ""."""
    match location[-1] if location else "":
        case "confidence":
            number = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*%?", str(value).strip())
            return (number and percent_meant(number[1])) or comma_meant(value, ".")
        case "claim" | "detect":
            return _claim_meant(value)
        case "mechanism" if isinstance(value, str):
            return f"; write {{builtin: {value}}}" if value in BUILTIN else f"; write {{python: {value}}}"
        case "command" | "requires" if isinstance(value, str):
            return f"; write [{value}]"
        case "python_version":
            return f'; write "{value}" with quotation marks'
        case "search":
            return "; write {relation: add_remove}, for example"
        case "pairs" if isinstance(value, dict):
            return "; put a dash before the pair, or write [{d0: ..., d1: ...}]"
        case int() if "pairs" in location:
            return "; write {d0: ..., d1: ...}"
        case "trials" | "seed" | "size" | "most":
            return comma_meant(value, "")
    return comma_meant(value, ".")


def _claim_meant(value: object) -> str:
    if isinstance(value, dict):
        text = ", ".join(f"{key}={one}" for key, one in value.items())
    elif isinstance(value, list):
        text = ", ".join(map(str, value))
    else:
        text = f"eps={value}"
    try:
        return f'; did you mean "{parse_claim(text)}"?'
    except ValueError:
        return '; a claim is text such as "pure(epsilon=1)"'


def _dotted(location: Sequence[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


_INSIDE: dict[str | int, type[BaseModel]] = {"mechanism": MechanismConfig, "pairs": PairConfig, "search": SearchConfig}
_IN_CATALOGUES: dict[str | int, type[BaseModel]] = {"entries": EntryConfig, "environments": EnvironmentConfig}


def _allowed(location: Sequence[str | int], model: type[BaseModel]) -> list[str]:
    """Return the keys that are allowed where an unknown key was found."""
    inside = _IN_CATALOGUES if model is CatalogueConfig else _INSIDE
    for part in location[:-1]:
        model = inside.get(part, model)
    return _keys(model)


def _belongs(location: Sequence[str | int]) -> str:
    """Return a hint if the key belongs in another place, such as `requires` outside of `mechanism`; otherwise ""."""
    places = [str(place) for place, model in _INSIDE.items() if location[-1] in _keys(model)]
    return f"it is a key of {' and of '.join(places)}" if places else ""


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]
