"""Pairs of neighbouring datasets."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, get_args

Relation = Literal["add_remove", "replace_one", "unspecified"]
_PLAIN = (int, float, str, bytes, tuple, list, dict, type(None))
_MOST_COMPARED = 100_000  # records; longer datasets would delay the audit

RELATIONS: tuple[str, ...] = get_args(Relation)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two datasets that the claim says cannot be told apart.

    `relation` says in what sense they are neighbours, for the report; whether they are is for whoever
    states the claim to say, and the audit takes it as given.
    """

    d0: Any
    d1: Any
    relation: Relation = "unspecified"
    label: str = ""

    def __post_init__(self) -> None:
        if self.relation not in RELATIONS:
            raise ValueError(f"relation must be one of {', '.join(RELATIONS)}, got {self.relation!r}")

    def __str__(self) -> str:
        return self.label or f"{brief(self.d0)} | {brief(self.d1)}"


def brief(dataset: Any, most: int = 40) -> str:
    """A dataset on one line, shortened to `most` characters."""
    text = " ".join(repr(dataset).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def doubts(pair: Pair) -> str:
    """Say why the stated relation is perhaps not that of the two datasets; "" if nothing speaks against it.

    The numbers of records of lists, tuples, arrays and data frames are compared, and of lists and tuples the records
    themselves, in any order.
    """
    n0, n1 = _records(pair.d0), _records(pair.d1)
    if n0 is None or n1 is None:
        return ""
    numbers = f"d0 has {n0} record{'' if n0 == 1 else 's'} and d1 has {n1}"
    if pair.relation == "replace_one" and n0 != n1:
        return f"the relation is replace_one, but {numbers}: a pair that replaces a record has as many in both"
    if pair.relation == "add_remove" and n0 == n1:
        return f"the relation is add_remove, but {numbers}: no record was added or removed, if these are records"
    if pair.relation == "add_remove" and abs(n0 - n1) > 1:
        return f"the relation is add_remove, but {numbers}: neighbours differ by one record"
    only0, only1 = _unshared(pair.d0, pair.d1)
    if pair.relation == "replace_one" and only0 > 1:
        return f"the relation is replace_one, but d0 and d1 differ in {only0} records, if these are records"
    if pair.relation == "add_remove" and min(only0, only1) > 0:
        return (
            f"the relation is add_remove, but d0 holds {only0} that d1 lacks and d1 holds {only1} that d0 lacks, "
            "if these are records: neighbours differ by one record"
        )
    return ""


def _unshared(d0: Any, d1: Any) -> tuple[int, int]:
    """How many records only d0 holds, and only d1; (0, 0) where records are not compared."""
    if not (isinstance(d0, list | tuple) and isinstance(d1, list | tuple)) or len(d0) > _MOST_COMPARED:
        return 0, 0
    if not all(isinstance(record, _PLAIN) for record in (*d0, *d1)):
        return 0, 0  # two objects of equal content may count as different
    records0, records1 = Counter(map(_record, d0)), Counter(map(_record, d1))
    return (records0 - records1).total(), (records1 - records0).total()


def _record(record: Any) -> Any:
    """The record, or its text if it has no hash or is NaN."""
    try:
        hash(record)
    except TypeError:
        return repr(record)
    return repr(record) if record != record else record


def _records(dataset: Any) -> int | None:
    """The number of records; None if the dataset is no list, tuple, array or data frame."""
    if isinstance(dataset, list | tuple):
        return len(dataset)
    shape = getattr(dataset, "shape", None)
    return int(shape[0]) if isinstance(shape, tuple) and shape and isinstance(shape[0], int) else None
