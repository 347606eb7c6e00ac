"""Measures numeric trials per second through the worker of a private environment, for a trivial vectorised mechanism.

    python benchmarks/worker_throughput.py [--requires numpy==2.3.4] [--trials 2000000]

The first line is for the worker alone, with outputs read back as floats.  The second line is for a whole audit of as
many trials with one attack.  "auto" would also examine low-order bits, and refute the claim of floating-point noise.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from dpaudit import Pair, audit
from dpaudit.running import IsolatedMechanism

CODE = """
def noise(dataset, n, rng):
    return dataset[0] + rng.normal(size=n)
"""
_CALL = 16_384  # number of runs in a call, as in the engine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requires", default="numpy==2.3.4")
    parser.add_argument("--trials", type=int, default=2_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "own.py").write_text(CODE)
        mechanism = IsolatedMechanism(
            address="own.py:noise", requires=[options.requires], batched=True, folder=Path(folder)
        )
        rng = np.random.default_rng(0)
        mechanism.sample([0], _CALL, rng)
        began = time.perf_counter()
        for _ in range(-(-options.trials // _CALL)):
            mechanism.sample([0], _CALL, rng)
        print(f"worker alone: {options.trials / (time.perf_counter() - began):,.0f} outputs a second")
        began = time.perf_counter()
        result = audit(
            mechanism,
            "gaussian(mu=1)",
            Pair([0], [1]),
            trials=options.trials,
            attacks="logistic",
            seed=0,
            confidence=0.95,
        )
        seconds = time.perf_counter() - began
        print(f"whole audit: {result.trials_used / seconds:,.0f} trials of each dataset a second, {result.verdict}")


if __name__ == "__main__":
    main()
