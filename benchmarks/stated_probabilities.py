"""Checks the probabilities that reports and commands state, by counting whole audits.

    python benchmarks/stated_probabilities.py [--audits 200] [--only TEXT] [--jobs 2] [--markdown]
        [--save stated.json] [--into docs/statistics.md]

Every row is a setting.  It states a probability, how often the statement came true, and a bound for this count.  If
the statement holds, the count is beyond the bound with probability at most 0.135 %, which corresponds to three standard
errors of a normal law.  The exit code is 1 if a row violates its bound.  With --save, finished rows are kept in a file
and are not run again, so a run can be interrupted and resumed.  --into puts the table between the marks of a document.
Each kind has at least 20 settings.

- "seen, fixed" and "seen, sequential": the violation that a report says would have been seen with 90 % probability, by
  an attack that knows the likelihood ratio, as the report assumes.  The mechanism has just that law.
- "seen, one run" and "seen, canaries": the same for `audit_one_run`, and for scores of independent canaries.
- "plan": audits with as many trials as `plan` states and `attacks="auto"`, so all scores are learned.
- "planned runs": the same for `assert_private`, which plans for a probability of 99.9 %.
- "replay": p-values of at most 0.05 in replays of audits of true claims.
- "replay confirms": replays of the same audits that confirm a violation, at p-values of at most 0.001.
- "dependence": independent runs that are called dependent, which may happen in one of 10^9 tests.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from stated_settings import settings

FIRST_SEED = 50_000  # no constant of dpaudit was chosen on audits with this seed or larger seeds

HEADINGS = ("statement", "setting", "stated", "audits", "came true", "bound")
BEGIN, END = "<!-- stated probabilities: begin -->", "<!-- stated probabilities: end -->"


@cache
def measured(measure: Callable[[Any, int], float], prepare: Callable[[], Any], audits: int, jobs: int) -> list[float]:
    """Make the audits of a setting and measure them; settings with one `measure` share them."""
    said = prepare()

    def quiet(seed: int) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return measure(said, seed)

    return list(Parallel(n_jobs=jobs)(delayed(quiet)(seed) for seed in range(FIRST_SEED, FIRST_SEED + audits)))


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|" + "---|" * len(HEADINGS)]
    lines += [f"| {' | '.join(cells(row))} |" for row in rows]
    return "\n".join(lines)


def cells(row: dict[str, Any]) -> list[str]:
    of = "at least" if row["least"] else "at most"
    stated = f"{of} {100 * row['stated']:.4g} %" if row["stated"] > 1e-6 else f"{of} {row['stated']:g}"
    return [row["kind"], row["name"], stated, str(row["audits"]), str(row["count"]), f"{of} {row['bound']}"]


def written(text: str, rows: list[dict[str, Any]]) -> str:
    """Return a document with the table between its marks.  ValueError if it has no marks."""
    if BEGIN not in text or END not in text:
        raise ValueError(f"the document must hold the marks {BEGIN} and {END}")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    return f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=200, help="of each setting")
    parser.add_argument("--only", default="", help='settings whose "kind: name" contains this text')
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--markdown", action="store_true", help="print a table for the docs at the end")
    parser.add_argument("--save", type=Path, help="file of finished rows; these are not run again")
    parser.add_argument("--into", type=Path, help="document that gets the table between its marks")
    options = parser.parse_args()
    chosen = [setting for setting in settings() if options.only in setting.label]
    if len({setting.label for setting in chosen}) < len(chosen):
        raise AssertionError("two settings have one name, so that one would be kept as the other")
    if not chosen:
        parser.error(f"--only: no setting contains {options.only!r}")
    kept = json.loads(options.save.read_text()) if options.save and options.save.exists() else {}
    rows: list[dict[str, Any]] = []
    for number, setting in enumerate(chosen, 1):
        row = kept.get(setting.label)
        if row is None or row["audits"] != options.audits:
            began = time.perf_counter()
            row = {"kind": setting.kind, "name": setting.name, "stated": setting.stated, "least": setting.least}
            row |= {"audits": options.audits}
            values = measured(setting.measure, setting.prepare, options.audits, options.jobs)
            row["count"] = sum(setting.came_true(value) for value in values)
            row["seconds"] = round(time.perf_counter() - began, 1)
            kept[setting.label] = row
            if options.save:
                options.save.write_text(json.dumps(kept, indent=1))
        row["bound"] = setting.bound(row["audits"])
        row["failed"] = setting.fails(row["audits"], row["count"])
        rows.append(row)
        words = "  ".join(cells(row)) + f"  {row['seconds']:.0f} s{'  FAILED' if row['failed'] else ''}"
        print(f"[{number}/{len(chosen)}] {words}", file=sys.stderr if options.markdown else sys.stdout, flush=True)
    if options.markdown:
        print(table(rows))
    if options.into:
        options.into.write_text(written(options.into.read_text(), rows))
    sys.exit(1 if any(row["failed"] for row in rows) else 0)


if __name__ == "__main__":
    main()
