"""The summary at the end of a session with audits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpaudit.testing.session import Record, one_in
from dpaudit.text.rounding import lower, upper
from dpaudit.text.signs import SIGNS

_MAX_SLOWEST = 3  # maximum number of slow audits that are listed
_MIN_SLOW_SECONDS = 1.0  # minimum duration of an audit that is listed as slow
_MIN_RISE = 1.1  # minimum ratio of a certified bound to the largest earlier bound that is reported as drift
_CHANCE = 5.0  # minimum rise times sqrt(runs); corresponds to two to three standard deviations of a difference


def summary(records: Sequence[Record], *, tests: int, false_alarm: float, runs: int) -> list[str]:
    """Return the lines for the terminal."""
    refuted = sum(record["verdict"] == "violation" for record in records)
    unclear = sum(record["verdict"] == "inconclusive" for record in records)
    others = len(records) - refuted - unclear
    violation, inconclusive, none_found = (SIGNS[w] for w in ("violation", "inconclusive", "no violation found"))
    found = [f"{violation.sign} {refuted} {violation.word}{_s(refuted)}"] if refuted else []
    found += [f"{inconclusive.sign} {unclear} {inconclusive.word}"] if unclear else []
    found += [f"{none_found.sign} {f'{others} ' if found else ''}{none_found.word}"] if others else []
    often = one_in(false_alarm)
    if runs:
        which = {1: "this run", 2: "this run or the run before"}.get(runs, f"this run or any of the {runs - 1} before")
        means = f"a true claim fails {which} with probability at most 1 in {often.split()[-1]}"
    else:
        means = f"a true claim fails this suite in at most {often}"
    lines = [
        f"{len(records)} audit{_s(len(records))}: {', '.join(found)}",
        f"false-alarm budget {false_alarm:g}, split over {tests} test{_s(tests)}: {means}",
    ]
    rising = [r for r in records if _rises(r) and r["verdict"] != "violation"]
    lines += [
        f"drift: {record['name']}: certified mu >= {lower(record['mu_lower'], 3)}, but in earlier runs at most "
        f"{upper(record['mu_lower_before'], 3)} (no violation of {record['claim']} yet)"
        for record in rising
    ]
    lines += [
        f"warning: {record['name']}: {words}"
        for record in records
        if record["verdict"] == "no violation found"
        for words in record.get("warnings", ())
    ]
    if seeded := [record["name"] for record in records if record["global_state"]]:
        lines.append(
            f"global random state: used by {_named(seeded)}; dpaudit seeds it for each audit and overrides fixtures"
        )
    if runs and (repeats := [record["name"] for record in records if record["repeats"]]):
        lines.append(f"no new evidence: {_named(repeats)} may repeat runs of an earlier session; the baseline counts")
        lines.append("  losses of such audits, but no gains; let the mechanism draw fresh randomness in each session")
    slow = sorted((r for r in records if r["elapsed_s"] > _MIN_SLOW_SECONDS), key=lambda r: -r["elapsed_s"])[
        :_MAX_SLOWEST
    ]
    if slow:
        lines.append("slowest audits (runs per dataset):")
        lines += [f"  {_cost(record)}" for record in slow]
    return lines


def _named(names: Sequence[str]) -> str:
    """Return the first of several names, and the number of other names."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _rises(record: Record) -> bool:
    now, before = float(record["mu_lower"]), float(record["mu_lower_before"])
    by_chance = _CHANCE / math.sqrt(max(record["trials"], 1))
    return before > 0 and now > max(_MIN_RISE * before, before + by_chance)


def _cost(record: Record) -> str:
    runs, seconds = record["trials"], record["elapsed_s"]
    cost = f"{seconds:5.1f} s  {record['name']}: {runs:,} runs, target: a mechanism that is {record['detect']}"
    if runs < record["planned"]:
        cost += f", which needs {record['planned']:,}" if record["verdict"] != "violation" else ""
    others = [f"detect={f} {_about(n, seconds * n / max(runs, 1))}" for f, n in record["other"].items()]
    return "; ".join([cost, *others])


def _about(runs: int, seconds: float) -> str:
    if runs >= 10**9:
        return "cannot be detected"
    return (
        f"needs {runs:,} (about {seconds:.1f} s)" if seconds < 100 else f"needs {runs:,} (about {seconds / 60:.0f} min)"
    )


def _s(count: int) -> str:
    return "" if count == 1 else "s"
