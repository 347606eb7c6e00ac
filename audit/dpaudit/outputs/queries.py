"""Computes counting queries of tables: how many rows satisfy up to three conditions, or resemble the target record.

The queries are chosen among thousands by their association with the dataset among past outputs.  So the counts of an
output depend only on this output and on past outputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import Array
from dpaudit.outputs.query_choice import Condition, Nearness, chosen_queries, of_row, proposed
from dpaudit.outputs.tables import Parts, Table
from dpaudit.values import OUTPUT, Feature, words

_MAX_TABLES = 100  # maximum number of past outputs of each dataset from which queries are chosen

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
        if table is None:
            return np.array([*[0.0] * len(self.queries), *(number for near in self.targets for number in near.nothing)])
        holds = np.zeros((len(self.conditions), table.rows), dtype=bool)
        for row, condition in zip(holds, self.conditions, strict=True):
            row[:] = condition.holds(table)
        first, second, third = self._places
        counted = np.count_nonzero(holds[first] & holds[second] & holds[third], axis=1)
        return np.array([*counted.tolist(), *(number for near in self.targets for number in near.near(table))])

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
    def of(cls, past: Sequence[Parts], side: npt.NDArray[np.bool_], targets: Targets) -> Queries | None:
        """Choose queries of at most two tables by n past outputs; `side` (n,) is true for d1.  None without tables."""
        names = dict.fromkeys(name for parts in past for name in parts.tables)
        if not names:
            return None
        latest = np.concatenate([np.flatnonzero(side == which)[-_MAX_TABLES:] for which in (False, True)])
        some, side = [past[i].tables for i in latest], side[latest]
        chosen = [_chosen(name, [tables.get(name) for tables in some], side, targets) for name in names]
        return cls(tuple(one for one in chosen if one is not None)[:2], targets)

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


def _chosen(
    name: Feature, found: Sequence[Table | None], side: npt.NDArray[np.bool_], targets: Targets
) -> TableQueries | None:
    """Choose the queries of one table; None if fewer than half of the outputs of either dataset contain the table."""
    tables = [table for table in found if table is not None]
    known = np.array([table is not None for table in found])
    if not tables or all(known[side == which].mean() < 0.5 for which in set(side.tolist())):
        return None
    rows = [row for row in targets if row is not None]
    of_targets = [condition for row in rows for condition in of_row(row, tables)]
    learned = proposed(tables)
    queries = chosen_queries(found, side, learned, of_targets)
    number = len({*of_targets, *learned})
    conditions = tuple(dict.fromkeys(condition for query in queries for condition in query))
    return TableQueries(
        name,
        conditions,
        tuple(tuple(conditions.index(condition) for condition in query) for query in queries),
        tuple(Nearness.of(row, tables, _word(row, targets)) for row in rows),
        tried=sum(math.comb(number, size) for size in (1, 2, 3)),
    )


def _word(row: Row, targets: Targets) -> str:
    if targets[0] is None or targets[1] is None:
        return "the record"
    return "the record of d0" if row is targets[0] else "the record of d1"
