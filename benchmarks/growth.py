"""Measures how processor time and memory of a sequential audit grow with trials, columns, pairs and claims.

    python benchmarks/growth.py [WHAT ...] [--trials TRIALS] [--store FILE] [--most SIZE]

WHAT is one of:

- trials: 10,000 to 10,000,000 trials of one number, one pair and one claim
- columns: outputs of 1 to 100 numbers, of which one depends on the dataset, with TRIALS trials
- pairs: 1 to 64 pairs of datasets, with TRIALS trials in all
- claims: 1 to 16 claims of one mechanism, with TRIALS trials for each; every claim is a separate audit

TRIALS is 10,000 by default.

The noise is Gaussian, the mechanism makes many runs in one call, and the claims are true, so that every audit makes all
its trials.  Each measurement is made in a fresh process, in which a short audit of the same kind comes first.  The
seconds of the imports and of the short audit are not part of the seconds of inference, and neither are those of the
mechanism.  Memory is the maximum of the process, including about 110 MB of Python and its packages.

The results are stored in FILE, so that an interrupted command can be resumed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from audit_store import Row, Store

from dpaudit import Pair, audit
from dpaudit.numerics import Array

_ONE = "one"  # argument of the processes that this command starts
_FIRST = 500  # minimum number of trials of the short audit that comes first
_TRIALS = 10_000  # trials of audits that grow in another way
SIZES: dict[str, tuple[int, ...]] = {
    "trials": (10_000, 100_000, 1_000_000, 10_000_000),
    "columns": (1, 3, 10, 30, 100),
    "pairs": (1, 4, 16, 64),
    "claims": (1, 4, 16),
}


@dataclass
class Noise:
    """Standard Gaussian noise in several columns, one of which is shifted by the dataset."""

    columns: int
    seconds: float = 0.0  # processor seconds of all calls

    def sample(self, dataset: list[float], n: int, rng: np.random.Generator) -> Array:
        began = time.process_time()
        outputs = rng.standard_normal((n, self.columns))
        outputs[:, self.columns // 2] += dataset[0]
        self.seconds += time.process_time() - began
        return outputs[:, 0] if self.columns == 1 else outputs


def measure(trials: int, columns: int, pairs: int, claims: int) -> Row:
    """Audit true claims one after another in this process; return processor seconds and megabytes."""
    began = time.process_time()
    # no pair shows a violation: the shift is at most 1, and the least claim is 1-GDP
    chosen = [Pair([0.0], [1 - i / (2 * pairs)]) for i in range(pairs)]
    audit(Noise(columns), "gaussian(mu=1)", chosen, trials=max(_FIRST, 20 * pairs), seed=1)
    first, noise = time.process_time() - began, Noise(columns)
    began = time.process_time()
    used = 0
    for i in range(claims):
        used += audit(noise, f"gaussian(mu={1 + i / 100})", chosen, trials=trials, seed=2 + i).trials_used
    seconds = time.process_time() - began
    return {
        "trials": used,
        "first": first,
        "mechanism": noise.seconds,
        "inference": seconds - noise.seconds,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
    }


def in_a_fresh_process(sizes: dict[str, int]) -> Row:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, _ONE, json.dumps(sizes)]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    found: Row = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    if sys.argv[1:2] == [_ONE]:
        print(json.dumps(measure(**json.loads(sys.argv[2]))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="WHAT", default=[])
    parser.add_argument("--trials", type=int, default=_TRIALS)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--most", type=int, help="leave out larger sizes")
    options = parser.parse_args()
    store = Store(options.store)
    for what in options.what or SIZES:
        for size in SIZES[what]:  # in a fresh process each
            if options.most and size > options.most:
                continue
            sizes = {"trials": options.trials, "columns": 1, "pairs": 1, "claims": 1, what: size}
            named = "" if sizes["trials"] == _TRIALS or what == "trials" else f" with {options.trials} trials"
            row = store.row(f"{what} {size}{named}", partial(in_a_fresh_process, sizes))
            print(
                f"{what:8} {size:10,}  inference {row['inference']:7.2f} s  mechanism {row['mechanism']:6.2f} s  "
                f"short audit {row['first']:5.2f} s  {row['megabytes']:6,.0f} MB  {row['trials']:12,.0f} trials",
                flush=True,
            )


if __name__ == "__main__":
    main()
