"""Certified epsilon of DP-GD from the last weights, with worst-case initial weights, by the number of models.

    python benchmarks/training_last_iterate.py [--epsilon 10 4] [--models 200 1000] [--seeds 9] [--penalty 1e-3]

The protocol of Annamalai & De Cristofaro 2024 (arXiv:2405.14106) on scikit-learn's digits (8x8): d0 has 999 records,
and d1 has also a blank image with the label that the initial model finds least likely.  The initial model is a logistic
regression fitted without privacy on 797 other records, with `--penalty` (1 is scikit-learn's default; a smaller one
makes the model more certain, so that the records counteract the target less).  Full-batch DP-GD, sum of gradients
clipped to norm 1, 100 steps, learning rate 1.33e-3, sigma = 10 / mu(epsilon at delta 1e-5).  Score: loss on the target.
Half of the models are trained on d0.  All scores count, without a threshold that is learned from them.

Prints the median, the smallest and the largest certified epsilon at delta 1e-5 over the seeds, at confidence 95 %,
if `mu_lower` is converted by a Gaussian curve.  Also prints the epsilon without the assumption of a curve, the mu of
the scores themselves, which no certified mu can exceed by much, and the time of one audit.  Annamalai & De Cristofaro
certify 7.21 (MNIST) and 6.95 (CIFAR-10) at epsilon 10 from 200 models, with a threshold chosen on the same scores.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.optimize import brentq
from sklearn.datasets import load_digits

from dpaudit import GaussianDP, Pair
from dpaudit.numerics import Array
from dpaudit.training import canaries, many_runs, reference, views

DELTA, CONFIDENCE, STEPS, RATE, RECORDS, OTHERS = 1e-5, 0.95, 100, 1.33e-3, 999, 797


def setting(epsilon: float, penalty: float) -> tuple[reference.Training, Pair]:
    """Return the training at a claimed epsilon, and the two datasets."""
    features, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    digits = reference.Records(features[order] / 16, labels[order])
    records, others = digits.chosen(range(RECORDS)), digits.chosen(range(len(digits) - OTHERS, len(digits)))
    model = reference.Model((64, 10))
    start = reference.fitted(model, others, penalty=penalty)
    target = canaries.blank(model, start)
    mu = brentq(lambda mu: float(GaussianDP(mu).epsilon(DELTA)) - epsilon, 1e-3, 20)
    trainer = reference.Trainer(
        model=model, noise_multiplier=STEPS**0.5 / mu, steps=STEPS, learning_rate=RATE, start=start
    )
    return reference.Training(trainer, views.loss(target)), Pair(records, records.joined(target), "add_remove")


class Kept:
    """A training that keeps its scores, for the mu of the scores."""

    def __init__(self, train: reference.Training) -> None:
        self.train, self.scores = train, list[Array]()

    def sample(self, dataset: reference.Records, n: int, rng: np.random.Generator) -> Array:
        self.scores.append(self.train.sample(dataset, n, rng))
        return self.scores[-1]


def mu_of(scores0: Array, scores1: Array) -> float:
    """Return the distance of the means in standard deviations: mu, if the scores are Gaussian."""
    return float((scores1.mean() - scores0.mean()) / np.sqrt((scores0.var() + scores1.var()) / 2))


def row(epsilon: float, models: int, seeds: range, penalty: float) -> list[str]:
    """Audit once for each seed."""
    train, pair = setting(epsilon, penalty)
    inside, outside, mus, seconds, refuted = [], [], [], [], 0
    for seed in seeds:
        kept, began = Kept(train), time.perf_counter()
        result = many_runs(kept, pair, train.claim, models=models, confidence=CONFIDENCE, seed=seed)
        seconds.append(time.perf_counter() - began)
        inside.append(float(result.epsilon_lower(DELTA, assuming="gaussian")))
        outside.append(float(result.epsilon_lower(DELTA)))
        mus.append(mu_of(*(np.concatenate(kept.scores[side::2][1:]) for side in (0, 1))))  # without the probes
        refuted += result.violated
    return [
        f"{epsilon:g}",
        f"{models:,}",
        f"{np.median(inside):.2f}",
        f"{min(inside):.2f} to {max(inside):.2f}",
        f"{np.median(outside):.2f}",
        f"{float(GaussianDP(float(np.mean(mus))).epsilon(DELTA)):.2f}",
        f"{refuted} of {len(seeds)}",
        f"{np.median(seconds):.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[10.0, 4.0])
    parser.add_argument("--models", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--penalty", type=float, default=1e-3)
    parser.add_argument("--markdown", action="store_true", help="print a table for the docs")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    head = ("claimed", "models", "certified", "range", "any curve", "of the scores", "claim refuted", "seconds")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}" if options.markdown else "  ".join(head), flush=True)
    for epsilon in options.epsilon:
        for models in options.models:
            cells = row(epsilon, models, seeds, options.penalty)
            print(f"| {' | '.join(cells)} |" if options.markdown else "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
