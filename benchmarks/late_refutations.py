"""Counts the trials until audits refute slight violations that are found after about a hundred thousand trials.

    python benchmarks/late_refutations.py {number,vector,chessboard,signs} [--seeds 10]

- number, vector: Gaussian noise with mu = 1.02 on one number or on one of ten numbers, audited for 1-GDP
- chessboard: uniform points in a square, where 14.5 % of the points in the odd cells of 4 by 4 cells move to even cells
- signs: ten Gaussian numbers, where the sign of one number depends on its magnitude with probability 6.5 %

The confidence is 95 %, and an audit has at most 1,500,000 trials (`chessboard`: 1,000,000).
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import numpy as np

from dpaudit import Pair, audit
from dpaudit.numerics import Array

Change = Callable[[Array, np.random.Generator], None]
"""A function that changes outputs of d0, in place, into outputs of d1."""


class Changed:
    """Gaussian or uniform numbers, which d1 changes."""

    def __init__(self, columns: int, change: Change, *, uniform: bool = False) -> None:
        self.columns, self.change, self.uniform = columns, change, uniform

    def sample(self, dataset: list[int], n: int, rng: np.random.Generator) -> Array:
        shape = (n, self.columns)
        outputs = rng.random(shape) if self.uniform else rng.standard_normal(shape)
        if dataset[0]:
            self.change(outputs, rng)
        return outputs[:, 0] if self.columns == 1 else outputs


def shifted(outputs: Array, rng: np.random.Generator) -> None:
    outputs[:, outputs.shape[1] // 2] += 1.02


def moved(outputs: Array, rng: np.random.Generator) -> None:
    odd = np.floor(4 * outputs).sum(axis=1) % 2 == 1
    some = odd & (rng.random(len(outputs)) < 0.145)
    outputs[some, 0] = (outputs[some, 0] + 0.25) % 1


def signed(outputs: Array, rng: np.random.Generator) -> None:
    some = rng.random(len(outputs)) < 0.065
    magnitude = np.abs(outputs[some, 3])
    outputs[some, 3] = np.where(magnitude < 1, magnitude, -magnitude)


# mechanism, claim, and maximum number of trials
KINDS: dict[str, tuple[Changed, str, int]] = {
    "number": (Changed(1, shifted), "gaussian(mu=1)", 1_500_000),
    "vector": (Changed(10, shifted), "gaussian(mu=1)", 1_500_000),
    "chessboard": (Changed(2, moved, uniform=True), "epsilon=0.1", 1_000_000),
    "signs": (Changed(10, signed), "gaussian(mu=0.05)", 1_500_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=list(KINDS))
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    mechanism, claim, most = KINDS[options.what]
    used = []
    for seed in range(options.seeds):
        result = audit(mechanism, claim, Pair([0], [1]), trials=most, seed=seed, confidence=0.95)
        used.append(result.trials_used if result.violated else np.inf)
        print(f"{options.what} {seed}: {result.verdict.value}, {result.trials_used:,} trials", flush=True)
    print(f"median {statistics.median(used):,.0f}")


if __name__ == "__main__":
    main()
