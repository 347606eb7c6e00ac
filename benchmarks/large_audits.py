"""Measures time and memory of audits with many trials, with a store, with large outputs, and with two workers.

    python benchmarks/large_audits.py trials [--trials 100000000]    a vectorised scalar mechanism, in one process
    python benchmarks/large_audits.py store [--trials 20000000]      the same with a store
    python benchmarks/large_audits.py outputs [--trials 300]         outputs of 10 MB
    python benchmarks/large_audits.py jobs [--trials 2000]           runs of 10 ms, by one worker and by two

Time and memory are those of a whole audit with `attacks="auto"`; memory is the maximum that the process used.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import Pair, audit
from dpaudit.catalogue import Gaussian

_PAIR, _CLAIM = Pair([0], [1]), "gaussian(mu=1)"
_RUN = 0.01  # seconds


def large(dataset: list[int], rng: np.random.Generator) -> Any:
    """Return an output of 10 MB, in which one number depends on the dataset."""
    output = rng.standard_normal(1_250_000)
    output[7] += dataset[0]
    return output


def slow(dataset: list[int], rng: np.random.Generator) -> float:
    time.sleep(_RUN)
    return float(dataset[0] + rng.normal())


def timed(mechanism: Any, trials: int, **options: Any) -> tuple[float, str]:
    """Run an audit; return its seconds, and a line with all measurements."""
    began = time.perf_counter()
    result = audit(mechanism, _CLAIM, _PAIR, trials=trials, seed=1, confidence=0.95, **options)
    seconds = time.perf_counter() - began
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    rate = f"{result.trials_used / seconds:,.0f} trials of each dataset a second"
    return seconds, f"{result.verdict}, {result.trials_used:,} trials, {seconds:.1f} s, {rate}, {megabytes:,.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["trials", "store", "outputs", "jobs"])
    parser.add_argument("--trials", type=int)
    options = parser.parse_args()
    if options.what == "trials":
        print(timed(Gaussian(1.0), options.trials or 100_000_000)[1])
    elif options.what == "store":
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder, "audit.trials")
            print(timed(Gaussian(1.0), options.trials or 20_000_000, store=store)[1])
            print(f"the store has {store.stat().st_size / 1e6:,.0f} MB")
    elif options.what == "outputs":
        print(timed(large, options.trials or 300)[1])
    else:
        trials = options.trials or 2000
        timed(slow, 20, jobs=2)  # this audit starts the workers, which the next audit reuses
        (one, words), (two, others) = (timed(slow, trials, jobs=jobs) for jobs in (1, 2))
        print(f"one:  {words}\ntwo:  {others}\ntimes as fast: {one / two:.2f}")


if __name__ == "__main__":
    main()
