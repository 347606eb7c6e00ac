"""Reads and writes numbers in configs.

Text such as 1e5 and 1e-3 is a number, as in YAML 1.2, although it is not a number in YAML 1.1.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator

from dpaudit.rounding import read_number

_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)[eE][-+]?[0-9]+$")


class Loader(yaml.SafeLoader):
    """Reads plain YAML values, with 1e5 as a number."""


class Dumper(yaml.SafeDumper):
    """Writes YAML for `Loader`; quotes the text "1e5", so that this text does not become a number."""


for _kind in (Loader, Dumper):
    _kind.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def number(value: object) -> object:
    """Convert text such as "0.5", "1e5" or "1/3" to a number, and return any other value unchanged."""
    found = read_number(value) if isinstance(value, str) else None
    return value if found is None else found


def whole(value: object) -> object:
    """Convert a number or text with a whole value, such as 1e5 or "100", to int; return any other value unchanged."""
    found = number(value)
    return int(found) if isinstance(found, float) and found.is_integer() else value


NUMERIC = ("epsilon", "delta", "sensitivity", "scale")
"""Arguments of libraries that are numbers, so that expressions such as log(3) are allowed."""


def numeric_arguments(arguments: Any) -> Any:
    """Convert text such as "log(3)" in the arguments `NUMERIC`, at any depth; a whole sensitivity becomes an int."""
    if isinstance(arguments, list):
        return [numeric_arguments(value) for value in arguments]
    if not isinstance(arguments, dict):
        return arguments
    found = {name: numeric_arguments(value) for name, value in arguments.items()}
    for name in NUMERIC:
        if not isinstance(found.get(name), str):
            continue
        value = number(whole(found[name]) if name == "sensitivity" else found[name])
        if isinstance(value, str):
            raise ValueError(f"arguments: {name} must be a number such as 0.5, 1/3 or log(3), got {value[:80]!r}")
        found[name] = value
    return found


Number = Annotated[float, BeforeValidator(number)]
"""A number in a config."""

Whole = Annotated[int, BeforeValidator(whole)]
"""A whole number in a config."""
