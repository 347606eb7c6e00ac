"""How many runs would decide about a region whose error rates have been observed."""

from __future__ import annotations

import math

from scipy.special import ndtri

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.fixed.evidence import evidence_of


def runs_to_confirm(
    claim: TradeoffFunction, rates: tuple[float, float], runs: int, *, level: float, power: float, most: float
) -> float:
    """About how many runs per dataset the exact test of one region needs, if its error rates are those observed.

    Args:
        claim: For both orders of the pair.
        rates: Type I and type II error of the region, observed.
        runs: Per dataset, on which they were observed.
        level: Of the test.
        power: Probability with which the test is to refute the claim.
        most: Where to give up.

    Returns:
        An estimate, above `runs` and of two digits, rounded up; inf where the rates keep the claim or it takes more
        than `most`.  Evidence grows in proportion to the runs, and its signed root is nearly normal with variance 1.
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
