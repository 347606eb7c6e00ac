"""Number of runs that would confirm a violation, given the observed error rates of a region."""

from __future__ import annotations

import math

from scipy.special import ndtri

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.fixed.evidence import evidence_of


def runs_to_confirm(
    claim: TradeoffFunction, rates: tuple[float, float], runs: int, *, level: float, power: float, most: float
) -> float:
    """Estimate the runs per dataset that the exact test of one region needs if its observed error rates are true.

    Evidence grows in proportion to the number of runs, and its signed root is nearly normal with variance 1.

    Returns:
        An estimate above `runs`, rounded up to two digits.  The estimate is inf if there are no runs, if the rates
        agree with the claim, or if more than `most` runs are needed.
    """
    alpha, beta = rates
    if runs == 0 or beta >= float(claim.beta(alpha)):
        return math.inf
    wanted = (float(-ndtri(level)) + float(ndtri(power))) ** 2 / 2
    needed = float(runs)
    for _ in range(60):
        needed *= 1.5
        n = math.ceil(needed)
        if n > most:
            return math.inf
        if evidence_of(claim, round(n * alpha), n, round(n * beta), n) >= wanted:
            digits = max(0, math.floor(math.log10(needed)) - 1)
            return float(math.ceil(needed / 10**digits) * 10**digits)
    return math.inf
