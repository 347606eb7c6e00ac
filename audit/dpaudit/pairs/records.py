"""Defines the records from which `SearchPairs` makes datasets: numbers within bounds, or rows of a table."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.values import Record

Schema = Mapping[str, Sequence[Record]]  # a mapping from each column to (low, high) or to a list of categories

_FAR_WIDTHS = 1000.0  # distance of out-of-range values from the bounds, in multiples of the width of the bounds


@dataclass(frozen=True, slots=True)
class Records:
    """The records from which `SearchPairs` makes datasets."""

    at: Callable[[float], Record]  # function that maps 0 to the smallest record and 1 to the largest record
    unusual: Sequence[tuple[str, Record]]  # labels and values of records that a mechanism must clamp or drop


def of_numbers(bounds: tuple[float, float] | None, whole: bool) -> Records:
    low, high = bounds or (0.0, 1.0)
    far = _FAR_WIDTHS * (high - low)
    return Records(
        lambda share: rounded(low + share * (high - low), whole),
        [
            ("one NaN", math.nan),
            ("one above the bounds", rounded(high + far, whole)),
            ("one below the bounds", rounded(low - far, whole)),
        ],
    )


def of_table(schema: Schema) -> Records:
    def at(share: float) -> dict[str, Record]:
        row: dict[str, Record] = {}
        for column, values in schema.items():
            if numeric(values):
                low, high = values
                row[column] = rounded(low + share * (high - low), isinstance(low, int) and isinstance(high, int))
            else:
                row[column] = values[round(share * (len(values) - 1))]
        return row

    unusual: list[tuple[str, Record]] = []
    numbers = [column for column, values in schema.items() if numeric(values)]
    if numbers:
        beyond = {c: schema[c][1] + _FAR_WIDTHS * (schema[c][1] - schema[c][0]) for c in numbers}
        unusual += [
            ("one NaN", {**at(0.0), **dict.fromkeys(numbers, math.nan)}),
            ("one above the bounds", {**at(0.0), **beyond}),
        ]
    labels = [column for column in schema if column not in numbers]
    if labels:
        unusual += [("one without a category", {**at(1.0), **dict.fromkeys(labels)})]
    return Records(at, unusual)


def read_schema(schema: Any) -> dict[str, Sequence[Record]]:
    """Return a schema with plain values: a tuple of two numbers, or a list of categories, for each column."""
    if not isinstance(schema, Mapping):
        raise ValueError(
            "schema must be a dict that maps each column to (low, high) or to a list of categories, got "
            f"{type(schema).__name__}"
        )
    if not schema:
        raise ValueError("schema must have at least one column")
    return {column: _read_column(f"schema: {column}", values) for column, values in schema.items()}


def _read_column(where: str, values: Any) -> Sequence[Record]:
    listed = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    if not (listed or (hasattr(values, "tolist") and hasattr(values, "__len__"))) or len(values) == 0:
        got = "a set, which has no order" if isinstance(values, set | frozenset) else f"{values!r}"
        example = f"; one category is [{values!r}]" if isinstance(values, str) and values else ""
        raise ValueError(f"{where} must be (low, high) or a list of categories, got {got}{example}")
    plain = [value.item() if type(value).__module__ == "numpy" else value for value in values]
    found = tuple(plain) if isinstance(values, tuple) else plain
    if numeric(found):
        check_bounds(where, found)
        return found
    if isinstance(found, tuple) and len(found) == 2 and all(map(is_date, found)):
        raise ValueError(
            f"{where} has two dates, {found[0]} and {found[1]}, but bounds must be numbers; give numbers, such as days "
            "since a date, and convert them in the mechanism, or give a list of more dates as categories"
        )
    seen = set[str]()
    for value in found:
        if repr(value) in seen:
            raise ValueError(f"{where} has the category {value!r} twice; give each category once")
        seen.add(repr(value))
    return found


def is_date(value: object) -> bool:
    return isinstance(value, datetime.date | datetime.time | datetime.timedelta)


def bounds_or_list(values: Sequence[Record]) -> Sequence[Record]:
    """Return an entry of a schema from YAML or JSON, which have only lists: two numbers or two dates are bounds."""
    found = tuple(values)
    return found if numeric(found) or (len(found) == 2 and all(map(is_date, found))) else list(values)


def check_bounds(name: str, bounds: Sequence[Record]) -> None:
    if not (len(bounds) == 2 and -math.inf < bounds[0] < bounds[1] < math.inf):
        raise ValueError(f"{name} must be (low, high), both finite and low < high, got {bounds!r}")


def numeric(values: Sequence[Record]) -> bool:
    """Return whether the entry of a schema is a tuple of two numbers, and thus the bounds of a numeric column."""
    return (
        isinstance(values, tuple)
        and len(values) == 2
        and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    )


def rounded(value: float, whole: bool) -> float:
    """Return a number, rounded down to an integer if `whole`."""
    return math.floor(value) if whole else float(value)
