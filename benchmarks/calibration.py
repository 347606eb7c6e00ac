"""Count how often the statements of dpaudit are false: the section "Calibration" of benchmarks/calibration.md.

    python benchmarks/calibration.py [--audits N | --minutes M] [--only TEXT] [--jobs 2] [--store FILE] [--write]
    python benchmarks/calibration.py --list

Each row is a setting in which an event has at most, or at least, a stated probability; for example, a refutation of a
claim that is exactly true.  The rows are in the modules of `calibration_parts`.  The command prints how often each
event occurred, and how often it may occur.  An event with the stated probability is beyond its limit with probability
at most 0.135 %, which corresponds to three standard errors of a normal law.

Every finished audit is saved in the store, so an interrupted command is resumed by the same command.  The key of an
audit contains the versions of dpaudit and of its libraries, and digests of the code of dpaudit and of the row.  So
audits of different versions are never counted together.  Comments and docstrings do not affect a digest.

Each row has a full number of audits.  With --audits, no row has more than N audits.  With --minutes, the number of
audits of each row is such that all chosen rows together take about M minutes of processor time.  The costs that this
calculation needs are in benchmarks/calibration.json, or are measured by two audits of a row.

--write puts the counts of all rows into benchmarks/calibration.json, and the tables into benchmarks/calibration.md.  All
finished audits in the store count, from the first seed to the first missing seed.  Nothing is written if a row has no
audit of the present code.  `--audits 0 --write` makes no audits.

The exit code is 1 if a chosen row is beyond a limit or an audit failed, 2 if nothing could be written or the code of
dpaudit changed meanwhile, and 130 if the command was interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from audit_store import Store
from calibration_parts import (
    Row,
    commands,
    late_bets,
    misbehaving,
    rare_outputs,
    short_audits,
    sizes,
    stated,
    streams,
    true_claims,
)
from calibration_parts.budget import divided
from calibration_parts.page import page_with
from calibration_parts.results import SECONDS, Audits, CodeChangedError, broken, summary

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).with_suffix(".json")
PAGE = ROOT / "benchmarks" / "calibration.md"
STORE = ROOT / "build" / "calibration.jsonl"
_PARTS = (true_claims, late_bets, short_audits, rare_outputs, sizes, misbehaving, streams, commands, stated)
_TIMED = 2  # audits by which the cost of a row is measured


def rows() -> list[Row]:
    """Return all rows, in the order of the page."""
    found = [row for part in _PARTS for row in part.rows()]
    if len({row.label for row in found}) < len(found):
        raise AssertionError("two rows have the same label, so one would be counted as the other")
    return found


def numbers_of(chosen: Sequence[Row], audits: Audits, options: argparse.Namespace) -> dict[str, int]:
    """Return the number of audits of each row, by its label."""
    if options.minutes is None:
        return {row.label: row.full if options.audits is None else min(row.full, options.audits) for row in chosen}
    old = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if RESULTS.exists() else []
    costs = {f"{row['part']}: {', '.join(row['cells'])}": row["seconds"] for row in old}
    for row in chosen:
        if row.label not in costs and made(row, _TIMED, audits, options.jobs):
            costs[row.label] = min(one[SECONDS] for one in audits.found(row)[:_TIMED])
    return divided(chosen, costs, 60 * options.minutes)


def made(row: Row, number: int, audits: Audits, jobs: int) -> bool:
    """Make the audits of a row, and return whether none failed."""
    try:
        audits.make(row, number, jobs)
    except CodeChangedError:
        raise
    except Exception:  # the other rows are still run
        traceback.print_exc()
        print(f"{row.label}: AN AUDIT FAILED", flush=True)
        return False
    return True


def run(row: Row, number: int, audits: Audits, jobs: int) -> bool:
    """Make the audits of a row and print its counts; return whether all is as stated."""
    if not made(row, number, audits, jobs):
        return False
    if not (found := audits.found(row)):
        return True
    counted, wrong = summary(row, found), broken(row, found)
    limits = ", ".join(dict.fromkeys(limit.words(len(found)) for limit in row.limits.values()))
    counts = ", ".join(f"{name} {count}" for name, count in counted["counts"].items())
    words = f"{row.label}: {len(found)} audits, {counts} (allowed: {limits}), {counted['seconds']} s each"
    print(words + (f"  BEYOND THE LIMIT: {', '.join(wrong)}" if wrong else ""), flush=True)
    return not wrong


def write(all_rows: Sequence[Row], audits: Audits) -> int:
    """Write the counts of all rows and the page, if each row has an audit."""
    found = {row.label: audits.found(row) for row in all_rows}
    if missing := [label for label, outcomes in found.items() if not outcomes]:
        print(f"nothing is written, because {len(missing)} rows have no audit of the present code:", file=sys.stderr)
        print(*missing, sep="\n", file=sys.stderr)
        return 2
    counted = [summary(row, found[row.label]) for row in all_rows]
    lines = ",\n  ".join(json.dumps(row) for row in counted)
    RESULTS.write_text(f'{{"versions": {json.dumps(audits.versions)}, "rows": [\n  {lines}\n]}}\n', encoding="utf-8")
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(page_with(results, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--audits", type=int, help="largest number of audits of a row")
    size.add_argument("--minutes", type=float, help="processor time of all chosen rows together")
    parser.add_argument("--only", default="", help='rows whose "part: setting" contains this text')
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--store", type=Path, default=STORE, help="file of finished audits (%(default)s)")
    parser.add_argument("--write", action="store_true", help="write the results and the page")
    parser.add_argument("--list", action="store_true", help="list the rows, and make no audits")
    options = parser.parse_args(arguments)
    all_rows = rows()
    chosen = [row for row in all_rows if options.only in row.label]
    if not chosen:
        parser.error(f"--only: no row contains {options.only!r}; --list shows them")
    if options.list:
        print(*(f"{row.label} ({row.full:,} audits)" for row in chosen), sep="\n")
        return 0
    options.store.parent.mkdir(parents=True, exist_ok=True)
    try:
        audits = Audits(Store(options.store), all_rows)
        numbers = numbers_of(chosen, audits, options)
        fine = [run(row, numbers[row.label], audits, options.jobs) for row in chosen]
    except CodeChangedError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command resumes with the finished audits", file=sys.stderr)
        return 130
    written = write(all_rows, audits) if options.write else 0
    return written or int(not all(fine))


if __name__ == "__main__":
    sys.exit(main())
