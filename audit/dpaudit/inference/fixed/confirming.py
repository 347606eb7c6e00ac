"""Number of runs that would confirm a violation, given the observed error rates of a region."""

from __future__ import annotations

import math

from scipy.special import ndtri

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.fixed.evidence import evidence_of

_POWER = 0.9  # probability with which the number of runs confirms a violation
_ENDLESS = 10**9  # runs per dataset; if more are needed, the counts show no sign of a violation


def runs_to_confirm(claim: TradeoffFunction, rates: tuple[float, float], runs: int, *, level: float) -> float:
    """Estimate the runs per dataset that the exact test of one region needs if its observed error rates are true.

    Evidence grows in proportion to the number of runs, and its signed root is nearly normal with variance 1.
    The estimate is above `runs` and rounded up to two digits; inf if the rates show no sign of a violation.
    """
    alpha, beta = rates
    if runs == 0 or beta >= float(claim.beta(alpha)):
        return math.inf
    wanted = (float(-ndtri(level)) + float(ndtri(_POWER))) ** 2 / 2
    needed = float(runs)
    for _ in range(60):
        needed *= 1.5
        n = math.ceil(needed)
        if n > _ENDLESS:
            return math.inf
        if evidence_of(claim, round(n * alpha), n, round(n * beta), n) >= wanted:
            digits = max(0, math.floor(math.log10(needed)) - 1)
            return float(math.ceil(needed / 10**digits) * 10**digits)
    return math.inf
