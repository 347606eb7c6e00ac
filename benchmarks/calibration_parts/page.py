"""The tables of the section "Calibration" of benchmarks/calibration.md, from benchmarks/calibration.json.

`tests/test_calibration.py` compares the page with this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibration_parts.limit import Limit


@dataclass(frozen=True, slots=True)
class Table:
    """The headings of a part's table."""

    cells: tuple[str, ...]  # headings of the words that describe a setting
    events: Mapping[str, str]  # maps the heading of a column to the beginning of the names of its events
    allowed: str = "allowed"  # heading of the column of limits


TABLES = {
    "true claims": Table(
        ("mechanism", "method", "trials"), {"refuted": "refuted", "mu": "mu", "epsilon": "epsilon", "band": "band"}
    ),
    "second stage": Table(
        ("mechanism", "method", "trials"), {"refuted": "refuted", "mu": "mu", "epsilon": "epsilon", "band": "band"}
    ),
    "late bets": Table(("mechanism", "trials"), {"refuted": "refuted", "mu": "mu"}),
    "misbehaving": Table(("case",), {"refuted": "refuted", "mu": "mu", "inconclusive": "inconclusive"}),
    "streams": Table(("stream", "length"), {"refuted": "refuted"}),
    "commands": Table(("command", "trials"), {"refuted": "refuted"}),
    "stated": Table(("statement", "setting", "stated"), {"came true": "came true"}, "bound"),
}


def page_with(results: Mapping[str, Any], page: str) -> str:
    """Return the page with the table of each part, and the versions, between their marks.

    Args:
        results: The content of benchmarks/calibration.json.
        page: The text of the page.

    Raises:
        ValueError: If the page lacks a mark.
    """
    page = _between("versions", _versions(results), page)
    for part in TABLES:
        rows = [row for row in results["rows"] if row["part"] == part]
        page = _between(part, "\n".join(_table(TABLES[part], rows)), page)
    return page


def _between(name: str, found: str, page: str) -> str:
    begin, end = f"<!-- calibration, {name}: begin -->", f"<!-- calibration, {name}: end -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"the page must contain {begin!r} and {end!r} once each")
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n\n{found}\n\n{end}{rest.partition(end)[2]}"


def _versions(results: Mapping[str, Any]) -> str:
    made = results["versions"]
    rows = results["rows"]
    different = {row["made"]: row for row in rows}.values()
    numbers = [row["audits"] for row in rows]
    audits = sum(row["audits"] for row in different)
    hours = sum(row["audits"] * row["seconds"] for row in different) / 3600
    others = ", ".join(f"{name} {made[name]}" for name in ("numpy", "scipy", "scikit-learn"))
    return (
        f"All {len(rows)} rows were measured with the same code: dpaudit {made['dpaudit']} with the digest "
        f"`{made['code']}`,\nPython {made['python']}, {others}.\n"
        f"They count {audits:,} audits, which took {hours:.1f} hours of processor time.\n"
        f"A row has {min(numbers):,} to {max(numbers):,} audits."
    )


def _table(table: Table, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    headings = (*table.cells, "audits", table.allowed, *table.events)
    yield f"| {' | '.join(headings)} |"
    yield "|" + "---|" * len(headings)
    for row in rows:
        limit = Limit(**next(iter(row["limits"].values())))
        counts = (_count(row, events) for events in table.events.values())
        cells = (*row["cells"], f"{row['audits']:,}", limit.words(row["audits"]), *counts)
        yield f"| {' | '.join(cells)} |"


def _count(row: Mapping[str, Any], beginning: str) -> str:
    """Return the largest count of the events whose names have this beginning, in bold if a limit is broken."""
    counts = {name: count for name, count in row["counts"].items() if name.startswith(beginning)}
    limits = {name: Limit(**limit) for name, limit in row["limits"].items() if name in counts}
    words = f"{max(counts.values()):,}"
    if any(limit.broken(row["audits"], counts[name]) for name, limit in limits.items()):
        return f"**{words}**"
    return words if limits or beginning == "inconclusive" else ""
