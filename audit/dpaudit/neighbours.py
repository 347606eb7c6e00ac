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
