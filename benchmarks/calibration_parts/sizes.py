"""Verdicts and sizes together: audits whose refutation is followed by fresh runs; `dpaudit.result.confirmation`.

Of each of fourteen mechanisms, one claim is exactly true and one is false.  An audit states something false if it
refutes the true claim, or if one of its bounds exceeds the truth: epsilon at four deltas, and mu.

These mechanisms hold an object that cannot be copied.  So fresh runs are made in the process of the audit, which is
faster, and counts and sizes have the same law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from stated_settings import law_of, revealing

from calibration_parts import Outcome, Row
from calibration_parts.limit import Limit
from dpaudit import AuditResult, Pair, audit, parse_claim

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


def rows() -> list[Row]:
    return [
        Row(
            part="sizes",
            cells=(case.name, case.truth if kind == "true" else case.false, kind),
            audit=partial(audited, case.name, kind),
            limits={"false": Limit(rate=1 - CONFIDENCE), "inconclusive": Limit(rate=1e-6)},
            full=200,
            sources=("calibration_parts/sizes.py", "stated_settings.py"),
        )
        for kind in ("true", "false")
        for case in CASES
    ]


def of(case: Case, claim: str, seed: int, *, here: bool = True, **terms: Any) -> AuditResult:
    """Make one audit of a case, with fresh runs in the same process if `here`."""
    settings = {"attacks": case.attacks, "trials": case.trials, "confidence": CONFIDENCE, **terms}
    mechanism = Here(case.mechanism) if here else case.mechanism
    return audit(mechanism, claim, Pair([0], [1]), seed=seed, **settings)


def audited(name: str, kind: str, seed: int) -> Outcome:
    """Run one audit; return whether it stated something false, and what it found."""
    case = _CASES[name]
    result, truth = of(case, case.truth if kind == "true" else case.false, seed), parse_claim(case.truth)
    bounds = [(result.epsilon_lower(delta), float(truth.epsilon(delta))) for delta in DELTAS]
    bounds.append((result.mu_lower, float(truth.mu())))
    wrong = any(bound > true * (1 + _TOLERANCE) + _TOLERANCE for bound, true in bounds)
    return {
        "false": float(wrong or (kind == "true" and result.violated)),
        "found": float(result.violated),
        "inconclusive": float(result.verdict.name == "INCONCLUSIVE"),
    }
