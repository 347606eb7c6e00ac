"""Private training: faults and false alarms, and certified epsilon of one model and of many.

    python benchmarks/training.py [--seeds N] [--only TEXT ...]

- mistakes: models per dataset until a sequential audit with all attacks refutes each wrong builtin training, at 95 %,
  with at most 2,000.
- steps: steps of one training of the digits (DP-SGD, batches of 5 %) until noise that is 20 % too small, or right, is
  refuted, at 95 %, with at most 5,000.  A Dirac canary joins the batch by a coin for each step.
- one run: DP-SGD of a network with 32 hidden units on scikit-learn's digits, 2,500 steps with sampling rate 1/4, and
  1,000 Dirac canaries, each of which a secret coin includes.  The noise multiplier gives the claimed epsilon at delta =
  1e-5.  The score of a canary is the sum of the noisy gradients at its spare weight.  Medians at 95 %; both bounds
  assume a Gaussian trade-off function, and the first one independent canaries.
- last iterate: epsilon of DP-GD from the last weights, with worst-case initial weights, by the protocol of Annamalai &
  De Cristofaro 2024 (arXiv:2405.14106) on the digits: d0 has 999 records, and d1 has also a blank image with the label
  that the initial model finds least likely.  The initial model is a logistic regression fitted without privacy on 797
  other records.  Full batches, gradients clipped to norm 1, 100 steps, learning rate 1.33e-3, sigma = 10 / mu(epsilon
  at delta 1e-5).  The score is the loss on the target; all scores count.  "Of the scores" is the epsilon of the mu of
  the scores, which no certified mu can exceed by much.  Annamalai & De Cristofaro certify 7.21 (MNIST) and 6.95
  (CIFAR-10) at epsilon 10 from 200 models, with a threshold chosen on the same scores.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy.optimize import brentq
from sklearn.datasets import load_digits

from dpaudit import GaussianDP, Pair, audit, audit_scores
from dpaudit.catalogue import BUILTIN
from dpaudit.claims import TradeoffFunction
from dpaudit.numerics import Array, Flags
from dpaudit.pairs.search import SearchPairs
from dpaudit.training import canaries, claim, many_runs, one_run, reference, step_by_step, views
from dpaudit.training.reference.trainer import State
from measure import SECONDS, Case, Outcome, Table, count, mean, median, rate, run, spread

CONFIDENCE, DELTA, LARGE_DELTA = 0.95, 1e-5, 0.2


@cache
def digits() -> reference.Records:
    features, labels = load_digits(return_X_y=True)
    return reference.Records(features / 16, labels)


# --- Faults, and claims of correct trainers


@dataclass(frozen=True, kw_only=True, eq=False)
class WeakNoise(reference.Trainer):
    """Noise of `share` times the claimed standard deviation."""

    share: float = 0.8

    def noise(self, state: State) -> Array:
        return np.asarray(self.share * super().noise(state))


def mistake(name: str, seed: int) -> Outcome:
    mechanism = BUILTIN[name]()
    pairs = list(SearchPairs(**mechanism.inputs))
    result = audit(mechanism, mechanism.claim, pairs, trials=2000, confidence=CONFIDENCE, seed=seed)
    return {"models": result.trials_used, "missed": not result.violated}


def stream(share: float, seed: int) -> Outcome:
    """Train on the digits once, and audit while it trains."""
    steps = 5000
    trainer = WeakNoise(
        model=reference.Model((64, 10), spare=1),
        noise_multiplier=1.0,
        steps=steps,
        learning_rate=0.01,
        sampling=reference.Poisson(0.05),
        share=share,
    )
    step = reference.StepByStep(trainer, digits(), canaries.dirac(1), seed=seed)
    exact = claim(noise_multiplier=trainer.noise_multiplier, steps=1, sampling="full")
    result = step_by_step(step, exact, steps=steps, confidence=CONFIDENCE, seed=10**6 + seed)
    return {"refuted": result.violated, "steps": 2 * result.trials_used}  # two steps count as one run per dataset


# --- One run

STEPS, RATE, CANARIES = 2500, 0.25, 1000


def claimed(sigma: float) -> TradeoffFunction:
    return claim(noise_multiplier=sigma, sampling_rate=RATE, steps=STEPS)


@cache
def multiplier(epsilon: float) -> float:
    """Return the least noise multiplier, rounded up, for which the claimed epsilon is at most `epsilon`."""

    def excess(sigma: float) -> float:
        return float(claimed(sigma).epsilon(DELTA)) - epsilon

    return float(np.ceil(1000 * brentq(excess, 2.0, 100.0, xtol=1e-3)) / 1000)


def network(run: reference.Run, seen: list[Array]) -> Array:
    """Return the scores of the canaries, followed by the accuracy of the model on the digits."""
    logits = run.trainer.model.forward(run.weights, digits().features)[1][0]
    right = float(np.mean(np.argmax(logits, axis=0) == digits().labels))
    return np.concatenate([views.spare_weights().output(run, seen)[0], [right]])[None]


class KeptModel:
    """A training of one model that keeps the coins, the scores and the accuracy."""

    def __init__(self, sigma: float) -> None:
        trainer = reference.Trainer(
            model=reference.Model((64, 32, 10), spare=CANARIES),
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


def one_model(epsilon: float, seed: int) -> Outcome:
    """Train one model, and certify with and without the assumption that the canaries are independent."""
    kept, true = KeptModel(multiplier(epsilon)), claimed(multiplier(epsilon))
    result = one_run(kept, CANARIES, true, independence="canaries", confidence=CONFIDENCE, seed=seed)
    sides = kept.scores[~kept.coins], kept.scores[kept.coins]
    free = audit_scores(*sides, true, independence=None, confidence=CONFIDENCE, seed=seed)
    return {
        "independent": float(result.epsilon_lower(DELTA, assuming="gaussian")),
        "nothing": float(free.epsilon_lower(DELTA, assuming="gaussian")),
        "refuted": result.violated,
        "accuracy": kept.accuracy,
    }


# --- The last iterate


def setting(epsilon: float) -> tuple[reference.Training, Pair]:
    """Return the training at a claimed epsilon, and the two datasets."""
    data, steps = digits(), 100
    order = np.random.default_rng(0).permutation(len(data))
    records, others = data.chosen(order[:999]), data.chosen(order[-797:])
    model = reference.Model((64, 10))
    start = reference.fitted(model, others, penalty=1e-3)
    target = canaries.blank(model, start)
    mu = brentq(lambda mu: float(GaussianDP(mu).epsilon(DELTA)) - epsilon, 1e-3, 20)
    trainer = reference.Trainer(
        model=model, noise_multiplier=steps**0.5 / mu, steps=steps, learning_rate=1.33e-3, start=start
    )
    return reference.Training(trainer, views.loss(target)), Pair(records, records.joined(target), "add_remove")


class KeptScores:
    """A training that keeps its scores, for the mu of the scores."""

    def __init__(self, train: reference.Training) -> None:
        self.train, self.scores = train, list[Array]()

    def sample(self, dataset: reference.Records, n: int, rng: np.random.Generator) -> Array:
        self.scores.append(self.train.sample(dataset, n, rng))
        return self.scores[-1]


def last_iterate(epsilon: float, models: int, seed: int) -> Outcome:
    train, pair = setting(epsilon)
    kept = KeptScores(train)
    result = many_runs(kept, pair, train.claim, models=models, confidence=CONFIDENCE, seed=seed)
    scores0, scores1 = (np.concatenate(kept.scores[side::2][1:]) for side in (0, 1))  # without the probes
    mu = float((scores1.mean() - scores0.mean()) / np.sqrt((scores0.var() + scores1.var()) / 2))  # if Gaussian
    return {
        "certified": float(result.epsilon_lower(DELTA, assuming="gaussian")),
        "any": float(result.epsilon_lower(DELTA)),
        "scores": float(GaussianDP(mu).epsilon(DELTA)) if mu > 0 else 0.0,
        "refuted": result.violated,
    }


def tables(options: argparse.Namespace) -> list[Table]:
    wrong = [name for name, make in BUILTIN.items() if name.startswith("dp_") and not make().private]
    seconds = {"s": mean(SECONDS)}
    return [
        Table(
            name="mistakes",
            headings=("training",),
            columns={"models per dataset": spread("models"), "missed": count("missed"), **seconds},
            cases=[Case(cells=(name,), measure=partial(mistake, name), seeds=10) for name in wrong],
        ),
        Table(
            name="steps",
            headings=("noise",),
            columns={"refuted": rate("refuted"), "steps": spread("steps"), **seconds},
            cases=[
                Case(cells=("20 % too small",), measure=partial(stream, 0.8), seeds=10),
                Case(cells=("right",), measure=partial(stream, 1.0), seeds=200),
            ],
        ),
        Table(
            name="one run",
            headings=("claimed epsilon",),
            columns={
                "independent": median("independent", ".2f"),
                "nothing assumed": median("nothing", ".2f"),
                "accuracy": median("accuracy", ".2f"),
                "claim refuted": count("refuted"),
                **seconds,
            },
            cases=[
                Case(
                    cells=(f"{epsilon:g}",),
                    measure=partial(one_model, epsilon),
                    seeds=5,
                    first=round(1000 * epsilon) * 10**6,  # so that all audits are independent
                )
                for epsilon in (8.0, 4.0, 2.0, 1.0)
            ],
        ),
        Table(
            name="last iterate",
            headings=("claimed epsilon", "models"),
            columns={
                "certified": spread("certified", ".2f"),
                "any curve": median("any", ".2f"),
                "of the scores": median("scores", ".2f"),
                "claim refuted": count("refuted"),
                **seconds,
            },
            cases=[
                Case(cells=(f"{epsilon:g}", f"{models:,}"), measure=partial(last_iterate, epsilon, models), seeds=9)
                for epsilon in (10.0, 4.0)
                for models in (200, 1000)
            ],
        ),
    ]


if __name__ == "__main__":
    sys.exit(run(__doc__, tables))
