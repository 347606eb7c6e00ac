"""Plans the number of runs of an audit in a test suite, just enough to detect a given violation."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from dpaudit.claims import GaussianDP, LaplaceDP, PureDP, TradeoffFunction, parse_claim
from dpaudit.claims.comparison import violates
from dpaudit.engine.plan import HEAD_START, LEARNING
from dpaudit.inference.power import Law, certain_trials, growths
from dpaudit.inference.sequential.alternatives import laplace_noise, pair_laws, scaled
from dpaudit.inference.sequential.planned import Planned
from dpaudit.inference.sequential.strategy import Strategy, strategy
from dpaudit.learning import FIRST_FIT
from dpaudit.settings.audit import POWER as AUDIT_POWER

DETECT = 1.2  # default violation: the factor by which the mechanism is less private than claimed
POWER = 0.999  # probability that the planned runs detect the violation
SHOWN = AUDIT_POWER  # an audit that detects a given `detect` with a smaller probability is inconclusive
_MIN_GROWTH = 1e-10  # nats per trial; smaller growth is rounding error
_MOST_CONFIDENT = math.nextafter(1.0, 0.0)
_NEVER = 10**12  # number of runs that represents an undetectable violation

Detect = TradeoffFunction | float
"""The violation to detect: the strongest true claim, or a factor > 1 by which privacy is worse than claimed."""


def sought_of(detect: TradeoffFunction | str | float | None) -> Detect:
    """Return the violation to detect that a user states; by default, the factor `DETECT`."""
    match detect:
        case None:
            return DETECT
        case str():
            return parse_claim(detect)
        case TradeoffFunction():
            return detect
    if not 1 < detect < math.inf:
        raise ValueError(f"detect must be a claim, or a factor > 1 by which privacy is worse, got {detect}")
    return float(detect)


def planned_runs(claim: TradeoffFunction, detect: Detect, *, significance: float, pairs: int) -> int:
    """Estimate the runs per dataset, over all pairs, that detect the violation with probability `POWER`.

    Each of several pairs gets enough runs to detect the violation on this pair alone.  The estimate multiplies a normal
    approximation for the best bet by the cost of learning the scores.  If the evidence comes from few outputs, as under
    claims that allow large losses, a normal approximation is too small.  Therefore the number is at least Chernoff's
    bound for known scores plus `HEAD_START`.
    """
    normal = LEARNING * runs_of_known_scores(claim, detect, significance, pairs, POWER)
    if normal >= _NEVER:
        return pairs * _NEVER
    tested = claim.symmetrized()
    bets = bets_of(claim, detect, significance)
    needed = _log_threshold(significance, pairs) - bets.log_weights
    certain = max(certain_trials(bets, tested, law, needed, POWER) for law in _laws(claim, detect))
    return pairs * (FIRST_FIT + math.ceil(min(max(normal, certain + HEAD_START), _NEVER)))


def shows(claim: TradeoffFunction, detect: Detect, runs: int, *, significance: float, pairs: int) -> bool:
    """Whether a number of runs detects the violation with probability `SHOWN`, if an attack knows the likelihood ratio.
    """
    return runs >= pairs * runs_of_known_scores(claim, detect, significance, pairs, SHOWN)


def described(detect: Detect) -> str:
    """Describe the violation to detect."""
    return f"{detect:g} times less private" if isinstance(detect, float) else detect.label


def runs_of_known_scores(claim: TradeoffFunction, detect: Detect, significance: float, pairs: int, power: float) -> int:
    """Return the runs on one pair if the scores are known.

    The number of runs is the smallest n such that the best bet j refutes the claim with probability `power`:

        log w_j + n g_j - z sqrt(n v_j) >= log(1/significance),

    where w_j is the weight of bet j, g_j and v_j are the mean and variance of its gain in a trial, and z is the normal
    quantile of `power`.
    """
    tested = claim.symmetrized()
    bets = bets_of(claim, detect, significance)
    needed = _log_threshold(significance, pairs) - bets.log_weights
    z, worst = float(ndtri(power)), 0.0
    for law in _laws(claim, detect):
        growth, variance = growths(bets, tested, law)
        grows = growth > _MIN_GROWTH
        if not np.any(grows):
            return _NEVER
        g, v, n = growth[grows], variance[grows], needed[grows]
        worst = max(worst, float(np.min((z * np.sqrt(v) + np.sqrt(z**2 * v + 4 * g * n)) / (2 * g))))
    return min(math.ceil(worst**2), _NEVER)


def violations_of(claim: TradeoffFunction, detect: Detect) -> tuple[TradeoffFunction, ...]:
    """Return the violations on which the audit places planned bets.

    These violations have half of the excess of the violation to detect.  A bet on a smaller violation has smaller
    stakes.  Its gain varies less between audits, so fewer runs detect the violation with probability `POWER`.
    """
    return tuple(violation for violation in _candidates(claim, detect) if violates(violation, claim))


def _candidates(claim: TradeoffFunction, detect: Detect) -> tuple[TradeoffFunction, ...]:
    match claim, detect:
        case GaussianDP(), float() | GaussianDP():
            return (GaussianDP(_half(claim, detect, "mu")),)
        case PureDP(), float():
            epsilon = _half(claim, detect, "epsilon")
            return PureDP(epsilon), LaplaceDP(epsilon)
        case PureDP(), PureDP():
            return (PureDP(_half(claim, detect, "epsilon")),)
        case (PureDP(), LaplaceDP()) | (LaplaceDP(), LaplaceDP() | float()):
            return (LaplaceDP(_half(claim, detect, "epsilon")),)
    return (detect,) if isinstance(detect, TradeoffFunction) else ()


def _half(claim: TradeoffFunction, detect: Detect, name: str) -> float:
    """Return a parameter halfway between the claim and the violation; that of the violation if it is not larger."""
    claimed = float(claim.parameters[name])
    sought = detect * claimed if isinstance(detect, float) else float(detect.parameters[name])
    return (claimed + sought) / 2 if sought > claimed else sought


def bets_of(claim: TradeoffFunction, detect: Detect, significance: float) -> Strategy:
    """Return the bets of the audit, with a share for the violation to detect."""
    violations, confidence = violations_of(claim, detect), min(1 - significance, _MOST_CONFIDENT)
    return strategy(claim.symmetrized(), Planned(violations=violations, confidence=confidence) if violations else None)


def _log_threshold(significance: float, pairs: int) -> float:
    """Return the log-wealth that the bets on one pair have to attain."""
    share = 1.0 if pairs == 1 else 1 / (2 * pairs)  # share of the wealth that is bet on this pair alone
    return -math.log(significance * share)


@lru_cache(maxsize=256)
def _laws(claim: TradeoffFunction, detect: Detect) -> tuple[Law, ...]:
    """Return the laws that the binned log-likelihood ratio may have under the violation, one for each kind of noise.

    Both randomised response and Laplace noise can violate a pure claim, and Laplace noise is harder to detect.
    """
    if not isinstance(detect, float):
        return pair_laws(detect)
    match claim:
        case GaussianDP():
            return (scaled(claim, detect),)
        case PureDP() | LaplaceDP() if claim.parameters["epsilon"] > 0:
            noise = laplace_noise(detect * claim.parameters["epsilon"])
            return scaled(claim, detect), (noise.p, noise.q)
    return (scaled(claim.symmetrized(), detect),)
