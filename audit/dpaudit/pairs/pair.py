"""Defines pairs of neighbouring datasets, and checks whether a pair satisfies its stated neighbouring relation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from dpaudit.pairs.difference import MAX_COMPARED, brief, hidden_difference
from dpaudit.text import relation_meant
from dpaudit.values import Dataset, key

Relation = Literal["add_remove", "replace_one", "unspecified"]
Row = Mapping[str, Any]

RELATIONS: tuple[str, ...] = get_args(Relation)


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair of neighbouring datasets, on which a claim limits how well outputs can be distinguished.

    The author of the claim defines the neighbouring relation.  The audit only refuses pairs whose records contradict
    `relation` (`check_relation`).

    Args:
        d0: The first dataset, any object that the mechanism accepts.
        d1: The second dataset, which must be a neighbour of d0.
        relation: "add_remove", "replace_one" or "unspecified", otherwise a ValueError is raised.
        label: The name of the pair in the report; if empty, the report shows both datasets, or a shortened first
            dataset and the difference, such as "record 31 added: 7".
    """

    d0: Dataset
    d1: Dataset
    relation: Relation = "unspecified"
    label: str = ""

    def __post_init__(self) -> None:
        if self.relation not in RELATIONS:
            meant = relation_meant(self.relation, RELATIONS)
            raise ValueError(f"relation must be one of {', '.join(RELATIONS)}, got {self.relation!r}{meant}")

    def __str__(self) -> str:
        difference = "" if self.label else hidden_difference(self.d0, self.d1)
        return f"{brief(self.d0)} | {difference}" if difference else self.shortened

    @property
    def shortened(self) -> str:
        """The label of the pair, or the shortened texts of both datasets.  The two shortened texts may be equal."""
        return self.label or f"{brief(self.d0)} | {brief(self.d1)}"


def check_relation(pair: Pair) -> None:
    """Refuse a pair whose records contradict the stated relation, because a claim is about neighbours only."""
    if words := contradiction(pair):
        raise ValueError(
            f"{words}.  Change the datasets or the relation.  If an item is not a record, or a person has several "
            "records, the relation is unspecified"
        )


def contradiction(pair: Pair) -> str:
    """Return why the records of a pair of datasets contradict the stated neighbouring relation; "" if they do not."""
    n0, n1 = number_of_records(pair.d0), number_of_records(pair.d1)
    if n0 is None or n1 is None or pair.relation == "unspecified":
        return ""
    start = f"the relation is {pair.relation}, but"
    numbers = f"d0 has {n0} record{'' if n0 == 1 else 's'} and d1 has {n1}"
    if pair.relation == "replace_one" and n0 != n1:
        return f"{start} {numbers}: replacing a record does not change the number of records"
    if pair.relation == "add_remove" and n0 == n1:
        return f"{start} {numbers} (rows or items count as records): no record was added or removed"
    if pair.relation == "add_remove" and abs(n0 - n1) > 1:
        return f"{start} {numbers}: neighbours differ by one record"
    only0, only1 = _unshared(pair.d0, pair.d1)
    if pair.relation == "replace_one":
        return f"{start} d0 and d1 differ in {only0} records (each item counts as a record)" if only0 > 1 else ""
    if min(only0, only1) > 0:
        return (
            f"{start} d1 lacks {only0} of d0's records and d0 lacks {only1} of d1's records (each item counts as a "
            "record): neighbours differ by one record"
        )
    return ""


def _unshared(d0: Dataset, d1: Dataset) -> tuple[int, int]:
    """Return the number of records only in d0 and the number only in d1, or (0, 0) if records cannot be compared."""
    if not (isinstance(d0, list | tuple) and isinstance(d1, list | tuple)):
        return 0, 0
    d0, d1 = _without_shared_ends(d0, d1)
    plain = (int, float, str, bytes, tuple, list, dict, type(None))  # others may lack an equality method
    if len(d0) > MAX_COMPARED or not all(isinstance(record, plain) for record in (*d0, *d1)):
        return 0, 0

    def hashable(record: object) -> object:
        try:
            hash(record)
        except TypeError:
            return repr(record)
        return repr(record) if record != record else record  # NaN differs from itself

    records0, records1 = Counter(map(hashable, d0)), Counter(map(hashable, d1))
    return (records0 - records1).total(), (records1 - records0).total()


def _without_shared_ends(d0: Dataset, d1: Dataset) -> tuple[Dataset, Dataset]:
    """Return two lists without the objects that they share at the beginning and at the end."""
    for _ in range(2):
        shared = next((i for i, (x, y) in enumerate(zip(d0, d1, strict=False)) if x is not y), min(len(d0), len(d1)))
        d0, d1 = d0[shared:][::-1], d1[shared:][::-1]
    return d0, d1


def number_of_records(dataset: Dataset) -> int | None:
    """Return the number of records of a dataset; None for text, mappings and what is no sized collection."""
    shape = getattr(dataset, "shape", None)
    if shape is not None:
        return int(shape[0]) if isinstance(shape, tuple) and shape and isinstance(shape[0], int) else None
    if isinstance(dataset, str | bytes | bytearray | memoryview | Mapping) or not isinstance(dataset, Sized):
        return None
    return len(dataset)


def distinct(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the pairs, and number names that occur repeatedly, such as "one above (2)"."""
    found: dict[str, Pair] = {}
    for pair in pairs:
        name, number = str(pair), 1
        while name in found:
            number += 1
            name = f"{pair} ({number})"
        found[name] = pair if number == 1 else replace(pair, label=name)
    return list(found.values())


def target_rows(pair: Pair) -> tuple[Row | None, Row | None]:
    """Return the rows that only d0 and only d1 of a pair of tables has, regardless of the order of rows."""
    try:
        lists = isinstance(pair.d0, list) and isinstance(pair.d1, list)
        d0, d1 = _without_shared_ends(pair.d0, pair.d1) if lists else (pair.d0, pair.d1)
        rows = _rows(d0), _rows(d1)
        counts = [Counter(key(sorted(row.items())) for row in side) for side in rows]
        only = counts[0] - counts[1], counts[1] - counts[0]
        if max(side.total() for side in only) > 1:
            return None, None
        targets = [
            next((row for row in side if key(sorted(row.items())) in unshared), None)
            for side, unshared in zip(rows, only, strict=True)
        ]
        return targets[0], targets[1]
    except Exception:  # no tables; a comparison calls methods of the datasets, which may raise any exception
        return None, None


def candidates(pair: Pair) -> tuple[Any, ...]:
    """Return the record that only d0 has and the one that only d1 has, or one of them if one side has no such record.

    These are the datasets themselves if they are no lists of records, or differ in several records.
    """
    rows = tuple(row for row in target_rows(pair) if row is not None)
    if rows or not all(isinstance(dataset, list | tuple | np.ndarray) for dataset in (pair.d0, pair.d1)):
        return rows or (pair.d0, pair.d1)
    try:
        sides = _without_shared_ends(pair.d0, pair.d1)
        counts = [Counter(map(key, side)) for side in sides]
        only = counts[0] - counts[1], counts[1] - counts[0]
        if max(side.total() for side in only) == 1:
            return tuple(next(x for x in side if key(x) in own) for side, own in zip(sides, only, strict=True) if own)
    except Exception:  # a comparison calls methods of the records, which may raise any exception
        pass
    return pair.d0, pair.d1


def _rows(dataset: Any) -> list[Row]:
    """Return the rows of a table; raise an exception if the dataset is no table or is too large."""
    if isinstance(dataset, list | tuple):
        if len(dataset) > MAX_COMPARED or not all(type(row) is dict for row in dataset):
            raise ValueError
        return [{str(title): entry for title, entry in row.items()} for row in dataset]
    if isinstance(dataset, dict):
        if not all(isinstance(entries, list | tuple | np.ndarray) for entries in dataset.values()):
            raise ValueError
        names, size = list(dataset), sum(map(len, dataset.values()))
    else:
        names = list(dataset.columns if hasattr(dataset, "columns") else dataset.dtype.names)
        size = len(names) * len(dataset)
    if size > MAX_COMPARED:
        raise ValueError
    columns = [dataset[name].tolist() if isinstance(dataset, np.ndarray) else list(dataset[name]) for name in names]
    return [dict(zip(map(str, names), row, strict=True)) for row in zip(*columns, strict=True)]
