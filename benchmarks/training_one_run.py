"""Certified epsilon of one real training with 1,000 Dirac canaries, beside the claimed epsilon.

    python benchmarks/training_one_run.py [--epsilon 8 4 2 1] [--seeds 5] [--first 0] [--store FILE] [--markdown]
        [--law AUDITS]

The training is DP-SGD of a network with 32 hidden units on scikit-learn's digits.  Each of 1,000 canaries has a spare
weight of its own, and a secret coin decides whether the canary is in the training data.  Each record is in a batch with
probability 1/4, and there are 2,500 steps.  The noise multiplier gives the claimed epsilon at delta = 1e-5, from the
exact composition of the subsampled Gaussian claims.  The score of a canary is the sum of the noisy gradients at its
spare weight.

For each claimed epsilon the command prints the noise multiplier, and medians over the seeds at 95 % confidence.  The
bound "independent" assumes that canaries are independent, and "nothing assumed" omits this assumption; both assume a
Gaussian trade-off function.  "share" is the share of the claimed epsilon that the first bound certifies.  The accuracy
is that of the model on its training data, and the seconds are those of one training.  The command also prints how many
audits refuted the claim, which is true.

Each claimed epsilon has separate seeds, so that all audits are independent.  With --law, no model is trained: scores
are drawn from the exact law of Dirac canaries, which are independent.  The command then counts how many audits refute
the true claim, which should be at most 5 %.

The result of each training is saved in the store, so that an interrupted command can be resumed.
"""

from __future__ import annotations

import argparse
import time
from functools import cache, partial
from pathlib import Path

import numpy as np
from audit_store import Row, Store
from scipy.optimize import brentq
from score_bounds import rank_test
from sklearn.datasets import load_digits

from dpaudit import audit_scores
from dpaudit.claims import TradeoffFunction
from dpaudit.numerics import Array, Flags
from dpaudit.training import canaries, claim, one_run, reference, views

DELTA, CONFIDENCE, STEPS, RATE, CANARIES, HIDDEN = 1e-5, 0.95, 2500, 0.25, 1000, 32


def claimed(sigma: float) -> TradeoffFunction:
    return claim(noise_multiplier=sigma, sampling_rate=RATE, steps=STEPS)


def multiplier(epsilon: float) -> Row:
    """Return the least noise multiplier, rounded up, for which the claimed epsilon is at most `epsilon`."""

    def excess(sigma: float) -> float:
        return float(claimed(sigma).epsilon(DELTA)) - epsilon

    return {"sigma": float(np.ceil(1000 * brentq(excess, 2.0, 100.0, xtol=1e-3)) / 1000)}


@cache
def digits() -> reference.Records:
    features, labels = load_digits(return_X_y=True)
    return reference.Records(features / 16, labels)


def network(run: reference.Run, seen: list[Array]) -> Array:
    """Return the scores of the canaries, followed by the accuracy of the model on the digits."""
    logits = run.trainer.model.forward(run.weights, digits().features)[1][0]
    right = float(np.mean(np.argmax(logits, axis=0) == digits().labels))
    return np.concatenate([views.spare_weights().output(run, seen)[0], [right]])[None]


class Kept:
    """A training of one model that keeps the coins, the scores and the accuracy."""

    def __init__(self, sigma: float) -> None:
        trainer = reference.Trainer(
            model=reference.Model((64, HIDDEN, 10), spare=CANARIES),
            noise_multiplier=sigma,
            steps=STEPS,
            learning_rate=0.002,
            sampling=reference.Poisson(RATE),
        )
        self.train = reference.OneRun(trainer, digits(), canaries.dirac(CANARIES), views.View(network))
        self.coins = np.zeros(CANARIES, dtype=np.bool_)
        self.scores, self.accuracy = np.zeros(CANARIES), 0.0

    def __call__(self, included: Flags, rng: np.random.Generator) -> Array:
        found = self.train(included, rng)
        self.coins, self.scores, self.accuracy = included, found[:-1], float(found[-1])
        return self.scores


def audited(sigma: float, seed: int) -> Row:
    """Train one model, and certify with and without the assumption that the canaries are independent."""
    kept, began = Kept(sigma), time.perf_counter()
    result = one_run(kept, CANARIES, claimed(sigma), independence="canaries", confidence=CONFIDENCE, seed=seed)
    seconds = time.perf_counter() - began
    free = audit_scores(
        kept.scores[~kept.coins],
        kept.scores[kept.coins],
        claimed(sigma),
        independence=None,
        confidence=CONFIDENCE,
        seed=seed,
    )
    return {
        "independent": float(result.epsilon_lower(DELTA, assuming="gaussian")),
        "nothing": float(free.epsilon_lower(DELTA, assuming="gaussian")),
        "refuted": float(result.violated),
        "accuracy": kept.accuracy,
        "seconds": seconds,
    }


def refuted_by_law(sigma: float, audits: int, seed: int) -> float:
    """Return the share of audits of Dirac canaries, assumed to be independent as they are, that refute the claim."""
    true, rng, refuted, level = claimed(sigma).symmetrized(), np.random.default_rng(seed), 0, 1 - CONFIDENCE
    for _ in range(audits):
        coins = rng.random(CANARIES) < 0.5
        scores = coins * rng.binomial(STEPS, RATE, CANARIES) + rng.normal(0, sigma * np.sqrt(STEPS), CANARIES)
        test = rank_test(scores[~coins], scores[coins], "independent", None, 0)
        refuted += test.p_value(true, enough=level) <= level
    return refuted / audits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[8.0, 4.0, 2.0, 1.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--store", type=Path, help="a file of finished trainings, to go on with")
    parser.add_argument("--markdown", action="store_true", help="print a table for the docs")
    parser.add_argument("--law", type=int, help="number of audits of scores from the exact law, without training")
    options = parser.parse_args()
    store = Store(options.store)
    if options.law:
        for epsilon in options.epsilon:
            sigma = store.row(f"sigma {epsilon:g}", partial(multiplier, epsilon))["sigma"]
            share = refuted_by_law(sigma, options.law, _seed(epsilon, options.first))
            print(f"claimed {epsilon:g}: {share:.1%} of {options.law:,} audits refuted the claim", flush=True)
        return
    head = ("claimed", "sigma", "independent", "share", "nothing assumed", "accuracy", "claim refuted", "seconds")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}" if options.markdown else "  ".join(head), flush=True)
    for epsilon in options.epsilon:
        sigma = store.row(f"sigma {epsilon:g}", partial(multiplier, epsilon))["sigma"]
        seeds = [_seed(epsilon, number) for number in range(options.first, options.first + options.seeds)]
        rows = [store.row(f"run {epsilon:g} {seed}", partial(audited, sigma, seed)) for seed in seeds]
        median = {name: float(np.median([row[name] for row in rows])) for name in rows[0]}
        cells = [
            f"{epsilon:g}",
            f"{sigma:g}",
            f"{median['independent']:.2f}",
            f"{median['independent'] / epsilon:.0%}",
            f"{median['nothing']:.2f}",
            f"{median['accuracy']:.2f}",
            f"{sum(row['refuted'] for row in rows):.0f} of {len(rows)}",
            f"{median['seconds']:.0f}",
        ]
        print(f"| {' | '.join(cells)} |" if options.markdown else "  ".join(cells), flush=True)


def _seed(epsilon: float, number: int) -> int:
    """Return a seed that no other epsilon uses."""
    return round(1000 * epsilon) * 10**6 + number


if __name__ == "__main__":
    main()
