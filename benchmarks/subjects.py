"""Audits subjects of several libraries: what each library claims, what the audit certifies, the verdict and the costs.

    python benchmarks/subjects.py [--only opendp] [--trials 2000] [--confidence 0.99999] [--write]

A library that is not installed is left out.  `--write` replaces the tables of benchmarks/subjects.md between the marks of
each library; the tables of other libraries stay.  If a library is left out and has no table, the reason is written.
The certified number is a lower bound of epsilon at the claim's delta, with the stated confidence for each audit.
"""

from __future__ import annotations

import argparse
import importlib
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from dpaudit import ApproxDP, AuditResult, TradeoffFunction
from dpaudit.claims import rounded
from dpaudit.libraries import audit_subject
from dpaudit.rounding import lower, number

PAGE = Path(__file__).resolve().parent / "subjects.md"
LIBRARIES = {
    "opendp": "opendp",
    "opendp_frames": "opendp",
    "diffprivlib": "diffprivlib",
    "pydp": "python-dp",
    "smartnoise_sql": "smartnoise-sql",
    "tumult": "tmlt.core",
    "accounting": "dp-accounting",
    "numpy": "numpy",
}
"""Distribution of each module in `subject_cases`."""

_PROFILED = 1e-6  # delta at which claims other than (epsilon, delta)-DP are shown


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table."""

    name: str
    claimed: str
    certified: str
    verdict: str
    runs: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"| {self.name} | {self.claimed} | {self.certified} | {self.verdict} | {self.runs:,} | {self.seconds:.1f} |"
        )


HEAD = "| subject | claimed | certified epsilon | verdict | runs | seconds |\n|---|---|---|---|---|---|"


def delta_of(claim: TradeoffFunction) -> float:
    """Return the delta at which epsilon is stated: that of the claim, 0 for pure claims, and 1e-6 for others."""
    if isinstance(claim, ApproxDP):
        return float(claim.parameters["delta"])
    return 0.0 if claim.epsilon(0.0) < float("inf") else _PROFILED


def row(name: str, result: AuditResult, seconds: float) -> Row:
    """Return the row of a result."""
    delta = delta_of(result.claim)
    certified = lower(result.epsilon_lower(delta))
    return Row(
        name,
        rounded(result.claim.label),
        f"{certified} of {number(float(result.claim.epsilon(delta)), 4)} at delta {delta:.3g}",
        result.verdict.value,
        result.trials_used,
        seconds,
    )


def rows(library: str, trials: int, confidence: float) -> Iterable[Row]:
    """Audit the subjects of one library."""
    for name, make in importlib.import_module(f"subject_cases.{library}").cases().items():
        began = time.process_time()
        result = audit_subject(make(), trials=trials, confidence=confidence, seed=0)
        yield row(name, result, time.process_time() - began)


def table(library: str, found: Iterable[Row], confidence: float) -> str:
    """Return the text between the marks of a library."""
    version = metadata.version(LIBRARIES[library])
    body = "\n".join(map(str, found))
    title = f"{LIBRARIES[library]} {version}, confidence {confidence:g} for each audit:"
    return f"{title}\n\n{HEAD}\n{body}"


def write(library: str, text: str, *, only_if_empty: bool = False) -> None:
    """Replace the text between the marks of a library in benchmarks/subjects.md.

    Args:
        library: The library.
        text: The new text.
        only_if_empty: Whether a table between the marks stays.
    """

    def replaced(old: re.Match[str]) -> str:
        if only_if_empty and HEAD in old[0]:
            return old[0]
        return f"<!-- {library} -->\n\n{text}\n\n<!-- end of {library} -->"

    page = PAGE.read_text(encoding="utf-8")
    mark = re.compile(rf"<!-- {library} -->.*?<!-- end of {library} -->", flags=re.S)
    PAGE.write_text(mark.sub(replaced, page), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--confidence", type=float, default=0.99999)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    for library in options.only:
        found = []
        try:
            for one in rows(library, options.trials, options.confidence):
                print(library, one, flush=True)
                found.append(one)
        except ImportError as error:
            print(f"{library}: left out ({error})", flush=True)
            if options.write:
                write(library, f"Not audited: {error}.", only_if_empty=True)
            continue
        if options.write:
            write(library, table(library, found, options.confidence))


if __name__ == "__main__":
    main()
