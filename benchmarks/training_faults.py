"""Faults of private training: how many models or steps refute them, and how often correct training is refuted.

    python benchmarks/training_faults.py [mistakes] [claims] [steps] [validity] [--seeds 10] [--first 0] [--store FILE]

- mistakes: models per dataset until a sequential audit with all attacks refutes each wrong builtin training, at 95 %,
  with at most 2,000.
- claims: the share of `many_runs` audits of 200 models that refute the exact claim of a correct trainer, at 95 %; use
  --seeds 200.  The trainings are DP-GD and DP-SGD on four records; the score is the spare weight of the Dirac canary.
- steps: steps of one training of the digits (DP-SGD, batches of 5 %) until noise that is 20 % too small is refuted, at
  95 %, with at most 5,000.  A Dirac canary joins the batch by a coin for each step.
- validity: the share of trainings as in `steps`, but with the right noise, that are refuted within `--length` steps;
  use --seeds 200.  The result of each training is saved in the store, so that an interrupted command can be resumed.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from audit_store import Row, Store
from sklearn.datasets import load_digits

from dpaudit import AuditResult, Pair, audit
from dpaudit.catalogue import BUILTIN
from dpaudit.catalogue.training import EXAMPLES
from dpaudit.numerics import Array
from dpaudit.pairs.search import SearchPairs
from dpaudit.training import canaries, claim, many_runs, reference, step_by_step, views
from dpaudit.training.reference.trainer import State

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True, eq=False)
class WeakNoise(reference.Trainer):
    """Noise of `share` times the claimed standard deviation."""

    share: float = 0.8

    def noise(self, state: State) -> Array:
        return np.asarray(self.share * super().noise(state))


def spread(values: list[int]) -> str:
    return f"median {np.median(values):,.0f}, {min(values):,} to {max(values):,}"


def mistakes(seeds: range) -> None:
    for name, make in BUILTIN.items():
        mechanism = make()
        if not name.startswith("dp_") or mechanism.private:
            continue
        used, missed, began = [], 0, time.process_time()
        for seed in seeds:
            pairs = list(SearchPairs(**mechanism.inputs))
            result = audit(mechanism, mechanism.claim, pairs, trials=2000, confidence=CONFIDENCE, seed=seed)
            used.append(result.trials_used)
            missed += not result.violated
        seconds = (time.process_time() - began) / len(seeds)
        print(f"{name}: {spread(used)} models per dataset, {missed} missed, {seconds:.1f} s each", flush=True)


def claims(seeds: range) -> None:
    data = reference.Records(**EXAMPLES)
    pair = Pair(data, data.joined(canaries.dirac(1)), "add_remove")
    model = reference.Model((2, 2), spare=1)
    for name, sampling in (("DP-GD", reference.Full()), ("DP-SGD", reference.Poisson(0.25))):
        trainer = reference.Trainer(model=model, noise_multiplier=2.0, steps=8, sampling=sampling)
        train = reference.Training(trainer, views.spare_weights())
        refuted = [many_runs(train, pair, trainer.claim, confidence=CONFIDENCE, seed=seed).violated for seed in seeds]
        allowed = 0.05 + 3 * math.sqrt(0.05 * 0.95 / len(seeds))
        print(f"{name}: {trainer.claim}: refuted {np.mean(refuted):.3f} of {len(seeds)}, allowed {allowed:.3f}")


def stream(share: float, steps: int, seed: int) -> AuditResult:
    """Train on the digits once, and audit while it trains."""
    features, labels = load_digits(return_X_y=True)
    trainer = WeakNoise(
        model=reference.Model((64, 10), spare=1),
        noise_multiplier=1.0,
        steps=steps,
        learning_rate=0.01,
        sampling=reference.Poisson(0.05),
        share=share,
    )
    step = reference.StepByStep(trainer, reference.Records(features / 16, labels), canaries.dirac(1), seed=seed)
    exact = claim(noise_multiplier=trainer.noise_multiplier, steps=1, sampling="full")
    return step_by_step(step, exact, steps=steps, confidence=CONFIDENCE, seed=10**6 + seed)


def steps_until(seeds: range, length: int) -> None:
    began = time.process_time()
    found = [stream(0.8, length, seed) for seed in seeds]
    seconds = (time.process_time() - began) / len(found)
    missed = sum(not result.violated for result in found)
    used = [2 * result.trials_used for result in found]  # a coin for each step: two steps count as one run per dataset
    print(f"noise 20 % too small: {spread(used)} steps, {missed} missed, {seconds:.1f} s each", flush=True)


def right(length: int, seed: int) -> Row:
    """Audit a training with the right noise."""
    began = time.process_time()
    return {"refuted": float(stream(1.0, length, seed).violated), "seconds": time.process_time() - began}


def validity(seeds: range, length: int, store: Store) -> None:
    rows = [store.row(f"validity {length} {seed}", partial(right, length, seed)) for seed in seeds]
    refuted, seconds = (np.mean([row[name] for row in rows]) for name in ("refuted", "seconds"))
    print(f"right noise: refuted {refuted:.3f} of {len(rows)} trainings of {length:,} steps, {seconds:.1f} s each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ["mistakes", "claims", "steps", "validity"]
    parser.add_argument("parts", nargs="*", default=["mistakes", "steps"], choices=parts)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=5000, help="maximum number of steps")
    parser.add_argument("--store", type=Path, help="a file of finished trainings of `validity`, to go on with")
    options: Any = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    if "mistakes" in options.parts:
        mistakes(seeds)
    if "claims" in options.parts:
        claims(seeds)
    if "steps" in options.parts:
        steps_until(seeds, options.length)
    if "validity" in options.parts:
        validity(seeds, options.length, Store(options.store))


if __name__ == "__main__":
    main()
