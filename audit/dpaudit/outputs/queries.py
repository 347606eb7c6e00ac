"""Counting queries of tables: how many rows satisfy up to three conditions, or resemble the target record.

Conditions such as "city = Ulm" are proposed from past tables, and those conjunctions chosen that tell d0 from d1 best.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import AnyArray, Array, Flags
from dpaudit.outputs.entries import label_of
from dpaudit.outputs.tables import Parts, Table, read_column, some_rows
from dpaudit.values import OUTPUT, Feature, words

_MAX_CATEGORIES = 24  # maximum number of categories of a column, or of numbers that are compared by equality
# a text that needs no quotation marks, unlike that of a constant
_PLAIN_LABEL = re.compile(r"'(?!(?:None|nan|True|False)')([^\W\d_][\w .-]{0,38})'")

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
            return f"{self.column} = {plain[1] if plain else self.value}"
        written = f"{self.value:.15g}" if self.relation == "=" else f"{self.value:.6g}"
        if self.time:
            written = str(np.datetime64(round(self.value), "us").astype("M8[s]")).removesuffix("T00:00:00")
        return f"{self.column} {self.relation} {written}"

    def holds(self, table: Table) -> Flags:
        """Return a mask, (rows,), of the rows that satisfy the condition; no row if the column is missing."""
        if isinstance(self.value, str):
            code = table.categories.get(self.column, {}).get(self.value)
            return np.zeros(table.rows, dtype=bool) if code is None else table.codes[self.column] == code
        compare = {"=": np.equal, "above": np.greater, "at most": np.less_equal}[self.relation]
        numbers = table.numbers.get(self.column, np.full(table.rows, np.nan))
        with np.errstate(invalid="ignore"):
            return np.asarray(compare(numbers, self.value))


def proposed(tables: Sequence[Table]) -> list[Condition]:
    """Return conditions on each column: frequent categories and numbers, and cuts between numbers near quantiles."""
    conditions: list[Condition] = []
    for column in dict.fromkeys(column for table in tables for column in table.codes):
        often: Counter[str] = Counter()
        for table in tables:
            often.update(list(table.categories.get(column, ())))  # a mapping would add up its codes
        conditions += [Condition(column, "=", label) for label, _ in often.most_common(_MAX_CATEGORIES)]
    for column, values in _samples(tables).items():
        if not len(values):
            continue
        time = any(column in table.times for table in tables)
        distinct = np.unique(values)
        if len(distinct) <= _MAX_CATEGORIES:
            conditions += [Condition(column, "=", float(value), time) for value in distinct]
        ordered = np.sort(values)
        low = np.unique(ordered[((len(ordered) - 1) * np.linspace(0, 1, 9)[1:-1]).astype(np.intp)])
        low = low[low < ordered[-1]]
        cuts = low / 2 + ordered[np.searchsorted(ordered, low, side="right")] / 2
        conditions += [Condition(column, "above", cut, time) for cut in cuts.tolist()]
    return conditions


def of_row(row: Mapping[str, object], tables: Sequence[Table]) -> list[Condition]:
    """Return the conditions that a row satisfies: its categories, its numbers, and the next cuts around its numbers."""
    conditions: list[Condition] = []
    samples = _samples(tables)
    for column, entry in row.items():
        known, number = samples.get(column), _as_number(entry)
        if known is None or number is None:
            conditions.append(Condition(column, "=", label_of(entry)))
            continue
        time = any(column in table.times for table in tables)
        conditions.append(Condition(column, "=", number, time))
        below, above = known[known < number], known[known > number]
        if len(below):
            conditions.append(Condition(column, "above", (float(np.quantile(below, 0.9)) + number) / 2, time))
        if len(above):
            conditions.append(Condition(column, "at most", (float(np.quantile(above, 0.1)) + number) / 2, time))
    return conditions


def _as_number(entry: object) -> float | None:
    """Return an entry of a row as the number that a table would hold; None for a category or a missing entry."""
    numbers = read_column([entry]).numbers
    return None if numbers is None or not np.isfinite(numbers[0]) else float(numbers[0])


def _samples(tables: Sequence[Table]) -> dict[str, Array]:
    """Return some finite numbers of each column of numbers."""
    pieces: dict[str, list[AnyArray]] = {}
    for table in tables:
        for column, numbers in table.numbers.items():
            step = max(1, len(numbers) // 200)  # cuts are learned from about 200 rows of each table
            pieces.setdefault(column, []).append(numbers[::step])
    pooled = {column: np.concatenate(found).astype(np.float64) for column, found in pieces.items()}
    return {column: values[np.isfinite(values)] for column, values in pooled.items()}


def count_association(counts: Array, side: Flags) -> Array:
    """Return how much each column's mean, or its rate of counts above 0, differs between datasets, standardised."""
    n0, n1 = int((~side).sum()), int(side.sum())
    if not n0 or not n1:
        return np.zeros(counts.shape[1])
    differences = [np.zeros(counts.shape[1])]
    for columns in (counts, (counts > 0).astype(counts.dtype)):
        first, second = columns[~side], columns[side]
        # 0.25 is added, so that few equal counts are no certainty
        variance = (first.var(axis=0) + 0.25) / n0 + (second.var(axis=0) + 0.25) / n1
        differences.append(np.abs(second.mean(axis=0) - first.mean(axis=0)) / np.sqrt(variance))
    return np.asarray(np.max(differences, axis=0))


_RADII = (0.0, 0.1, 0.3)  # distances within which rows are counted


@dataclass(frozen=True, slots=True)
class Nearness:
    """The distances of rows to a record: the mean over its columns of differences between 0 and 1 (Gower 1971).

    Numbers differ by a share of the range of past numbers, and categories by 0 or 1.
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
            number = _as_number(entry)
            known = [table.numbers[column] for table in tables if column in table.numbers]
            if number is None or not known:
                categories.append((column, label_of(entry)))
            else:
                values = np.concatenate([*known, [number]])
                numbers.append((column, number, float(np.ptp(values[np.isfinite(values)])) or 1.0))
        return cls(tuple(categories), tuple(numbers), word)

    def names(self, rows: str) -> list[str]:
        """Return the names of the numbers that `of` returns."""
        counted = [f"{rows} {f'within {radius:g} of' if radius else 'equal to'} {self.word}" for radius in _RADII]
        return [*counted, f"distance of {self.word} to the nearest of the {rows}"]

    def of_table(self, table: Table) -> Array:
        """Return the distance of each row, (rows,)."""
        total = np.zeros(table.rows)
        for column, label in self.categories:
            code = table.categories.get(column, {}).get(label)
            total += 1.0 if code is None else table.codes[column] != code
        for column, number, width in self.numbers:
            numbers = table.numbers.get(column, np.full(table.rows, np.nan))
            with np.errstate(all="ignore"):
                apart = np.abs(numbers.astype(np.float64) - number) / width
            total += np.minimum(np.nan_to_num(apart, nan=1.0), 1.0)
        return total / max(1, len(self.categories) + len(self.numbers))

    def near(self, table: Table | None) -> list[float]:
        """Return the number of rows within each radius, and the distance of the nearest row."""
        if table is None or not table.rows:
            return [0.0] * len(_RADII) + [np.nan]
        apart = self.of_table(table)
        # a distance is a mean with rounding errors, but equal rows have the distance 0 exactly
        within = [np.count_nonzero(apart <= (radius + 1e-9 if radius else 0.0)) for radius in _RADII]
        return [*map(float, within), float(apart.min())]


def chosen_queries(
    tables: Sequence[Table | None],
    side: Flags,
    proposed: Sequence[Condition],
    of_targets: Sequence[Condition],
) -> list[tuple[Condition, ...]]:
    """Return queries with strong associations, the strongest first, without constant and duplicate queries.

    Conditions are tried alone, and the strongest in conjunctions.  Associations count as far as they exceed sqrt(2 log
    m), which is about the largest of m standard normal numbers, for m queries with as many conditions.
    """
    conditions = list(dict.fromkeys([*of_targets, *proposed]))
    if not conditions:
        return []
    masks = [
        None
        if table is None
        else np.array([some_rows(one.holds(table), 5_000) for one in conditions], dtype=np.float32)
        for table in tables
    ]
    single = np.array([np.zeros(len(conditions)) if mask is None else mask.sum(axis=1) for mask in masks])
    order = np.argsort(-count_association(single, side), kind="stable").tolist()
    targets = len(dict.fromkeys(of_targets))
    # conjunctions are tried of twelve conditions of the targets, and of twelve others
    base = [*[i for i in order if i < targets][:12], *[i for i in order if i >= targets][:12]]
    pairs, triples = (_conjunctions([conditions[i].column for i in base], size) for size in (2, 3))
    place = np.zeros((len(base), len(base)), dtype=np.intp)  # of each pair of conditions
    place[pairs[:, 0], pairs[:, 1]] = np.arange(len(pairs))
    several = []
    for mask in masks:
        if mask is None or not mask.shape[1]:
            several.append(np.zeros(len(pairs) + len(triples)))
            continue
        both = mask[base][pairs[:, 0]] * mask[base][pairs[:, 1]]
        three = both @ mask[base].T
        in_triples = three[place[triples[:, 0], triples[:, 1]], triples[:, 2]]
        several.append(np.concatenate([both.sum(axis=1), in_triples]))
    counts = np.hstack([single, np.array(several)])
    queries = [(i,) for i in range(len(conditions))]
    queries += [tuple(base[j] for j in chosen) for places in (pairs, triples) for chosen in places.tolist()]
    strength = count_association(counts, side)
    sizes = np.array([len(query) for query in queries])
    for size in (1, 2, 3):
        strength[sizes == size] -= np.sqrt(2 * np.log(max(1, int(np.count_nonzero(sizes == size)))))
    best: dict[bytes, int] = {}
    for j in np.argsort(-strength, kind="stable").tolist():
        column = np.ascontiguousarray(counts[:, j])
        if not (column == column[0]).all():
            best.setdefault(column.tobytes(), j)
        if len(best) == 48:
            break
    return [tuple(conditions[i] for i in queries[j]) for j in best.values()]


def _conjunctions(columns: list[str], size: int) -> npt.NDArray[np.intp]:
    """Return the sets of `size` places with different columns, (sets, size)."""
    places = itertools.combinations(range(len(columns)), size)
    chosen = [some for some in places if len({columns[j] for j in some}) == size]
    return np.array(chosen, dtype=np.intp).reshape(-1, size)


Row = Mapping[str, object]
Targets = tuple[Row | None, Row | None]
"""The row of d0 that d1 lacks, and the row of d1 that d0 lacks; None if there is no such row or it is unknown."""


@dataclass(frozen=True, eq=False)
class TableQueries:
    """Queries of one table among the parts of outputs."""

    table: Feature
    conditions: tuple[Condition, ...]
    queries: tuple[tuple[int, ...], ...]  # indices of the conditions of each query
    targets: tuple[Nearness, ...]
    tried: int = 0  # number of the queries of up to three conditions among which these were chosen

    @property
    def names(self) -> list[str]:
        """The name of each column."""
        rows = "rows" if self.table == OUTPUT else f"rows of {words(self.table)}"
        counted = [f"{rows} with {' and '.join(str(self.conditions[i]) for i in query)}" for query in self.queries]
        return [*counted, *(name for near in self.targets for name in near.names(rows))]

    def counts(self, table: Table | None) -> Array:
        """Return the answers to all queries of one table.  A missing table has no rows."""
        distances = [number for near in self.targets for number in near.near(table)]
        if table is None:
            return np.array([*[0.0] * len(self.queries), *distances])
        holds = np.array([condition.holds(table) for condition in self.conditions], dtype=bool)
        holds = holds.reshape(len(self.conditions), table.rows)
        first, second, third = self._places
        counted = np.count_nonzero(holds[first] & holds[second] & holds[third], axis=1)
        return np.array([*counted.tolist(), *distances])

    @cached_property
    def _places(self) -> npt.NDArray[np.intp]:
        """The indices of three conditions of each query, (3, queries).  Shorter queries repeat a condition."""
        padded = [(*query, query[0], query[0])[:3] for query in self.queries]
        return np.array(padded, dtype=np.intp).reshape(-1, 3).T


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """The queries of all tables of an output."""

    tables: tuple[TableQueries, ...]
    targets: Targets

    @classmethod
    def of(cls, past: Sequence[Parts], side: Flags, targets: Targets) -> Queries | None:
        """Choose queries of at most two tables by n past outputs; `side` (n,) is true for d1.  None without tables."""
        names = dict.fromkeys(name for parts in past for name in parts.tables)
        if not names:
            return None
        # queries are chosen from 100 past outputs of each dataset
        latest = np.concatenate([np.flatnonzero(side == which)[-100:] for which in (False, True)])
        side, both = side[latest], None not in targets
        rows = [(row, f"the record{f' of d{i}' if both else ''}") for i, row in enumerate(targets) if row is not None]
        chosen = []
        for name in names:
            found = [past[i].tables.get(name) for i in latest]
            tables = [table for table in found if table is not None]
            known = np.array([table is not None for table in found])
            if all(known[side == which].mean() < 0.5 for which in set(side.tolist())):
                continue  # fewer than half of the outputs of either dataset contain the table
            of_targets = [condition for row, _ in rows for condition in of_row(row, tables)]
            learned = proposed(tables)
            queries = chosen_queries(found, side, learned, of_targets)
            conditions = list(dict.fromkeys(condition for query in queries for condition in query))
            number = len({*of_targets, *learned})
            table_queries = TableQueries(
                name,
                tuple(conditions),
                tuple(tuple(map(conditions.index, query)) for query in queries),
                tuple(Nearness.of(row, tables, word) for row, word in rows),
                tried=sum(math.comb(number, size) for size in (1, 2, 3)),
            )
            chosen.append(table_queries)
        return cls(tuple(chosen[:2]), targets)

    @property
    def names(self) -> list[str]:
        """The name of each column."""
        return [name for table in self.tables for name in table.names]

    @property
    def tried(self) -> int:
        """The number of all columns that could have been chosen; only some conjunctions are computed."""
        return sum(one.tried + len(one.names) - len(one.queries) for one in self.tables)

    def table_of(self, column: int) -> Feature:
        """Return the table that a column is about."""
        return [one.table for one in self.tables for _ in one.names][column]

    def features(self, outputs: Sequence[Parts]) -> Array:
        """Return the answers to all queries for n outputs, (n, queries)."""
        if not self.tables or not outputs:
            return np.zeros((len(outputs), len(self.names)))
        return np.array(
            [np.concatenate([one.counts(parts.tables.get(one.table)) for one in self.tables]) for parts in outputs]
        )
