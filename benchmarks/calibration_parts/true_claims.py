"""Claims that are exactly true at their boundary: false alarms, too large bounds and too low bands.

Each mechanism is exactly as private as claimed, so every refutation is a false alarm.  The sequential test refutes far
fewer true claims than its significance allows, since its guarantee holds simultaneously for all numbers of trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from calibration_parts import Outcome, Row
from calibration_parts.limit import Limit
from dpaudit import ApproxDP, GaussianDP, Pair, PureDP, TabulatedTradeoff, audit, batched
from dpaudit.claims import TradeoffFunction
from dpaudit.engine import fixed

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
TRIALS = 20_000
SECOND_STAGE_AFTER = 500  # trials; in other audits, the second stage of a pilot begins after 250,000 trials
_CONFIDENCE = 0.95
_TOLERANCE = 1e-6  # the rounding of bounds exceeds this tolerance for errors in the computed true values
_EVENTS = ("refuted", "mu", *(f"epsilon, delta {delta:g}" for delta in DELTAS), "band")


def rows() -> list[Row]:
    """Return the rows of all mechanisms, with each method, and with a second stage of the pilot."""
    both = [(case, method) for case in CASES for method in case.methods]
    return [
        *(_row("true claims", case, method, partial(audited, case.name, method), 1000) for case, method in both),
        *(
            _row("second stage", case, method, partial(with_second_stage, case.name, method), 300)
            for case, method in both
            if method == "fixed" and len(case.pairs) == 1
        ),
    ]


def _row(part: str, case: Case, method: str, run: Callable[[int], Outcome], full: int) -> Row:
    limit = Limit(rate=1 - _CONFIDENCE)
    return Row(
        part=part,
        cells=(case.name, method, f"{TRIALS:,}"),
        audit=run,
        limits=dict.fromkeys(_EVENTS, limit),
        full=full,
        sources=("calibration_parts/true_claims.py",),
    )


def audited(name: str, method: str, seed: int) -> Outcome:
    """Run one audit and return whether it made each error.

    The errors are a refutation, too large a value of `mu_lower`, too large a value of `epsilon_lower` at each delta,
    and an upper band that is below the true curve at some point.
    """
    case = _CASES[name]
    claim = case.claim
    mechanism = batched(lambda dataset, n, rng: case.draw(dataset[0], n, rng))
    pairs = [Pair([first], [second], label=f"pair {i}") for i, (first, second) in enumerate(case.pairs)]
    terms: dict[str, Any] = {"method": method, "trials": TRIALS, "confidence": _CONFIDENCE, **case.settings}
    result = audit(mechanism, claim, pairs, seed=seed, **terms)
    both = claim.symmetrized()
    above = [result.epsilon_lower(delta) > float(both.epsilon(delta)) * (1 + _TOLERANCE) for delta in DELTAS]
    below = bool(np.any(result.curve.beta_upper < claim.beta(result.curve.alpha) - _TOLERANCE))
    errors = [result.violated, result.mu_lower > both.mu() * (1 + _TOLERANCE), *above, below]
    return {event: float(error) for event, error in zip(_EVENTS, errors, strict=True)}


def with_second_stage(name: str, method: str, seed: int) -> Outcome:
    """Run one audit whose pilot has a second stage after `SECOND_STAGE_AFTER` trials."""
    with _early_second_stage():
        return audited(name, method, seed)


@contextmanager
def _early_second_stage() -> Iterator[None]:
    before = fixed._MAX_TRIALS_BEFORE_SECOND_STAGE, fixed._MIN_SECOND_STAGE_TRIALS
    fixed._MAX_TRIALS_BEFORE_SECOND_STAGE = SECOND_STAGE_AFTER
    fixed._MIN_SECOND_STAGE_TRIALS = SECOND_STAGE_AFTER // 4
    try:
        yield
    finally:
        fixed._MAX_TRIALS_BEFORE_SECOND_STAGE, fixed._MIN_SECOND_STAGE_TRIALS = before
