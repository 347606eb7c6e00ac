"""Many audits of a builtin mechanism whose outputs have few values, with the pairs of a search.

    python benchmarks/few_values.py svt_4 [--seeds 24] [--first 0] [--trials 500000] [--confidence 0.95]
        [--attacks plug_in_ratio] [--file audits.jsonl]

The command prints a line for each audit, and at the end the number of audits that refute the claim within the trials,
and the mean of their trials.  An audit without a refutation counts with all its trials.  With `--file`, each audit is
stored in this file, so that an interrupted command can be resumed.

With a right mechanism such as svt_1, the command counts false alarms.  The exit code is 1 if a right mechanism is
refuted more often than chance explains (probability below one in a million).
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial
from pathlib import Path

from audit_store import Row, Store
from scipy.stats import binom

from dpaudit import audit
from dpaudit.catalogue import BUILTIN
from dpaudit.pairs.search import SearchPairs


def audited(name: str, seed: int, given: argparse.Namespace) -> Row:
    mechanism, began = BUILTIN[name](), time.process_time()
    result = audit(
        mechanism,
        mechanism.claim,
        list(SearchPairs(**mechanism.inputs)),
        attacks=given.attacks,
        trials=given.trials,
        confidence=given.confidence,
        seed=seed,
    )
    return {
        "violated": result.violated,
        "trials": result.trials_used,
        "seconds": round(time.process_time() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mechanism", choices=list(BUILTIN), metavar="MECHANISM")
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--trials", type=int, default=500_000, help="trials per dataset")
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--attacks", default="plug_in_ratio", help='an attack, or "auto"')
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    store = Store(given.file)
    rows = []
    for seed in range(given.first, given.first + given.seeds):
        key = f"{given.mechanism}, {given.attacks}, {given.trials} trials, confidence {given.confidence}, seed {seed}"
        row = store.row(key, partial(audited, given.mechanism, seed, given))
        rows.append(row)
        words = "VIOLATION" if row["violated"] else "no violation"
        print(f"seed {seed}: {words}, {row['trials']:,} trials, {row['seconds']} s", flush=True)
    refuted, trials = sum(row["violated"] for row in rows), [row["trials"] for row in rows]
    error = statistics.stdev(trials) / len(trials) ** 0.5 if len(trials) > 1 else float("nan")
    print(
        f"{given.mechanism}: {refuted} of {len(rows)} audits refuted within {given.trials:,} trials; "
        f"mean trials {statistics.mean(trials):,.0f} +- {error:,.0f}"
    )
    right = BUILTIN[given.mechanism]().private
    raise SystemExit(int(right and refuted > binom.ppf(1 - 1e-6, len(rows), 1 - given.confidence)))


if __name__ == "__main__":
    main()
