"""Chooses conjunctions of up to three conditions whose counts tell the outputs on d0 from the outputs on d1."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpaudit.numerics.arrays import Array
from dpaudit.outputs.association import count_association
from dpaudit.outputs.conditions import Condition
from dpaudit.outputs.tables import Table, some_rows

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
