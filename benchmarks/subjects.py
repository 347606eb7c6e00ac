"""Audits subjects of several libraries: what each library claims, what the audit certifies, the verdict and the costs.

    python benchmarks/subjects.py [--only opendp] [--trials 2000] [--confidence 0.99999] [--write]
    python benchmarks/subjects.py --only "redefined column" --trials 2000 --confidence 0.999

A library that is not installed is left out.  `--write` replaces the tables of benchmarks/subjects.md between the marks
of each audited library; the tables of other libraries stay.  If a library is left out and has no table, the reason is
written.  The certified number is a lower bound of epsilon at the claim's delta, with the stated confidence for each
audit.

The last table counts the runs after which generated pairs find a fault that only a special pair of datasets shows: the
query of issue 2949 of OpenDP, audited with pairs from the schema of its data frame and from the largest number of
groups of a user.  The same query without the fault is the control.  It needs the release of polars that OpenDP names.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from importlib import metadata

from dpaudit import ApproxDP, TradeoffFunction
from dpaudit.claims import rounded
from dpaudit.libraries import audit_subject
from dpaudit.rounding import lower, number
from measure import (
    BENCHMARKS,
    SECONDS,
    Case,
    Expected,
    Outcome,
    Repetitions,
    Table,
    all_have,
    between,
    count,
    markdown,
    mean,
    median,
    run,
    texts,
)
from subject_cases import LIBRARIES
from subject_cases.opendp import redefined_column

PAGE = BENCHMARKS / "subjects.md"
_PROFILED = 1e-6  # delta at which claims other than (epsilon, delta)-DP are shown
_COLUMNS = {
    "claimed": texts("claimed"),
    "certified epsilon": texts("certified"),
    "verdict": texts("verdict"),
    "runs": median("runs"),
    "seconds": mean(SECONDS),
}


def delta_of(claim: TradeoffFunction) -> float:
    """Return the delta at which epsilon is stated: that of the claim, 0 for pure claims, and 1e-6 for others."""
    if isinstance(claim, ApproxDP):
        return float(claim.parameters["delta"])
    return 0.0 if claim.epsilon(0.0) < float("inf") else _PROFILED


def audited(library: str, name: str, trials: int, confidence: float, seed: int) -> Outcome:
    result = audit_subject(LIBRARIES[library][1]()[name](), trials=trials, confidence=confidence, seed=seed)
    delta = delta_of(result.claim)
    bound, claimed = lower(result.epsilon_lower(delta)), number(float(result.claim.epsilon(delta)), 4)
    return {
        "claimed": rounded(result.claim.label),
        "certified": f"{bound} of {claimed} at delta {delta:.3g}",
        "verdict": result.verdict.value,
        "runs": result.trials_used,
    }


def redefined(merged: bool, trials: int, confidence: float, seed: int) -> Outcome:
    result = audit_subject(redefined_column(merged=merged), trials=trials, confidence=confidence, seed=seed)
    pair = str(result.witness.pair) if result.witness is not None and result.violated else ""
    return {"refuted": result.violated, "runs": result.trials_used, "pair": pair}


def left_out() -> dict[str, str]:
    """Return why libraries are left out."""
    reasons = {}
    for library, (_, cases) in LIBRARIES.items():
        try:
            cases()
        except ImportError as error:
            reasons[library] = str(error)
    return reasons


def tables(options: argparse.Namespace) -> list[Table]:
    terms = (options.trials, options.confidence)
    reasons = left_out()
    print(*(f"{library}: left out ({reason})" for library, reason in reasons.items()), sep="\n", file=sys.stderr)
    return [
        *(
            Table(
                name=library,
                headings=("subject",),
                columns=_COLUMNS,
                written=False,
                cases=[
                    Case(
                        cells=(name,),
                        measure=partial(audited, library, name, *terms),
                        stored_as=f"{library} {metadata.version(distribution)} {name}",
                    )
                    for name in cases()
                ],
            )
            for library, (distribution, cases) in LIBRARIES.items()
            if library not in reasons
        ),
        Table(
            name="redefined column",
            asked=True,
            written=False,
            headings=("query",),
            columns={"refuted": count("refuted"), "runs": median("runs"), "pair": texts("pair")},
            cases=[
                Expected(
                    cells=("redefined" if merged else "unchanged",),
                    measure=partial(redefined, merged, *terms),
                    seeds=9 if merged else 1,
                    right=partial(all_have, "refuted", merged),
                )
                for merged in (True, False)
            ],
        ),
    ]


def write(all_tables: Sequence[Table], repetitions: Repetitions) -> None:
    """Replace the text between the marks of each library that was audited."""
    page = PAGE.read_text(encoding="utf-8")
    for table in all_tables:
        if table.name in LIBRARIES and all(map(repetitions.of, table.cases)):
            distribution, confidence = LIBRARIES[table.name][0], repetitions.settings["confidence"]
            rows = markdown(("subject", *_COLUMNS), [table.row(case, repetitions.of(case)) for case in table.cases])
            title = f"{distribution} {metadata.version(distribution)}, confidence {confidence:g} for each audit:"
            page = between(f"<!-- {table.name} -->", f"<!-- end of {table.name} -->", f"{title}\n\n{rows}", page)
    for library, reason in left_out().items():
        begin, end = f"<!-- {library} -->", f"<!-- end of {library} -->"
        if "| subject |" not in page.partition(begin)[2].partition(end)[0]:
            page = between(begin, end, f"Not audited: {reason}.", page)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(run(__doc__, tables, write=write, trials=2000, confidence=0.99999))
