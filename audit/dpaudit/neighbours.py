"""Pairs of neighbouring datasets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

Relation = Literal["add_remove", "replace_one", "unspecified"]
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

    Only the numbers of records of lists, tuples, arrays and data frames are compared.
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
    return ""


def _records(dataset: Any) -> int | None:
    """The number of records; None if the dataset is no list, tuple, array or data frame."""
    if isinstance(dataset, list | tuple):
        return len(dataset)
    shape = getattr(dataset, "shape", None)
    return int(shape[0]) if isinstance(shape, tuple) and shape and isinstance(shape[0], int) else None
