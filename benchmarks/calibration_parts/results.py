"""Make the audits of rows, keep them in a store, and count their events.

The key of an audit names the versions and the code with which it was made.  So a row never counts audits of different
versions.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from audit_store import Store
from joblib import Parallel, delayed

from calibration_parts import BEGAN, Outcome, Row
from calibration_parts.code import digest_of_benchmarks, newest, versions

_CHANGED = "the source code of the audits changed during the command; run it again"
SECONDS = "seconds"  # the key of an audit's processor time in the store


class CodeChangedError(RuntimeError):
    """The source code of dpaudit changed while the audits were made."""


@dataclass
class Audits:
    """The audits in a store that were made with the present versions and the present code.

    Raises:
        CodeChangedError: If the source code changed since the command began to import it.
    """

    store: Store
    rows: Sequence[Row]
    versions: dict[str, str] = field(default_factory=lambda: versions())
    began: float = BEGAN
    sources: dict[tuple[str, ...], str] = field(init=False)  # maps the files of a row to their digest
    checked: dict[tuple[str, ...], float] = field(default_factory=dict)  # and to their latest change that was checked

    def __post_init__(self) -> None:
        self.sources = {names: digest_of_benchmarks(names) for names in {row.sources for row in self.rows}}
        if newest(name for names in self.sources for name in names) > self.began:
            raise CodeChangedError(_CHANGED)

    def key(self, row: Row, seed: int) -> str:
        made_with = " ".join(self.versions.values())
        return f"{made_with} {self.sources[row.sources]} {row.audited} {seed}"

    def found(self, row: Row) -> list[Outcome]:
        """Return the finished audits of a row, from its first seed to the first seed that is missing."""
        found, seed = [], row.first_seed
        while (outcome := self.store.done.get(self.key(row, seed))) is not None:
            found.append(outcome)
            seed += 1
        return found

    def make(self, row: Row, audits: int, jobs: int) -> None:
        """Make those of the row's first audits that are not in the store.

        Raises:
            CodeChangedError: If the source code changed since this object was made.
        """
        seeds = range(row.first_seed, row.first_seed + audits)
        missing = [seed for seed in seeds if self.key(row, seed) not in self.store.done]
        for seed, outcome in _made(row, missing, jobs):
            self._check_code(row)
            self.store.add(self.key(row, seed), outcome)

    def _check_code(self, row: Row) -> None:
        if (changed := newest(row.sources)) > self.checked.get(row.sources, self.began):
            if versions() != self.versions or digest_of_benchmarks(row.sources) != self.sources[row.sources]:
                raise CodeChangedError(_CHANGED)
            self.checked[row.sources] = changed


def summary(row: Row, found: Sequence[Outcome]) -> dict[str, Any]:
    """Return the counts of a row as plain values for a JSON file."""
    events = [row.events({name: value for name, value in one.items() if name != SECONDS}) for one in found]
    return {
        "part": row.part,
        "cells": list(row.cells),
        "made": row.audited,  # rows with the same name count events of the same audits
        "audits": len(found),
        "seconds": float(f"{sum(one[SECONDS] for one in found) / len(found):.3g}"),
        "counts": {name: sum(one[name] for one in events) for name in events[0]},
        "limits": {name: {"rate": limit.rate, "least": limit.least} for name, limit in row.limits.items()},
    }


def broken(row: Row, found: Sequence[Outcome]) -> list[str]:
    """Return the events whose counts are beyond their limits."""
    counts = summary(row, found)["counts"]
    return [name for name, limit in row.limits.items() if limit.broken(len(found), counts[name])]


def _made(row: Row, seeds: Sequence[int], jobs: int) -> Iterator[tuple[int, Outcome]]:
    if jobs == 1:
        yield from (timed(row, seed) for seed in seeds)
    else:
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(timed)(row, seed) for seed in seeds)


def timed(row: Row, seed: int) -> tuple[int, Outcome]:
    """Make one audit, and return its outcome with the seconds of processor time."""
    began = _processor_seconds()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = row.audit(seed)
    return seed, {**outcome, SECONDS: round(_processor_seconds() - began, 3)}


def _processor_seconds() -> float:
    """Return the processor time of this process and of its finished children."""
    return sum(os.times()[:4])
