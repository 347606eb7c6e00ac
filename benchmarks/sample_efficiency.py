"""Compares the mean number of runs until a false claim is refuted with the least mean of any sequential test.

    python benchmarks/sample_efficiency.py [--seeds 200] [--first 0] [--jobs 2] [--only WORDS] [--confidence C]
                                           [--detect] [--markdown]

Every audit uses `attacks="auto"`, and nothing is known about the mechanism.  With `--detect`, the truth is the
violation that the audit should detect.  The limit is ln(1 / (1 - C)) / KL*, where KL* is the least Kullback-Leibler
divergence from the truth to the claim (docs/guarantees.md).
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from dpaudit import Pair, audit
from dpaudit.catalogue import Gaussian, Laplace


@dataclass(frozen=True)
class Response:
    """Randomised response that keeps its bit with probability e^epsilon / (1 + e^epsilon)."""

    epsilon: float

    def sample(self, dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        lie = 1 / (1 + math.exp(self.epsilon))
        return (rng.random(n) < (1 - lie if dataset == [1] else lie)).astype(int)


@dataclass(frozen=True)
class Revealing:
    """Randomised response with epsilon = 1 that reveals the dataset with probability delta."""

    delta: float

    def sample(self, dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        return np.where(rng.random(n) < self.delta, 2 + dataset[0], Response(1.0).sample(dataset, n, rng))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A false claim, the mechanism, and its trade-off function."""

    claim: str
    truth: str
    mechanism: Any
    curve: str
    divergence: float  # KL* in nats


CASES = [
    Case(claim=claim, truth=truth, mechanism=mechanism, curve=curve, divergence=math.log(20) / limit)
    for claim, truth, mechanism, curve, limit in (
        ("gaussian(mu=0.5)", "Gaussian, mu 1", Gaussian(1.0), "gaussian(mu=1)", 54),
        ("gaussian(mu=0.8)", "Gaussian, mu 1", Gaussian(1.0), "gaussian(mu=1)", 339),
        ("gaussian(mu=1)", "Gaussian, mu 1.2", Gaussian(1 / 1.2), "gaussian(mu=1.2)", 356),
        ("gaussian(mu=1)", "Gaussian, mu 1.1", Gaussian(1 / 1.1), "gaussian(mu=1.1)", 1387),
        ("gaussian(mu=1)", "Gaussian, mu 1.05", Gaussian(1 / 1.05), "gaussian(mu=1.05)", 5535),
        ("pure(epsilon=1)", "Laplace, epsilon 1.2", Laplace(1 / 1.2), "laplace(epsilon=1.2)", 605),
        ("pure(epsilon=1)", "randomised response, epsilon 1.1", Response(1.1), "pure(epsilon=1.1)", 1573),
        (
            "approximate(epsilon=1, delta=1e-5)",
            "Gaussian, sigma 20 % too small",
            Gaussian(1 / 0.335),
            "gaussian(mu=0.335)",
            359_000,
        ),
        (
            "approximate(epsilon=1, delta=1e-5)",
            "rare identifying outputs, delta 0.001",
            Revealing(1e-3),
            "approximate(epsilon=1, delta=1e-3)",
            4838,
        ),
    )
]


def trials_used(case: Case, seed: int, confidence: float, *, detect: bool) -> int:
    """Return the runs per dataset of one audit, as users see them."""
    sought = case.curve if detect else None
    pair, trials = Pair([0], [1]), 20_000_000
    result = audit(case.mechanism, case.claim, pair, trials=trials, seed=seed, confidence=confidence, detect=sought)
    return result.trials_used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="cases whose claim or truth holds these words")
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--detect", action="store_true", help="the truth is the violation to detect")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/guarantees.md")
    options = parser.parse_args()
    if options.markdown:
        print("| claim | truth | mean trials | standard error | limit | ratio |\n|---|---|---|---|---|---|")
    for case in CASES:
        if options.only not in f"{case.claim}, {case.truth}":
            continue
        seeds = range(options.first, options.first + options.seeds)
        calls = (delayed(trials_used)(case, seed, options.confidence, detect=options.detect) for seed in seeds)
        used = np.array(Parallel(n_jobs=options.jobs)(calls))
        mean, error = used.mean(), used.std(ddof=1) / math.sqrt(len(used))
        limit = -math.log1p(-options.confidence) / case.divergence
        cells = [
            case.claim,
            case.truth,
            f"{mean:,.0f}",
            f"{error:,.0f}",
            f"{limit:,.0f}",
            f"{mean / limit:.{1 if options.markdown else 2}f}",
        ]
        print(f"| {' | '.join(cells)} |" if options.markdown else "  ".join(f"{c:>32s}" for c in cells), flush=True)


if __name__ == "__main__":
    main()
