"""Scores of canaries of which a fixed number is included, and of several runs: levels, and what is certified.

    python benchmarks/score_designs.py [levels] [bounds] [--audits 20000] [--seeds 5]

- levels: the share of audits that refute the claim gaussian(mu=1), which is exactly true, at 95 %.  Scores are N(0, 1)
  or N(1, 1); or all canaries share a state that reveals much with probability .3937, and otherwise nothing (as in
  `one_run_tables.py counterexample`).
- bounds: median bounds on mu for N(0, 1) against N(mu, 1) and 1,000 canaries: coins, a fixed number, several runs.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy.special import expit

from dpaudit import GaussianDP
from dpaudit.engine.score_guesses import count_guesses, count_in_runs
from dpaudit.inference.scores.dependence import half_included
from dpaudit.numerics.arrays import Array
from dpaudit.result.base_evidence import ScoresGuesses

CONFIDENCE = 0.95
STATE, TELLS = 0.3937, float(expit(1.5))
LEVELS: tuple[tuple[Any, str, int, int, int, bool], ...] = (
    # independence, inclusion, canaries of a run, included, runs, common state
    ("canaries", "fixed_number", 13, 5, 1, False),
    ("canaries", "fixed_number", 200, 20, 1, False),
    ("canaries", "fixed_number", 200, 100, 1, False),
    (None, "fixed_number", 200, 20, 1, False),
    (None, "fixed_number", 200, 100, 1, True),
    (None, "fixed_number", 200, 60, 1, True),
    (None, "coins", 200, 0, 1, True),
    (None, "coins", 100, 0, 3, True),
    (None, "fixed_number", 100, 50, 3, True),
)


def made(rng: np.random.Generator, m: int, included: int, runs: int, mu: float, *, state: bool) -> tuple[Any, Any, Any]:
    """Return scores, whether canaries were included (by coins if `included` is 0), and runs, each (runs, m)."""
    coins = rng.random((runs, m)) < 0.5 if not included else np.argsort(rng.random((runs, m)), axis=1) < included
    scores = rng.normal(mu * coins)
    if state:
        told = rng.random((runs, m)) < np.where(rng.random((runs, 1)) < STATE, TELLS, 0.5)
        scores = np.where(told == coins, 1.0, -1.0)
    return scores.ravel(), coins.ravel(), np.repeat(np.arange(runs), m)


def evidence_of(
    scores: Array, included: Any, run: Any, independence: Any, inclusion: Any, rng: np.random.Generator
) -> ScoresGuesses:
    """Count as `audit_scores` does."""
    sides = scores[~included], scores[included]
    if run.max() > 0:
        return count_in_runs(sides, (run[~included], run[included]), None, rng, inclusion)[0]
    half = half_included(*map(len, sides))
    return count_guesses(*sides, independence, None, rng, half=half, inclusion=inclusion)[0]


def levels(audits: int) -> None:
    """Print how often a true claim is refuted; counts that refute are computed once for each design."""
    claim = GaussianDP(1.0)
    for independence, inclusion, m, k, runs, state in LEVELS:
        rng, refuted, fewest = np.random.default_rng(1), 0, {}
        for _ in range(audits):
            found = evidence_of(*made(rng, m, k, runs, 1.0, state=state), independence, inclusion, rng)
            key = found.number_note
            if key not in fewest:
                fewest[key] = found.least_right(claim, confidence=CONFIDENCE)
            least = fewest[key]
            refuted += least is not None and found.right >= least
        print(
            f"independence {independence}, {inclusion} ({k or 'half'} of {m}), runs {runs}, "
            f"{'common state' if state else 'independent'}: refuted {refuted / audits:.4f} of {audits:,}",
            flush=True,
        )


def bounds(seeds: int) -> None:
    """Print median bounds on mu."""
    designs: tuple[tuple[Any, str, int, int, int], ...] = (
        ("canaries", "coins", 1000, 0, 1),
        ("canaries", "fixed_number", 1000, 500, 1),
        ("canaries", "fixed_number", 1000, 100, 1),
        (None, "coins", 1000, 0, 1),
        (None, "fixed_number", 1000, 500, 1),
        (None, "fixed_number", 1000, 100, 1),
        (None, "coins", 500, 0, 2),
        (None, "coins", 200, 0, 5),
        (None, "coins", 1000, 0, 5),
    )
    for independence, inclusion, m, k, runs in designs:
        row = []
        for mu in (1.0, 2.0, 4.0):
            rng = np.random.default_rng(2)
            every = [
                evidence_of(*made(rng, m, k, runs, mu, state=False), independence, inclusion, rng)
                for _ in range(4 * seeds)
            ]
            kept = sorted([one for one in every if not one.number_note][:seeds], key=lambda one: one.right)
            row.append(kept[len(kept) // 2].mu_lower(confidence=CONFIDENCE))
        text = ", ".join(f"{bound:.3f}" for bound in row)
        print(f"{independence}, {inclusion} ({k or 'half'} of {m}), runs {runs}: mu 1, 2, 4 >= {text}", flush=True)


def main() -> None:
    """Read the options, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["levels", "bounds"], metavar="PART")
    parser.add_argument("--audits", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    if "levels" in options.parts:
        levels(options.audits)
    if "bounds" in options.parts:
        bounds(options.seeds)


if __name__ == "__main__":
    main()
