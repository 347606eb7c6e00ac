"""Shuffled batches with the claim of Poisson sampling: certified epsilon beside the claimed epsilon.

    python benchmarks/training_shuffling.py [--setting 10 0.5] [--epochs 2000] [--seeds 3] [--store FILE] [--markdown]

The setting is that of Annamalai et al. 2026 (arXiv:2411.10614).  A training is one epoch with N / B batches, and the
noisy sum of clipped gradients of each batch is visible.  The clipped gradient of the target is +C, and the clipped
gradients of all other records are -C.  In d0 the gradient of the target is 0, so that the target is absent.  The claim
is that of Poisson sampling: N / B compositions of gaussian(mu=1/sigma), subsampled with the rate B / N.

Let z be the noisy batch sums, plus B, in units of C.  Shuffling moves a uniformly random entry of z by 1 in d0 and by 2
in d1.  The score is the logarithm of the likelihood ratio of these two laws.  The law of z depends on N and B only
through N / B, so batches of `--size` records suffice.

Each setting is the number of batches and the noise multiplier sigma.  Half of the epochs are on d0.  For each setting
the command prints the claimed epsilon and the median over the seeds of the certified epsilon, at 95 % confidence.  At
delta = 1e-5 the certified epsilon assumes a Gaussian trade-off function.  At delta = 0.2 it assumes nothing.  Most of
the excess of shuffling lies at large delta, because Poisson sampling may omit the target from all batches.  The next
columns are the median p-value, and how many audits refuted the claim.  The control is the same training with Poisson
sampling, which satisfies the claim; the last column counts refutations of the control.

The result of each audit is saved in the store, so that an interrupted command can be resumed.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from audit_store import Row, Store
from scipy.special import logsumexp

from dpaudit import Pair
from dpaudit.claims import TradeoffFunction
from dpaudit.numerics import Array
from dpaudit.training import claim, many_runs, reference, views
from dpaudit.training.reference.model import FAR

DELTA, LARGE_DELTA, CONFIDENCE = 1e-5, 0.2, 0.95
SETTINGS = ((10, 0.5), (10, 1.0), (100, 0.5), (100, 0.7))  # number of batches, noise multiplier


def claimed(batches: int, sigma: float) -> TradeoffFunction:
    return claim(
        noise_multiplier=sigma, sampling_rate=1 / batches, steps=batches, sampling="shuffled", claimed_as="poisson"
    )


def likelihood_ratio(sigma: float, size: int) -> views.View:
    """Return a view that outputs the logarithm of the likelihood ratio of shuffled batches."""

    def output(run: reference.Run, seen: list[Array]) -> Array:
        z = np.stack(seen, axis=1) + size
        moved = [logsumexp((by * z - by**2 / 2) / sigma**2, axis=1) for by in (1.0, 2.0)]
        return np.asarray(moved[1] - moved[0])

    return views.View(output, steps=lambda run: run.released[:, -1].copy(), name="noisy batch sums")


def records(target: float, batches: int, size: int) -> reference.Records:
    """Return N records that share one spare weight; only the gradient of the last record differs from -C."""
    n = batches * size
    return reference.Records(diracs=np.zeros(n, dtype=np.int64), sizes=[-FAR] * (n - 1) + [target])


def audited(batches: int, sigma: float, size: int, epochs: int, shuffled: bool, seed: int) -> Row:
    trainer = reference.Trainer(
        model=reference.Model((1, 2), spare=1),
        noise_multiplier=sigma,
        steps=batches,
        sampling=reference.Shuffled(batches) if shuffled else reference.Poisson(1 / batches),
    )
    train = reference.Training(trainer, likelihood_ratio(sigma, size))
    pair = Pair(records(0.0, batches, size), records(FAR, batches, size), "add_remove", "target absent and present")
    sampler = Sampler(train)
    result = many_runs(sampler, pair, claimed(batches, sigma), models=epochs, confidence=CONFIDENCE, seed=seed)
    return {
        "gaussian": float(result.epsilon_lower(DELTA, assuming="gaussian")),
        "any": float(result.epsilon_lower(LARGE_DELTA)),
        "p": float(result.p_value),
        "refuted": float(result.violated),
    }


class Sampler:
    """A training without checks of its claim, since the gradient 0 stands for an absent record."""

    def __init__(self, train: reference.Training) -> None:
        self._train = train

    def sample(self, dataset: reference.Records, n: int, rng: np.random.Generator) -> Array:
        return self._train.sample(dataset, n, rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--setting", type=float, nargs=2, action="append", metavar=("BATCHES", "SIGMA"), help="may be repeated"
    )
    parser.add_argument("--epochs", type=int, default=2000, help="number of epochs of an audit, on both datasets")
    parser.add_argument("--size", type=int, default=1, help="number of records in a batch")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--store", type=Path, help="a file of finished audits, to go on with")
    parser.add_argument("--markdown", action="store_true", help="print a table for the docs")
    options = parser.parse_args()
    store, seeds = Store(options.store), range(options.first, options.first + options.seeds)
    head = (
        "batches",
        "sigma",
        "claimed",
        "if Gaussian",
        "claimed (0.2)",
        "certified (0.2)",
        "p-value",
        "refuted",
        "control",
    )
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}" if options.markdown else "  ".join(head), flush=True)
    for given, sigma in options.setting or SETTINGS:
        batches = int(given)
        rows: dict[bool, list[Row]] = {}
        for shuffled in (True, False):
            key = f"{batches} {sigma:g} {options.size} {options.epochs} {'shuffled' if shuffled else 'poisson'}"
            make = partial(audited, batches, sigma, options.size, options.epochs, shuffled)
            rows[shuffled] = [store.row(f"{key} {seed}", partial(make, seed)) for seed in seeds]
        cells = [
            f"{batches}",
            f"{sigma:g}",
            f"{claimed(batches, sigma).epsilon(DELTA):.2f}",
            f"{np.median([row['gaussian'] for row in rows[True]]):.2f}",
            f"{claimed(batches, sigma).epsilon(LARGE_DELTA):.2f}",
            f"{np.median([row['any'] for row in rows[True]]):.2f}",
            f"{np.median([row['p'] for row in rows[True]]):.2g}",
            *(f"{sum(row['refuted'] for row in found):.0f} of {len(found)}" for found in rows.values()),
        ]
        print(f"| {' | '.join(cells)} |" if options.markdown else "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
