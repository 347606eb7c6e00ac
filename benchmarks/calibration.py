"""Count how often the statements of dpaudit are false: benchmarks/calibration.md.

    python benchmarks/calibration.py [--seeds N | --minutes M] [--only TEXT ...] [--jobs 2] [--store FILE] [--write]

Each row is a setting in which an event has at most, or at least, a stated probability; for example, a refutation of a
claim that is exactly true.  The rows are in the modules of `calibration_cases`.  The command prints how often each
event occurred, and how often it may occur.  An event with the stated probability is beyond its limit with probability
at most 0.135 %, which corresponds to three standard errors of a normal law.

--write puts the counts into benchmarks/calibration.json, and the tables into benchmarks/calibration.md.  All finished
audits in the store count, from the first seed to the first missing seed.  `--seeds 0 --write` makes no audits.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from calibration_cases import Row, attacks, claims, short, sizes, stated
from measure import BENCHMARKS, SECONDS, Limit, Outcomes, Repetitions, Table, between, markdown, mean, run

RESULTS = Path(__file__).with_suffix(".json")
PAGE = BENCHMARKS / "calibration.md"


@dataclass(frozen=True, kw_only=True)
class Part:
    """The rows of a table, and its headings."""

    rows: Callable[[], list[Row]]
    cells: tuple[str, ...]  # headings of the words that describe a setting
    events: tuple[str, ...]  # headings of counts, which are also the beginnings of the names of their events
    allowed: str = "allowed"  # heading of the limits
    on_page: bool = True


_METHOD, _BOUNDS = ("mechanism", "method", "trials"), ("refuted", "mu", "epsilon", "band")
_MECHANISM, _LENGTH = ("mechanism", "trials", "confidence"), ("stream", "length")
_RARE, _SIZES = ("output", "route", "rare", "confidence", "settings"), ("mechanism", "claim", "which is")
PARTS = {
    "true claims": Part(rows=claims.true_claims, cells=_METHOD, events=_BOUNDS),
    "second stage": Part(rows=claims.second_stage, cells=_METHOD, events=_BOUNDS),
    "measuring": Part(rows=claims.measuring, cells=_METHOD, events=_BOUNDS, on_page=False),
    "late bets": Part(rows=claims.late_bets, cells=("mechanism", "trials"), events=("refuted", "mu")),
    "short audits": Part(rows=short.short_audits, cells=_MECHANISM, events=("refuted", "epsilon"), on_page=False),
    "rare outputs": Part(
        rows=short.rare_outputs, cells=_RARE, events=("refuted", "epsilon", "inconclusive"), on_page=False
    ),
    "sizes": Part(rows=sizes.sizes, cells=_SIZES, events=("false", "found", "inconclusive"), on_page=False),
    "misbehaving": Part(rows=attacks.misbehaving, cells=("case",), events=("refuted", "mu", "inconclusive")),
    "streams": Part(rows=sizes.streams, cells=_LENGTH, events=("refuted",)),
    "commands": Part(rows=sizes.commands, cells=("command", "trials"), events=("refuted",)),
    "stated": Part(
        rows=stated.stated, cells=("statement", "setting", "stated"), events=("came true",), allowed="bound"
    ),
}
"""The tables, in the order of the page; some are only printed."""


def summary(part: str, row: Row, outcomes: Outcomes) -> dict[str, Any]:
    """Return the counts of a row as plain values for calibration.json."""
    return {
        "part": part,
        "cells": list(row.cells),
        "made": row.stored_as or f"{part}: {', '.join(row.cells)}",  # the same if rows count events of the same audits
        "audits": len(outcomes),
        "seconds": float(f"{sum(outcome[SECONDS] for outcome in outcomes) / len(outcomes):.3g}"),
        "counts": row.counts(outcomes),
        "limits": {name: {"rate": limit.rate, "least": limit.least} for name, limit in row.limits.items()},
    }


def columns(part: str) -> dict[str, Callable[[Mapping[str, Any]], str]]:
    """Return what the columns after the setting show of a row of calibration.json."""
    return {
        "audits": lambda row: f"{row['audits']:,}",
        PARTS[part].allowed: lambda row: Limit(**next(iter(row["limits"].values()))).words(row["audits"]),
        **{event: partial(_count, event) for event in PARTS[part].events},
    }


def _count(beginning: str, row: Mapping[str, Any]) -> str:
    """Return the largest count of the events whose names have this beginning, in bold if a limit is broken."""
    counts = {name: count for name, count in row["counts"].items() if name.startswith(beginning)}
    limits = {name: Limit(**limit) for name, limit in row["limits"].items() if name in counts}
    words = f"{max(counts.values()):,}"
    if any(limit.broken(row["audits"], counts[name]) for name, limit in limits.items()):
        return f"**{words}**"
    return words if limits or beginning == "inconclusive" else ""


def tables(options: argparse.Namespace) -> list[Table]:
    return [_table(name, part.rows()) for name, part in PARTS.items()]


def _table(part: str, rows: Sequence[Row]) -> Table:
    def shown(column: Callable[[Mapping[str, Any]], str], row: Row, outcomes: Outcomes) -> str:
        return column(summary(part, row, outcomes))

    each = {heading: partial(shown, column) for heading, column in columns(part).items()}
    return Table(
        name=part,
        headings=PARTS[part].cells,
        columns={**each, "s": mean(SECONDS, ".2f")},
        cases=rows,
        written=PARTS[part].on_page,
    )


def page_with(results: Mapping[str, Any], page: str) -> str:
    """Return the page with the table of each part, and the versions, between their marks.

    Args:
        results: The content of calibration.json.
        page: The text of the page.

    Raises:
        ValueError: If the page lacks a mark.
    """
    texts = {"versions": _versions(results)}
    for name, part in PARTS.items():
        if part.on_page:
            rows = [row for row in results["rows"] if row["part"] == name]
            cells = [[*row["cells"], *(column(row) for column in columns(name).values())] for row in rows]
            texts[name] = markdown((*part.cells, *columns(name)), cells)
    for name, text in texts.items():
        page = between(f"<!-- calibration, {name}: begin -->", f"<!-- calibration, {name}: end -->", text, page)
    return page


def _versions(results: Mapping[str, Any]) -> str:
    made, rows = results["versions"], results["rows"]
    different = {row["made"]: row for row in rows}.values()
    audits = sum(row["audits"] for row in different)
    numbers = [row["audits"] for row in rows]
    hours = sum(row["audits"] * row["seconds"] for row in different) / 3600
    others = ", ".join(f"{name} {made[name]}" for name in ("numpy", "scipy", "scikit-learn"))
    return (
        f"All {len(rows)} rows were measured with the same code: dpaudit {made['dpaudit']} with the digest "
        f"`{made['code']}`,\nPython {made['python']}, {others}.\n"
        f"They count {audits:,} audits, which took {hours:.1f} hours of processor time.\n"
        f"A row has {min(numbers):,} to {max(numbers):,} audits."
    )


def write(all_tables: Sequence[Table], repetitions: Repetitions) -> None:
    rows = [(table.name, row) for table in all_tables if PARTS[table.name].on_page for row in table.cases]
    lines = ",\n  ".join(json.dumps(summary(part, row, repetitions.of(row))) for part, row in rows)
    versions = json.dumps(repetitions.versions)
    RESULTS.write_text(f'{{"versions": {versions}, "rows": [\n  {lines}\n]}}\n', encoding="utf-8")
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(page_with(results, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    return run(__doc__, tables, arguments, write=write)


if __name__ == "__main__":
    sys.exit(main())
