"""Plans the number of runs of an audit in a test suite, just enough to detect a given violation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpaudit.claims import GaussianDP, LaplaceDP, PureDP, TradeoffFunction, parse_claim
from dpaudit.claims.comparison import violates
from dpaudit.engine.plan import HEAD_START, LEARNING
from dpaudit.inference.power import Law, certain_trials, growths
from dpaudit.inference.sequential.alternatives import laplace_noise, pair_laws, scaled
from dpaudit.inference.sequential.planned import MIN_GROWTH, Planned
from dpaudit.inference.sequential.strategy import Strategy, strategy
from dpaudit.learning import FIRST_FIT
from dpaudit.settings import POWER as AUDIT_POWER

DETECT = 1.2  # default violation: the factor by which the mechanism is less private than claimed
POWER = 0.999  # probability that the planned runs detect the violation
_NEVER = 10**12  # number of runs that represents an undetectable violation

Detect = TradeoffFunction | float
"""The violation to detect: the strongest true claim, or a factor > 1 by which privacy is worse than claimed."""


def sought_of(detect: TradeoffFunction | str | float | None) -> Detect:
    """Return the violation to detect that a user states; by default, the factor `DETECT`."""
    detect = DETECT if detect is None else parse_claim(detect) if isinstance(detect, str) else detect
    if isinstance(detect, TradeoffFunction):
        return detect
    if not 1 < detect < math.inf:
        raise ValueError(f"detect must be a claim, or a factor > 1 by which privacy is worse, got {detect}")
    return float(detect)


@dataclass(frozen=True)
class Effort:
    """The runs per dataset, over all pairs, with which an audit detects a violation."""

    claim: TradeoffFunction
    detect: Detect
    significance: float
    pairs: int = 1

    @cached_property
    def planned(self) -> int:
        """An estimate of the runs that detect the violation with probability `POWER`, on each of several pairs alone.

        A normal approximation for the best bet is multiplied by the cost of learning.  It is too small if the evidence
        comes from few outputs, so the number is at least Chernoff's bound for known scores plus `HEAD_START`.
        """
        normal = LEARNING * self.of_known_scores(POWER)
        if normal >= _NEVER:
            return self.pairs * _NEVER
        known, laws = (self.bets, self.claim.symmetrized()), _laws(self.claim, self.detect)
        certain = max(certain_trials(*known, law, self._needed, POWER) for law in laws)
        return self.pairs * (FIRST_FIT + math.ceil(min(max(normal, certain + HEAD_START), _NEVER)))

    def shows(self, runs: int) -> bool:
        """Whether the runs detect the violation with the power of an audit, if an attack knows the likelihood ratio."""
        return runs >= self.pairs * self.of_known_scores(AUDIT_POWER)

    def of_known_scores(self, power: float) -> int:
        """Return the runs on one pair with known scores: the least n such that the best bet j satisfies

            log w_j + n g_j - z sqrt(n v_j) >= log(1/significance),

        with its weight w_j, mean g_j and variance v_j of its gain in a trial, and the normal quantile z of `power`.
        """
        z, worst, needed = float(ndtri(power)), 0.0, self._needed
        for law in _laws(self.claim, self.detect):
            growth, variance = growths(self.bets, self.claim.symmetrized(), law)
            grows = growth > MIN_GROWTH
            if not np.any(grows):
                return _NEVER
            g, v, n = growth[grows], variance[grows], needed[grows]
            worst = max(worst, float(np.min((z * np.sqrt(v) + np.sqrt(z**2 * v + 4 * g * n)) / (2 * g))))
        return min(math.ceil(worst**2), _NEVER)

    @cached_property
    def bets(self) -> Strategy:
        """The bets of the audit, with a share for the violation to detect."""
        violations = violations_of(self.claim, self.detect)
        confidence = min(1 - self.significance, math.nextafter(1.0, 0.0))
        planned = Planned(violations=violations, confidence=confidence) if violations else None
        return strategy(self.claim.symmetrized(), planned)

    @property
    def _needed(self) -> NDArray[np.float64]:
        """The log of the gain with which each bet on one pair refutes the claim."""
        share = 1.0 if self.pairs == 1 else 1 / (2 * self.pairs)  # share of the wealth that is bet on this pair alone
        return -math.log(self.significance * share) - self.bets.log_weights

    def others(self) -> dict[str, int]:
        """Return the planned runs for two other factors, with twice and with half the excess over 1."""
        factor = self.detect if isinstance(self.detect, float) else DETECT
        return {f"{f:g}": replace(self, detect=f).planned for f in (1 + 2 * (factor - 1), 1 + (factor - 1) / 2)}


def described(detect: Detect) -> str:
    return f"{detect:g} times less private" if isinstance(detect, float) else detect.label


def violations_of(claim: TradeoffFunction, detect: Detect) -> tuple[TradeoffFunction, ...]:
    """Return the violations on which the audit places planned bets, with half of the excess of the one to detect.

    Bets on smaller violations vary less between audits, so fewer runs detect the violation with probability `POWER`.
    """
    candidates: tuple[TradeoffFunction, ...] = (detect,) if isinstance(detect, TradeoffFunction) else ()
    match claim, detect:
        case GaussianDP(), float() | GaussianDP():
            candidates = (GaussianDP(_half(claim, detect, "mu")),)
        case PureDP(), float():
            epsilon = _half(claim, detect, "epsilon")
            candidates = PureDP(epsilon), LaplaceDP(epsilon)
        case PureDP(), PureDP():
            candidates = (PureDP(_half(claim, detect, "epsilon")),)
        case (PureDP(), LaplaceDP()) | (LaplaceDP(), LaplaceDP() | float()):
            candidates = (LaplaceDP(_half(claim, detect, "epsilon")),)
    return tuple(violation for violation in candidates if violates(violation, claim))


def _half(claim: TradeoffFunction, detect: Detect, name: str) -> float:
    """Return a parameter halfway between the claim and the violation; that of the violation if it is not larger."""
    claimed = float(claim.parameters[name])
    sought = detect * claimed if isinstance(detect, float) else float(detect.parameters[name])
    return (claimed + sought) / 2 if sought > claimed else sought


@lru_cache(maxsize=256)
def _laws(claim: TradeoffFunction, detect: Detect) -> tuple[Law, ...]:
    """Return the laws that the binned log-likelihood ratio may have under the violation, one for each kind of noise."""
    if not isinstance(detect, float):
        return pair_laws(detect)
    match claim:
        case GaussianDP():
            return (scaled(claim, detect),)
        case PureDP() | LaplaceDP() if claim.parameters["epsilon"] > 0:
            noise = laplace_noise(detect * claim.parameters["epsilon"])
            return scaled(claim, detect), (noise.p, noise.q)
    return (scaled(claim.symmetrized(), detect),)
