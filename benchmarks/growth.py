"""Measures how processor time and memory of a sequential audit grow with trials, columns, pairs and claims.

    python benchmarks/growth.py [--only trials | columns | pairs | claims] [--trials 10000]

An audit that grows in another way has --trials trials, which all pairs share; every claim is a separate audit.

The noise is Gaussian, the mechanism makes many runs in one call, and the claims are true, so that every audit makes all
its trials.  Each measurement is made in a fresh process, in which a short audit of the same kind comes first.  The
seconds of the imports and of the short audit are not part of the seconds of inference, and neither are those of the
mechanism.  Memory is the maximum of the process, including about 110 MB of Python and its packages.
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

import numpy as np
from measure import Case, Outcome, Table, median, run

from dpaudit import Pair, audit
from dpaudit.numerics import Array

_ONE = "one"  # argument of the processes that this command starts
_FIRST = 500  # minimum number of trials of the short audit that comes first
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


def measure(trials: int, columns: int, pairs: int, claims: int) -> Outcome:
    """Audit true claims one after another in this process; return processor seconds and megabytes."""
    # no pair shows a violation: the shift is at most 1, and the least claim is 1-GDP
    chosen = [Pair([0.0], [1 - i / (2 * pairs)]) for i in range(pairs)]
    audit(Noise(columns), "gaussian(mu=1)", chosen, trials=max(_FIRST, 20 * pairs), seed=1)
    noise, began = Noise(columns), time.process_time()
    for i in range(claims):
        audit(noise, f"gaussian(mu={1 + i / 100})", chosen, trials=trials, seed=2 + i)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return {"inference": time.process_time() - began - noise.seconds, "megabytes": megabytes}


def in_a_fresh_process(sizes: dict[str, int], seed: int) -> Outcome:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, _ONE, json.dumps(sizes)]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    outcome: Outcome = json.loads(done.stdout.splitlines()[-1])
    return outcome


def tables(options: argparse.Namespace) -> list[Table]:
    common = {"trials": options.trials, "columns": 1, "pairs": 1, "claims": 1}
    return [
        Table(
            headings=("growth of", "size"),
            columns={"seconds": median("inference", ".1f"), "MB": median("megabytes")},
            cases=[
                Case(cells=(what, f"{size:,}"), measure=partial(in_a_fresh_process, {**common, what: size}))
                for what, sizes in SIZES.items()
                for size in sizes
            ],
        )
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == [_ONE]:
        print(json.dumps(measure(**json.loads(sys.argv[2]))))
        sys.exit()
    sys.exit(run(__doc__, tables, trials=10_000))
