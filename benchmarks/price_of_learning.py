"""How many nats of wealth does an audit lose because its score is learned from the outputs that it bets on?

    python benchmarks/price_of_learning.py [--seeds 200] [--trials 512] [--only WORDS] [--attacks auto,logistic]

Each false claim of `sample_efficiency.py` whose limit is a few hundred runs is audited with the exact log-likelihood
ratio, and with each of the attacks, which learn theirs.  The truth is the violation to `detect`.  The audits have the
same seeds, so they see the same outputs.  A row shows the mean logarithm of the wealth with the exact ratio after some
trials, and how much less it is with learned ratios, with the standard error of the mean difference.  The audits do not
stop when they refute the claim, and have no late bets.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sample_efficiency import CASES, Case

from dpaudit import Pair, audit
from dpaudit.numerics import Array
from dpaudit_attacks.likelihood_ratio import LikelihoodRatio

_MOST_RUNS = 1_000  # cases with a larger limit are left out: learning costs them little
_POINTS = (16, 32, 64, 128, 256, 512, 1024, 2048)  # numbers of trials in the table


def linear(outputs: Any, mu: float = 1.0) -> Array:
    """Return the log-likelihood ratios of Gaussian noise with standard deviation 1 / mu around 0 and 1."""
    ratios: Array = mu**2 * (np.asarray(outputs, float).reshape(len(outputs)) - 0.5)
    return ratios


def clipped(outputs: Any, epsilon: float = 1.0) -> Array:
    """Return the log-likelihood ratios of Laplace noise with scale 1 / epsilon around 0 and 1."""
    x = np.asarray(outputs, float).reshape(len(outputs))
    ratios: Array = epsilon * (np.abs(x) - np.abs(x - 1))
    return ratios


def exact(case: Case) -> Callable[[Any], Array]:
    """Return the log-likelihood ratio of a case with Gaussian or Laplace noise."""
    size = float(case.truth.split()[-1])
    ratio = linear if case.truth.startswith("Gaussian") else clipped
    return lambda outputs: ratio(outputs, size)


def log_wealth(case: Case, attack: Any, seed: int, points: list[int]) -> list[float]:
    """Return the logarithm of the wealth of one audit after each of some numbers of trials."""
    result = audit(
        case.mechanism,
        case.claim,
        Pair([0], [1]),
        attacks=attack,
        trials=points[-1],
        seed=seed,
        confidence=0.95,
        detect=case.curve,
        measure=True,
    )
    history = result.history
    seen = np.searchsorted(history.trials, points, side="right")
    return [float(history.log_e[place - 1]) if place else 0.0 for place in seen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--trials", type=int, default=512)
    parser.add_argument("--only", default="", help="cases whose claim or truth holds these words")
    parser.add_argument("--attacks", default="auto,known_noise,logistic")
    options = parser.parse_args()
    points = [point for point in _POINTS if point <= options.trials]
    print("| claim | truth | trials | exact ratio |", *(f"lost: {name} |" for name in options.attacks.split(",")))
    for case in CASES:
        limit = math.log(20) / case.divergence
        if limit > _MOST_RUNS or options.only not in f"{case.claim}, {case.truth}":
            continue
        known = np.array(
            [log_wealth(case, LikelihoodRatio(exact(case)), seed, points) for seed in range(options.seeds)]
        )
        columns = []
        for name in options.attacks.split(","):
            lost = known - np.array([log_wealth(case, name, seed, points) for seed in range(options.seeds)])
            columns.append((lost.mean(axis=0), lost.std(axis=0, ddof=1) / math.sqrt(options.seeds)))
        for i, point in enumerate(points):
            cells = [case.claim, case.truth, f"{point:,}", f"{known[:, i].mean():.2f}"]
            cells += [f"{mean[i]:.2f} ± {error[i]:.2f}" for mean, error in columns]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
