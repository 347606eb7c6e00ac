"""Measures how near the rows of a table come to a given record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.outputs.conditions import as_number
from dpaudit.outputs.labels import label_of
from dpaudit.outputs.tables import Table

_RADII = (0.0, 0.1, 0.3)  # distances within which rows are counted
_ROUNDING = 1e-9  # of a distance, which is a mean; equal rows have the distance 0 exactly


@dataclass(frozen=True, slots=True)
class Nearness:
    """The distances of rows to a record: the mean over its columns of differences between 0 and 1.

    The difference of numbers is a share of the range of past numbers, and the difference of categories is 0 or 1.
    Gower 1971, "A general coefficient of similarity and some of its properties".
    """

    categories: tuple[tuple[str, str], ...]  # columns and their labels
    numbers: tuple[tuple[str, float, float], ...]  # columns, their numbers, and the ranges of past numbers
    word: str  # the record in words

    @classmethod
    def of(cls, row: Mapping[str, object], tables: Sequence[Table], word: str) -> Nearness:
        """Return the distances to a record, with the ranges of numbers in past tables."""
        numbers: list[tuple[str, float, float]] = []
        categories: list[tuple[str, str]] = []
        for column, entry in row.items():
            number = as_number(entry)
            known = [table.numbers[column] for table in tables if column in table.numbers]
            if number is None or not known:
                categories.append((column, label_of(entry)))
                continue
            values = np.concatenate([*known, [number]])
            values = values[np.isfinite(values)]
            numbers.append((column, number, float(np.ptp(values)) or 1.0))
        return cls(tuple(categories), tuple(numbers), word)

    def names(self, rows: str) -> list[str]:
        """Return the names of the numbers that `of` returns."""
        counted = [f"{rows} {f'within {radius:g} of' if radius else 'equal to'} {self.word}" for radius in _RADII]
        return [*counted, f"distance of {self.word} to the nearest of the {rows}"]

    @property
    def nothing(self) -> list[float]:
        """The numbers of a table without rows."""
        return [0.0] * len(_RADII) + [np.nan]

    def of_table(self, table: Table) -> Array:
        """Return the distance of each row, (rows,)."""
        total = np.zeros(table.rows)
        for column, label in self.categories:
            code = table.categories.get(column, {}).get(label)
            total += 1.0 if code is None else table.codes[column] != code
        for column, number, width in self.numbers:
            numbers = table.numbers.get(column)
            if numbers is None:
                total += 1.0
                continue
            with np.errstate(all="ignore"):
                apart = np.abs(numbers.astype(np.float64) - number) / width
            total += np.minimum(np.nan_to_num(apart, nan=1.0), 1.0)
        return total / max(1, len(self.categories) + len(self.numbers))

    def near(self, table: Table) -> list[float]:
        """Return the number of rows within each radius, and the distance of the nearest row."""
        if not table.rows:
            return self.nothing
        apart = self.of_table(table)
        limits = [radius + _ROUNDING if radius else 0.0 for radius in _RADII]
        return [*(float(np.count_nonzero(apart <= limit)) for limit in limits), float(apart.min())]
