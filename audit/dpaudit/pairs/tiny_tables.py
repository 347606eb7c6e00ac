"""Generates pairs of tiny tables from a schema, on which generators of synthetic data reveal most about one row.

In a table of two to ten rows, one row has a large share, and a mistake that depends on the rows is visible.  The
targets follow Annamalai, Ganev & De Cristofaro 2024, "What do you want from theory alone?": a category that no other
row has, an extreme value, and a row far from all others.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpaudit.pairs.pair import Pair
from dpaudit.pairs.records import Schema, numeric, of_table
from dpaudit.values import Record

_MAX_ROWS = 10


def tiny_tables(schema: Schema, relation: str, size: int, *, unusual: bool) -> Iterator[Pair]:
    """Yield pairs of tables, the most promising pairs first."""
    rows, most = of_table(schema), min(size, _MAX_ROWS)
    numbers = [column for column, entries in schema.items() if numeric(entries)]
    low, high = rows.low, rows.high
    many, few = [low] * (most - 1), [low] * max(1, min(4, most - 1))
    spread = [_varied(schema, number, most - 1) for number in range(most - 1)]
    plans: list[tuple[list[Record], Record, str]] = [
        (few, high, "a row far from all"),
        (many, {**low, **{c: high[c] for c in schema if c not in numbers}}, "new categories"),
        (many, {**low, **{c: high[c] for c in numbers}}, "extreme values"),
        ([low], high, "two rows"),
        (spread, high, "an extreme row among varied rows"),
    ]
    if unusual:
        new = {c: f"not {entries[0]}" for c, entries in schema.items() if c not in numbers}
        plans += [(few, {**low, **new}, "unknown categories")] if new else []
        plans += [(few, stray, label) for label, stray in rows.unusual]
    for rest, target, label in plans:
        if relation == "add_remove":
            yield Pair(list(rest), [*rest, target], "add_remove", label)
        else:
            old = high if target == low else low
            yield Pair([*rest, old], [*rest, target], "replace_one", label)


def _varied(schema: Schema, number: int, count: int) -> Record:
    """Return one of `count` rows whose numbers stay in the lower half, and whose categories omit the last."""
    share = number / max(1, 2 * count)
    row: dict[str, Record] = of_table(schema).at(share)
    for column, entries in schema.items():
        if not numeric(entries):
            row[column] = entries[number % max(1, len(entries) - 1)]
    return row
