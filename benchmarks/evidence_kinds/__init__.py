"""Seeded audits of every kind, for `benchmarks/same_evidence.py`: one module for each group of kinds.

Each module holds `FAMILIES`.  Nothing here imports more of dpaudit than the names of `dpaudit` itself and its command
line, so that these audits run unchanged on any commit whose files and classes have other names.

Running times are evidence only under `observe_time`, which no seed repeats.  So no kind uses it, and the attacks on
running times get outputs that state their own times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Found = Any
"""What a kind returns: an `AuditResult`, or a dict of such and of plain values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Kinds that are run together."""

    names: tuple[str, ...]
    run: Callable[[Sequence[str], Path], Mapping[str, Found]]  # some of the names, an empty folder -> what was found


def family(group: str, kinds: Mapping[str, Callable[[Path], Found]]) -> list[Family]:
    """One family for each of these kinds; its function gets an empty folder."""
    return [_single(f"{group}/{name}", kind) for name, kind in kinds.items()]


def _single(name: str, kind: Callable[[Path], Found]) -> Family:
    return Family(names=(name,), run=lambda _, folder: {name: kind(folder)})
