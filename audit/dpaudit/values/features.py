"""Features of outputs as nested tuples, and their words.

A feature is a tuple of a form and its arguments.  The form is a text with one "{}" for each argument.  An argument is
another feature, or a plain text or number.  For example, the length of the entry "a" of an output is
("length of {}", ("{}[{}]", ("output",), "a")), in words "length of output['a']".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Feature = tuple[Any, ...]

Label = str | int | Feature
"""An argument of a feature: a short text or an integer, or a feature such as ("None",) or ("{}", 0.5)."""

OUTPUT: Feature = ("output",)
"""The output itself."""


def words(feature: Label | float) -> str:
    """Return the words of a feature, or of an argument."""
    if not isinstance(feature, tuple):
        return repr(feature)
    form: str = feature[0]
    arguments = feature[1:]
    first, *others = form.split("{}") if arguments else [form]
    return first + "".join(f"{words(one)}{other}" for one, other in zip(arguments, others, strict=True))


def checked(value: object) -> Feature:
    """Return a feature that a result file holds as nested lists, or raise ValueError if it is none."""
    match value:
        case [str() as form, *arguments] if not arguments or form.count("{}") == len(arguments):
            return form, *(one if type(one) in (str, int, float) else checked(one) for one in arguments)
    raise ValueError(f"a feature must be a list of a form and its arguments, got {str(value)[:100]!r}")


def within(feature: Feature) -> Iterator[Feature]:
    """Return a feature and all features among its arguments."""
    yield feature
    for one in feature[1:]:
        if isinstance(one, tuple):
            yield from within(one)
