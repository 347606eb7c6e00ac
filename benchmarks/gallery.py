"""Repeats the audits of configs/gallery with several seeds, and compares the runs with those of an earlier measurement.

    python benchmarks/gallery.py [--seeds 10] [--first 0] [--only WORDS]

Each audit has its own confidence of 99.9 %.  An affected release passes if at least 9 of 10 audits refute its claim
within five times the runs that `SEEN` states.  A control passes if no audit refutes its claim; 26 controls and 10 seeds
give a false alarm with probability 0.23 at most.  The exit code is 1 if a case does not pass.

Missing environments are built first.  The libraries that use the operating system's randomness are not repeatable, even
with the same seed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dpaudit import audit
from dpaudit.config import PlannedAudit, read_configs

GALLERY = Path(__file__).resolve().parent.parent / "configs" / "gallery"
CONFIDENCE = 0.999
FACTOR = 5
"""An affected release may need this many times the runs that were seen."""

SHARE = 0.9
"""Least share of the seeds that must refute the claim of an affected release within these runs."""

SEEN = {
    "datasynthesizer-0.1.6-conditional-distributions": 43,
    "diffprivlib-0.4.1-laplace": 57,
    "diffprivlib-0.4.1-wishart": 65,
    "diffprivlib-0.6.6-gaussian-analytic": 547,
    "diffprivlib-0.6.6-laplace": 383,
    "diffprivlib-0.6.6-regression": 61,
    "nvflare-2.0.16-sparse-vector": 148,
    "opacus-1.5.2-ghost-clipping-norm": 32,
    "opacus-1.5.3-ghost-clipping-bias": 32,
    "opacus-1.6.0-expected-batch-size": 19,
    "opacus-1.6.0-gdp-accountant": 81_725,
    "opendp-0.4.0-geometric-time": 225,
    "opendp-0.4.0-randomised-response": 121,
    "opendp-0.14.1-discrete-laplace-scale-3": 10_118,
    "opendp-0.14.1-discrete-laplace-scale-10": 52_831,
    "opendp-0.14.2-randomised-response-bits": 73,
    "opendp-0.16.0-count-after-cast": 36,
    "opendp-0.16.0-filled-with-nan": 29,
    "opendp-0.16.0-physical-codes": 30,
    "opendp-0.16.0-randomised-response-lengths": 51,
    "opendp-0.16.0-redefined-column": 21,
    "opendp-smartnoise-0.1.1-unbounded-sum": 27,
    "pure-ldp-1.1.2-unary-encoding": 150,
    "smartnoise-sql-1.0.1-approximate-bounds": 27,
}
"""Largest number of runs on each dataset until a claim was refuted, in the audits of docs/gallery.md."""


@dataclass(frozen=True, slots=True)
class Case:
    """The audits of one config with several seeds."""

    name: str
    expect: str
    runs: tuple[int, ...]
    """Runs on each dataset of each audit that refuted the claim."""

    audits: int
    seconds: float

    @property
    def limit(self) -> int:
        """The maximum number of runs, if a violation is expected."""
        return FACTOR * SEEN[self.name]

    @property
    def passed(self) -> bool:
        """Whether the audits gave the expected verdicts, within the expected runs."""
        if self.expect != "violation":
            return not self.runs
        return sum(runs <= self.limit for runs in self.runs) >= SHARE * self.audits

    def __str__(self) -> str:
        refuted = f"{len(self.runs)} of {self.audits}"
        span = f"{min(self.runs):,} to {max(self.runs):,}" if self.runs else "none"
        allowed = f"{self.limit:,}" if self.expect == "violation" else "none"
        verdict = "yes" if self.passed else "NO"
        return f"| {self.name} | {refuted} | {span} | {allowed} | {verdict} | {self.seconds:.1f} |"


HEAD = "| case | refuted | runs | at most | passed | seconds of an audit |\n|---|---|---|---|---|---|"


def case(planned: PlannedAudit, seeds: range) -> Case:
    """Return the audits of a config.  The mechanism is started once, before the clock starts."""
    mechanism, claim = planned.load()
    runs, began = [], time.monotonic()
    for seed in seeds:
        settings = replace(planned.settings, confidence=CONFIDENCE, seed=seed)
        result = audit(mechanism, claim, planned.pairs, **settings.keywords)
        if result.violated:
            runs.append(result.trials_used)
    seconds = (time.monotonic() - began) / len(seeds)
    return Case(planned.config.name, str(planned.config.expect), tuple(runs), len(seeds), seconds)


def chosen(words: str) -> Iterator[PlannedAudit]:
    """Return the audits whose names contain any of these words; all audits without words."""
    for planned in read_configs([GALLERY]):
        if not words or any(word in planned.config.name for word in words.split()):
            yield planned


def main() -> None:
    """Print a line for each audit of the gallery."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default="", help="words, one of which the name of an audit must contain")
    options = parser.parse_args()
    print(HEAD)
    cases = []
    for planned in chosen(options.only):
        cases.append(case(planned, range(options.first, options.first + options.seeds)))
        print(cases[-1], flush=True)
    seconds = sum(one.seconds for one in cases)
    print(f"\nOne audit of each of the {len(cases)} configs took {seconds:.0f} s in all.")
    sys.exit(0 if all(one.passed for one in cases) else 1)


if __name__ == "__main__":
    main()
