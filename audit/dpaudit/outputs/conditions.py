"""Defines conditions on one column of a table, such as "city = Ulm" and "age above 31.5", and proposes conditions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import AnyArray, Array
from dpaudit.outputs.labels import label_of
from dpaudit.outputs.tables import Table, read_column

_MAX_CATEGORIES = 24  # maximum number of categories of a column, or of numbers that are compared by equality
_CUTS = np.linspace(0, 1, 9)[1:-1]  # quantiles at which a column of numbers is cut
_SAMPLED_ROWS = 200  # number of rows of each table from which cuts are learned
_PLAIN_LABEL = re.compile(r"'([^\W\d_][\w .-]{0,38})'")  # text that needs no quotation marks

_CONSTANTS = ("None", "nan", "True", "False")  # texts that need quotation marks, unlike the values of the same name

Relation = Literal["=", "above", "at most"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the entry of a row in one column."""

    column: str
    relation: Relation
    value: str | float  # a category as a label, or a number
    time: bool = False  # whether the number is a time in microseconds since 1970

    def __str__(self) -> str:
        if isinstance(self.value, str):
            plain = _PLAIN_LABEL.fullmatch(self.value)
            return f"{self.column} = {plain[1] if plain and plain[1] not in _CONSTANTS else self.value}"
        written = f"{self.value:.15g}" if self.relation == "=" else f"{self.value:.6g}"
        if self.time:
            written = str(np.datetime64(round(self.value), "us").astype("M8[s]")).removesuffix("T00:00:00")
        return f"{self.column} {self.relation} {written}"

    def holds(self, table: Table) -> npt.NDArray[np.bool_]:
        """Return a mask, (rows,), of the rows that satisfy the condition; no row if the column is missing."""
        if isinstance(self.value, str):
            code = table.categories.get(self.column, {}).get(self.value)
            return np.zeros(table.rows, dtype=bool) if code is None else table.codes[self.column] == code
        numbers = table.numbers.get(self.column)
        if numbers is None:
            return np.zeros(table.rows, dtype=bool)
        with np.errstate(invalid="ignore"):
            if self.relation == "=":
                return np.asarray(numbers == self.value)
            return np.asarray(numbers > self.value if self.relation == "above" else numbers <= self.value)


def proposed(tables: Sequence[Table]) -> list[Condition]:
    """Return conditions on each column: frequent categories and numbers, and cuts at quantiles."""
    found: list[Condition] = []
    for column in dict.fromkeys(column for table in tables for column in table.codes):
        often: Counter[str] = Counter()
        for table in tables:
            often.update(table.categories.get(column, ()))
        found += [Condition(column, "=", label) for label, _ in often.most_common(_MAX_CATEGORIES)]
    for column, values in _samples(tables).items():
        time = any(column in table.times for table in tables)
        distinct = np.unique(values)
        if len(distinct) <= _MAX_CATEGORIES:
            found += [Condition(column, "=", float(value), time) for value in distinct]
        found += [Condition(column, "above", cut, time) for cut in _cuts(values)]
    return found


def of_row(row: Mapping[str, object], tables: Sequence[Table]) -> list[Condition]:
    """Return the conditions that a row satisfies: its categories, its numbers, and the next cuts around its numbers."""
    found: list[Condition] = []
    samples = _samples(tables)
    for column, entry in row.items():
        known = samples.get(column)
        number = as_number(entry)
        if known is None or number is None:
            found.append(Condition(column, "=", label_of(entry)))
            continue
        time = any(column in table.times for table in tables)
        found.append(Condition(column, "=", number, time))
        below, above = known[known < number], known[known > number]
        if len(below):
            found.append(Condition(column, "above", (float(np.quantile(below, 0.9)) + number) / 2, time))
        if len(above):
            found.append(Condition(column, "at most", (float(np.quantile(above, 0.1)) + number) / 2, time))
    return found


def as_number(entry: object) -> float | None:
    """Return an entry of a row as the number that a table would hold; None for a category or a missing entry."""
    numbers = read_column([entry]).numbers
    return None if numbers is None or not np.isfinite(numbers[0]) else float(numbers[0])


def _samples(tables: Sequence[Table]) -> dict[str, Array]:
    """Return some finite numbers of each column of numbers."""
    pieces: dict[str, list[AnyArray]] = {}
    for table in tables:
        for column, numbers in table.numbers.items():
            step = max(1, len(numbers) // _SAMPLED_ROWS)
            pieces.setdefault(column, []).append(numbers[::step])
    pooled = {column: np.concatenate(found).astype(np.float64) for column, found in pieces.items()}
    return {column: values[np.isfinite(values)] for column, values in pooled.items()}


def _cuts(values: Array) -> list[float]:
    """Return cuts between different numbers near the quantiles."""
    if not len(values):
        return []
    ordered = np.sort(values)
    low = np.unique(ordered[((len(ordered) - 1) * _CUTS).astype(np.intp)])
    low = low[low < ordered[-1]]
    after = ordered[np.searchsorted(ordered, low, side="right")]
    return [float(cut) for cut in low / 2 + after / 2]
