"""Statements about more than one claim: sizes after a refutation, commands of many audits, and streams.

Sizes: of each of fourteen mechanisms, one claim is exactly true and one is false.  An audit states something false if
it refutes the true claim, or if one of its bounds exceeds the truth: epsilon at four deltas, and mu.

These mechanisms hold an object that cannot be copied.  So fresh runs are made in the process of the audit, which is
faster, and counts and sizes have the same law.

Commands: twelve audits of true claims share one guarantee, as in `dpaudit run`.  The attack knows the likelihood ratio,
so evidence is as large as possible.

Streams: the state of a stream drifts and adapts to the past.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from calibration_cases import Row, refuted, too_large
from calibration_cases.stated import law_of, revealing
from dpaudit import GaussianDP, OnlineAudit, Pair, PureDP, TradeoffFunction, audit, parse_claim
from dpaudit.result.suite import Promise
from measure import Limit, Outcome

DELTAS = (0.0, 1e-5, 0.01, 0.1)
_TOLERANCE = 1e-9
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Here:
    """A mechanism that cannot be sent to another process."""

    drawn: Any
    held: Any = field(default_factory=lambda: (i for i in range(3)))

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Any:
        return self.drawn.sample(dataset, n, rng)


@dataclass(frozen=True)
class Noise:
    """Noise around a vector of which one number changes by 1."""

    draw: Callable[[np.random.Generator, tuple[int, int]], Any]
    numbers: int = 1

    def sample(self, dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        outputs = self.draw(rng, (n, self.numbers))
        outputs[:, 0] += dataset[0]
        return outputs


def _normal(sigma: float, rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    return rng.normal(0, sigma, shape)


def _laplace(scale: float, rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    return rng.laplace(0, scale, shape)


def _geometric(epsilon: float, rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    p = -np.expm1(-epsilon)
    return rng.geometric(p, shape) - rng.geometric(p, shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A mechanism, its trade-off function, and a smaller claim that it violates."""

    name: str
    mechanism: Any
    truth: str
    false: str
    trials: int
    attacks: str = "auto"


def _of_law(truth: str, false: str, trials: int, attacks: str = "histogram") -> Case:
    return Case(name=truth, mechanism=law_of(truth), truth=truth, false=false, trials=trials, attacks=attacks)


CASES = [
    Case(
        name="Gaussian",
        mechanism=Noise(partial(_normal, 1.0)),
        truth="gaussian(mu=1)",
        false="gaussian(mu=0.8)",
        trials=1_500,
    ),
    Case(
        name="Gaussian, pure claim",
        mechanism=Noise(partial(_normal, 1.0)),
        truth="gaussian(mu=1)",
        false="pure(epsilon=1)",
        trials=1_500,
    ),
    Case(
        name="Gaussian, 20 numbers",
        mechanism=Noise(partial(_normal, 1.0), 20),
        truth="gaussian(mu=1)",
        false="approximate(epsilon=1, delta=1e-5)",
        trials=1_500,
    ),
    Case(
        name="Laplace",
        mechanism=Noise(partial(_laplace, 0.5)),
        truth="laplace(epsilon=2)",
        false="pure(epsilon=1)",
        trials=1_500,
    ),
    Case(
        name="Laplace, slight",
        mechanism=Noise(partial(_laplace, 1 / 1.2)),
        truth="laplace(epsilon=1.2)",
        false="pure(epsilon=1)",
        trials=3_000,
    ),
    Case(
        name="Laplace, Gaussian claim",
        mechanism=Noise(partial(_laplace, 1.0)),
        truth="laplace(epsilon=1)",
        false="gaussian(mu=0.5)",
        trials=1_500,
    ),
    Case(
        name="geometric",
        mechanism=Noise(partial(_geometric, 1.0)),
        truth="pure(epsilon=1)",
        false="pure(epsilon=0.5)",
        trials=2_000,
    ),
    Case(
        name="rare identification",
        mechanism=revealing(1, 0.01),
        truth="approximate(epsilon=1, delta=0.01)",
        false="approximate(epsilon=1, delta=0.001)",
        trials=5_000,
        attacks="plug_in_ratio",
    ),
    Case(
        name="frequent identification",
        mechanism=revealing(0.5, 0.1),
        truth="approximate(epsilon=0.5, delta=0.1)",
        false="approximate(epsilon=0.5, delta=0.02)",
        trials=1_500,
        attacks="plug_in_ratio",
    ),
    _of_law("pure(epsilon=3)", "pure(epsilon=2.85)", 40_000, "plug_in_ratio"),
    _of_law("pure(epsilon=1)", "pure(epsilon=0.25)", 2_000, "plug_in_ratio"),
    _of_law("repeated(pure(epsilon=0.3), n=5)", "repeated(pure(epsilon=0.2), n=5)", 2_000),
    _of_law("gaussian(mu=2)", "gaussian(mu=1)", 1_000),
    _of_law("laplace(epsilon=3)", "laplace(epsilon=2)", 2_000),
]
_CASES = {case.name: case for case in CASES}


def sizes() -> list[Row]:
    return [
        Row(
            cells=(case.name, case.truth if kind == "true" else case.false, kind),
            measure=partial(audited, case.name, kind),
            limits={"false": Limit(rate=1 - CONFIDENCE), "inconclusive": Limit(rate=1e-6)},
            seeds=200,
        )
        for kind in ("true", "false")
        for case in CASES
    ]


def audited(name: str, kind: str, seed: int) -> Outcome:
    """Run one audit, with fresh runs in the same process; return whether it stated something false."""
    case = _CASES[name]
    claim, truth = case.truth if kind == "true" else case.false, parse_claim(case.truth)
    terms: dict[str, Any] = {"attacks": case.attacks, "trials": case.trials, "confidence": CONFIDENCE}
    result = audit(Here(case.mechanism), claim, Pair([0], [1]), seed=seed, **terms)
    bounds = [(result.epsilon_lower(delta), float(truth.epsilon(delta))) for delta in DELTAS]
    bounds.append((result.mu_lower, float(truth.mu())))
    wrong = any(too_large(bound, true + _TOLERANCE, _TOLERANCE) for bound, true in bounds)
    return {
        "false": float(wrong or (kind == "true" and result.violated)),
        "found": float(result.violated),
        "inconclusive": float(result.verdict.name == "INCONCLUSIVE"),
    }


# --- Commands

CLAIMS, COMMAND_TRIALS = 12, 1000


@dataclass(frozen=True)
class Known:
    """Noise with a known law, its claim, which is exactly true, and the attack that knows the likelihood ratio."""

    kind: str  # gaussian, laplace or response
    name = "known"
    calibrated = True  # scores are log-likelihood ratios

    @property
    def claim(self) -> TradeoffFunction:
        return GaussianDP(1.0) if self.kind == "gaussian" else PureDP(1.0)

    def sample(self, dataset: float, n: int, rng: np.random.Generator) -> Any:
        if self.kind == "gaussian":
            return dataset + rng.normal(size=n)
        if self.kind == "laplace":
            return dataset + rng.laplace(size=n)
        return np.where(rng.random(n) < 1 / (1 + math.exp(-1.0)), dataset, 1.0 - dataset)

    def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Callable[[Any], Any]:
        if self.kind == "gaussian":
            return lambda x: np.asarray(x) - 0.5
        if self.kind == "laplace":
            return lambda x: np.abs(np.asarray(x)) - np.abs(np.asarray(x) - 1)
        return lambda x: 2 * np.asarray(x) - 1


def commands() -> list[Row]:
    cells = (f"{CLAIMS} claims, likelihood ratios known", f"{COMMAND_TRIALS:,}")
    return [Row(cells=cells, measure=command, limits=refuted(1 - CONFIDENCE), seeds=200)]


def command(seed: int) -> Outcome:
    """Run the audits of one command, each with its share of the joint guarantee; return whether any refutes."""
    violated = False
    for i, confidence in enumerate(Promise.of([CONFIDENCE] * CLAIMS).confidences):
        known = Known(("gaussian", "laplace", "response")[i % 3])
        terms: dict[str, Any] = {"attacks": [known], "trials": COMMAND_TRIALS, "confidence": confidence}
        violated |= audit(known, known.claim, Pair(0.0, 1.0), seed=seed * 1000 + i, **terms).violated
    return {"refuted": float(violated)}


# --- Streams

STEPS = 600


def streams() -> list[Row]:
    kinds = {
        "randomised response, epsilon 1; the answers are swapped whenever the wealth has fallen": adapting_words,
        "Gaussian, mu 1, around a centre that follows the outputs and the wealth": drifting_noise,
    }
    limits = refuted(1 - CONFIDENCE)
    return [
        Row(cells=(words, f"{STEPS} steps"), measure=measure, limits=limits, seeds=1000)
        for words, measure in kinds.items()
    ]


def adapting_words(seed: int) -> Outcome:
    """Audit a randomised response whose rate of missing answers drifts."""
    rng, stream = np.random.default_rng(seed), OnlineAudit(PureDP(1.0), confidence=CONFIDENCE, seed=seed)
    keeps, swapped, before = math.exp(1) / (1 + math.exp(1)), 0, 0.0
    for step in range(STEPS):
        side = stream.coin()
        answer = side if rng.random() < keeps else 1 - side
        silent = rng.random() < 0.5 * math.sin(step / 50) ** 2
        stream.update(0.5 if silent else float(answer != swapped))
        swapped, before = (swapped if stream.log_e >= before else 1 - swapped), stream.log_e
        if stream.refuted:
            break
    return {"refuted": float(stream.refuted)}


def drifting_noise(seed: int) -> Outcome:
    rng, stream = np.random.default_rng(seed), OnlineAudit(GaussianDP(1.0), confidence=CONFIDENCE, seed=seed)
    centre = 0.0
    for _ in range(STEPS):
        output = float(rng.normal(centre + stream.coin()))
        stream.update(output)
        centre = 0.9 * centre + 0.1 * output * (1 if stream.log_e < 0 else -1)
        if stream.refuted:
            break
    return {"refuted": float(stream.refuted)}
