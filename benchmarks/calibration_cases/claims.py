"""Claims that are exactly true at their boundary: false alarms, too large bounds and too low bands.

Each mechanism is exactly as private as claimed, so every refutation is a false alarm.  The sequential test refutes far
fewer true claims than its significance allows, since its guarantee holds simultaneously for all numbers of trials.
Late bets depend on the number of trials, so short audits at 90 % confidence show them best.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from calibration_cases import Row, refuted, too_large
from dpaudit import ApproxDP, AuditResult, GaussianDP, Pair, PureDP, TabulatedTradeoff, audit, batched
from dpaudit.claims import TradeoffFunction
from dpaudit.engine import fixed
from measure import Outcome

# arguments: the bit in the dataset, the number of outputs, the generator
Draw = Callable[[int, int, np.random.Generator], Any]


def gaussian(bit: int, n: int, rng: np.random.Generator) -> Any:
    return rng.normal(bit, 1.0, n)


def response(bit: int, n: int, rng: np.random.Generator) -> Any:
    return (rng.random(n) < (math.e if bit else 1.0) / (1 + math.e)).astype(int)


def geometric(bit: int, n: int, rng: np.random.Generator) -> Any:
    p = -math.expm1(-1.0)
    return bit + rng.geometric(p, n) - rng.geometric(p, n)


def composed(bit: int, n: int, rng: np.random.Generator) -> Any:
    """Return the answers of three randomised responses with epsilon = 1/2 each."""
    odds = math.exp(0.5)
    return (rng.random((n, 3)) < (odds if bit else 1.0) / (1 + odds)).astype(int)


def subsampled(bit: int, n: int, rng: np.random.Generator) -> Any:
    """Return outputs of the subsampled Gaussian mechanism with mu = 2 and sampling rate 1/2."""
    return rng.normal(2.0 * bit * (rng.random(n) < 0.5), 1.0)


_REACH = 6
_MASS = np.exp(-np.square(np.arange(-_REACH, _REACH + 1)) / 2)
_MASS /= _MASS.sum()


def discrete_gaussian(bit: int, n: int, rng: np.random.Generator) -> Any:
    """Return the bit plus discrete Gaussian noise with sigma = 1, truncated to [-6, 6]."""
    return bit + rng.choice(np.arange(-_REACH, _REACH + 1), n, p=_MASS)


def discrete_gaussian_claim() -> TradeoffFunction:
    """Return the trade-off function between the laws of K and K + 1, where K is the truncated discrete Gaussian noise.

    By the Neyman-Pearson lemma, the optimal tests reject outputs >= j, for j = 7, 6, ..., -6.
    """
    below = np.concatenate([[0.0, 0.0], np.cumsum(_MASS)])  # P[K <= j - 2] for j = -6, ..., 8, where K is the noise
    alpha = np.concatenate([[0.0], np.cumsum(_MASS[::-1])])
    alpha[-1] = 1.0
    return TabulatedTradeoff(alpha=alpha, beta=below[: len(alpha)][::-1])


def revealing(bit: int, n: int, rng: np.random.Generator) -> Any:
    """Return outputs of the mechanism that attains (1, 0.01)-DP.

    With probability 0.01 it reveals the bit, and otherwise it makes a randomised response with epsilon = 1.
    """
    answer = response(bit, n, rng)
    return np.where(rng.random(n) < 0.01, 2 + bit, answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A mechanism and the claim that it satisfies exactly."""

    name: str
    draw: Draw
    claim: TradeoffFunction
    pairs: tuple[tuple[int, int], ...] = ((0, 1),)  # the bits of the pairs of datasets
    methods: tuple[str, ...] = ("sequential", "fixed")
    settings: dict[str, Any] = field(default_factory=dict)  # further arguments of `audit`


CASES = [
    Case(name="Gaussian, mu 1", draw=gaussian, claim=GaussianDP(1.0)),
    Case(name="randomised response, epsilon 1", draw=response, claim=PureDP(1.0)),
    Case(name="geometric, epsilon 1", draw=geometric, claim=PureDP(1.0)),
    Case(name="composed, 3 responses of epsilon 0.5", draw=composed, claim=PureDP(0.5).repeated(3)),
    Case(
        name="subsampled Gaussian, mu 2, rate 0.5",
        draw=subsampled,
        claim=GaussianDP(2.0).subsampled(0.5, relation="add_remove"),
    ),
    Case(name="discrete Gaussian, sigma 1", draw=discrete_gaussian, claim=discrete_gaussian_claim()),
    Case(
        name="response that reveals its bit with probability 0.01, (1, 0.01)",
        draw=revealing,
        claim=ApproxDP(epsilon=1.0, delta=0.01),
    ),
    Case(name="Gaussian, mu 1, three pairs", draw=gaussian, claim=GaussianDP(1.0), pairs=((0, 1), (1, 0), (1, 2))),
    Case(
        name="randomised response, epsilon 1, two pairs and a pair of equal datasets",
        draw=response,
        claim=PureDP(1.0),
        pairs=((0, 1), (1, 0), (0, 0)),
    ),
    Case(
        name="Gaussian, mu 1, detect mu 1.2",
        draw=gaussian,
        claim=GaussianDP(1.0),
        methods=("sequential",),
        settings={"detect": "gaussian(mu=1.2)"},
    ),
]
_CASES = {case.name: case for case in CASES}
DELTAS = (0.0, 1e-5, 1e-2)
TRIALS, CONFIDENCE = 20_000, 0.95
SECOND_STAGE_AFTER = 500  # trials; in other audits, the second stage of a pilot begins after 250,000 trials
LATE_TRIALS, LATE_CONFIDENCE = 300, 0.9
_LATE = (
    "Gaussian, mu 1",
    "randomised response, epsilon 1",
    "geometric, epsilon 1",
    "Gaussian, mu 1, three pairs",
    "Gaussian, mu 1, detect mu 1.2",
)
_TOLERANCE = 1e-6  # the rounding of bounds exceeds this tolerance for errors in the computed true values
_EVENTS = ("mu", *(f"epsilon, delta {delta:g}" for delta in DELTAS), "band")


def true_claims() -> list[Row]:
    return [_row(case, method, audited, 1000) for case in CASES for method in case.methods]


def second_stage() -> list[Row]:
    """Return the rows of audits whose pilot has a second stage."""
    return [
        _row(case, "fixed", with_second_stage, 300) for case in CASES if case.settings == {} and len(case.pairs) == 1
    ]


def measuring() -> list[Row]:
    """Return the rows of sequential audits with `measure=True`, which also bet on single events."""
    return [_row(case, "sequential", with_measure, 300) for case in CASES]


def _row(case: Case, method: str, audit: Callable[[str, str, int], Outcome], seeds: int) -> Row:
    return Row(
        cells=(case.name, method, f"{TRIALS:,}"),
        measure=partial(audit, case.name, method),
        limits=refuted(1 - CONFIDENCE, *_EVENTS),
        seeds=seeds,
    )


def late_bets() -> list[Row]:
    limits = refuted(1 - LATE_CONFIDENCE, "mu")
    return [
        Row(cells=(name, f"{LATE_TRIALS}"), measure=partial(with_late_bets, name), limits=limits, seeds=1000)
        for name in _LATE
    ]


def _result(case: Case, seed: int, **terms: Any) -> AuditResult:
    mechanism = batched(lambda dataset, n, rng: case.draw(dataset[0], n, rng))
    pairs = [Pair([first], [second], label=f"pair {i}") for i, (first, second) in enumerate(case.pairs)]
    return audit(mechanism, case.claim, pairs, seed=seed, **terms, **case.settings)


def audited(name: str, method: str, seed: int, **terms: Any) -> Outcome:
    """Run one audit and return whether it made each error.

    The errors are a refutation, too large a value of `mu_lower`, too large a value of `epsilon_lower` at each delta,
    and an upper band that is below the true curve at some point.
    """
    claim = _CASES[name].claim
    result = _result(_CASES[name], seed, method=method, trials=TRIALS, confidence=CONFIDENCE, **terms)
    both = claim.symmetrized()
    return {
        "refuted": float(result.violated),
        "mu": too_large(result.mu_lower, both.mu(), _TOLERANCE),
        **{
            f"epsilon, delta {delta:g}": too_large(result.epsilon_lower(delta), both.epsilon(delta), _TOLERANCE)
            for delta in DELTAS
        },
        "band": float(np.any(result.curve.beta_upper < claim.beta(result.curve.alpha) - _TOLERANCE)),
    }


def with_second_stage(name: str, method: str, seed: int) -> Outcome:
    """Run one audit whose pilot has a second stage after `SECOND_STAGE_AFTER` trials."""
    with (
        patch.object(fixed, "_SECOND_STAGE_AFTER", SECOND_STAGE_AFTER),
        patch.object(fixed, "_SECOND_STAGE_TRIALS", SECOND_STAGE_AFTER // 4),
    ):
        return audited(name, method, seed)


def with_measure(name: str, method: str, seed: int) -> Outcome:
    return audited(name, method, seed, measure=True)


def with_late_bets(name: str, seed: int) -> Outcome:
    case = _CASES[name]
    result = _result(case, seed, trials=LATE_TRIALS, confidence=LATE_CONFIDENCE)
    return {"refuted": float(result.violated), "mu": too_large(result.mu_lower, case.claim.symmetrized().mu())}
