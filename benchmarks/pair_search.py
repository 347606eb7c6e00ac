"""Count the runs after which the generated pairs find a fault that only a special pair of datasets shows.

    python benchmarks/pair_search.py [--seeds 9] [--trials 2000] [--confidence 0.999]

The query of issue 2949 of OpenDP is audited with pairs from the schema of its data frame and from the largest number of
groups of a user.  The same query without the fault is the control.  The benchmark needs OpenDP with the release of
polars that it names, and exits with 1 if a seed does not find the fault or refutes the control.
"""

from __future__ import annotations

import argparse
import statistics
import sys

from subject_cases import redefined_column

from dpaudit.libraries import audit_subject


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--confidence", type=float, default=0.999)
    given = parser.parse_args()
    failed = False
    for words, merged in (("redefined column", True), ("unchanged column", False)):
        subject = redefined_column.subject(merged=merged)
        runs, refuted = [], 0
        for seed in range(given.seeds if merged else 1):
            result = audit_subject(subject, trials=given.trials, confidence=given.confidence, seed=seed)
            runs.append(result.trials_used)
            refuted += result.violated
            pair = result.witness.pair if result.witness is not None and result.violated else "none"
            print(f"{words}, seed {seed}: {result.verdict.value} after {runs[-1]:,} runs; pair: {pair}", flush=True)
        failed = failed or refuted != (len(runs) if merged else 0)
        median = f"; median of the runs {statistics.median(runs):,}" if merged else ""
        print(f"{words}: {len(subject.pairs)} pairs, {refuted} of {len(runs)} audits refuted{median}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
