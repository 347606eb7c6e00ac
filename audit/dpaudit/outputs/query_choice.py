"""Proposes conditions such as "city = Ulm", and chooses conjunctions whose counts tell d0 from d1."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import AnyArray, Array
from dpaudit.outputs.entries import label_of
from dpaudit.outputs.tables import Table, read_column, some_rows

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


_LEAST_VARIANCE = 0.25  # added to the variance of counts, so that few equal counts are no certainty


def association(matrix: Array, side: npt.NDArray[np.bool_]) -> Array:
    """Return the standardised difference of each column between the outputs on d0 and the outputs on d1.

    The difference of a column is the maximum of the difference of its means and the difference of its rates of missing
    values.
    """
    strength = np.zeros(matrix.shape[1])
    with np.errstate(all="ignore"):
        missing = np.isnan(matrix)
        some = np.flatnonzero(missing.any(axis=0))  # indices of the columns with at least one missing value
        strength[some] = _gap(missing[:, some].astype(float), side)
        strength = np.maximum(strength, _gap(np.nan_to_num(matrix, posinf=1e300, neginf=-1e300), side))
    return strength


def count_association(counts: Array, side: npt.NDArray[np.bool_]) -> Array:
    """Return the difference of each column of counts between both datasets, in standard errors.

    The difference of a column is the maximum of two differences: of the mean counts, and of the rates of counts
    above 0.
    """
    n0, n1 = int((~side).sum()), int(side.sum())
    if not n0 or not n1:
        return np.zeros(counts.shape[1])
    found = np.zeros(counts.shape[1])
    for columns in (counts, (counts > 0).astype(counts.dtype)):
        first, second = columns[~side], columns[side]
        variance = (first.var(axis=0) + _LEAST_VARIANCE) / n0 + (second.var(axis=0) + _LEAST_VARIANCE) / n1
        found = np.maximum(found, np.abs(second.mean(axis=0) - first.mean(axis=0)) / np.sqrt(variance))
    return found


def _gap(columns: Array, side: npt.NDArray[np.bool_]) -> Array:
    """Return the difference between the clipped column means on d0 and d1, in standard deviations of each column."""
    low, high = np.quantile(columns.T.copy(), [0.02, 0.98], axis=1)
    clipped = np.where(low < high, np.clip(columns, low, high), np.sign(columns - low))
    difference = clipped[side].mean(axis=0) - clipped[~side].mean(axis=0)
    error = clipped.std(axis=0) + 1e-300
    gap: Array = np.nan_to_num(np.abs(difference) / error)
    return gap


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


_MAX_BASE = 12  # number of proposed conditions of which conjunctions are tried, and the same number for the targets
_MAX_QUERIES = 48
_MAX_ROWS = 5_000  # maximum number of rows of each table from which queries are chosen

Query = tuple[Condition, ...]
Places = npt.NDArray[np.intp]


def chosen_queries(
    tables: Sequence[Table | None],
    side: npt.NDArray[np.bool_],
    proposed: Sequence[Condition],
    of_targets: Sequence[Condition],
) -> list[Query]:
    """Return queries with strong associations, the strongest first, without constant and duplicate queries.

    Every condition is tried alone.  Conjunctions are tried of the conditions with the strongest associations.
    """
    conditions = list(dict.fromkeys([*of_targets, *proposed]))
    if not conditions:
        return []
    some = [None if table is None else _holds(table, conditions) for table in tables]
    single = np.array([np.zeros(len(conditions)) if holds is None else holds.sum(axis=1) for holds in some])
    strength = count_association(single, side)
    order = np.argsort(-strength, kind="stable").tolist()
    targets = len(dict.fromkeys(of_targets))
    base = [*[i for i in order if i < targets][:_MAX_BASE], *[i for i in order if i >= targets][:_MAX_BASE]]
    pairs, triples = (_conjunctions(base, conditions, size) for size in (2, 3))
    counts = np.hstack([single, np.array([_several(holds, base, pairs, triples) for holds in some])])
    queries = [(i,) for i in range(len(conditions))]
    queries += [tuple(base[j] for j in found) for places in (pairs, triples) for found in places.tolist()]
    return [tuple(conditions[i] for i in queries[j]) for j in _best(counts, queries, side)]


def _holds(table: Table, conditions: Sequence[Condition]) -> npt.NDArray[np.float32]:
    return np.array([some_rows(condition.holds(table), _MAX_ROWS) for condition in conditions], dtype=np.float32)


def _conjunctions(base: list[int], conditions: Sequence[Condition], size: int) -> Places:
    """Return the sets of `size` base conditions on different columns, as places in the base; shape (sets, size)."""
    columns = [conditions[i].column for i in base]
    found = [
        places for places in itertools.combinations(range(len(base)), size) if len({columns[j] for j in places}) == size
    ]
    return np.array(found, dtype=np.intp).reshape(-1, size)


def _several(holds: npt.NDArray[np.float32] | None, base: list[int], pairs: Places, triples: Places) -> Array:
    """Return the number of rows of one table that satisfy each conjunction of two, and of three conditions."""
    if holds is None or not holds.shape[1]:
        return np.zeros(len(pairs) + len(triples))
    first = holds[base]
    both = first[pairs[:, 0]] * first[pairs[:, 1]]
    place = np.zeros((len(base), len(base)), dtype=np.intp)
    place[pairs[:, 0], pairs[:, 1]] = np.arange(len(pairs))
    three = both @ first.T
    return np.concatenate([both.sum(axis=1), three[place[triples[:, 0], triples[:, 1]], triples[:, 2]]])


def _best(counts: Array, queries: Sequence[tuple[int, ...]], side: npt.NDArray[np.bool_]) -> list[int]:
    """Return the indices of the chosen queries.

    The largest of m standard normal numbers is about sqrt(2 log m).  So an association counts only as far as it exceeds
    what chance explains among the queries with as many conditions.
    """
    strength = count_association(counts, side)
    sizes = np.array([len(query) for query in queries])
    for size in (1, 2, 3):
        strength[sizes == size] -= np.sqrt(2 * np.log(max(1, int(np.count_nonzero(sizes == size)))))
    seen: set[bytes] = set()
    best: list[int] = []
    for j in np.argsort(-strength, kind="stable").tolist():
        column = np.ascontiguousarray(counts[:, j])
        if (column == column[0]).all() or column.tobytes() in seen:
            continue
        seen.add(column.tobytes())
        best.append(j)
        if len(best) == _MAX_QUERIES:
            break
    return best
