"""The number of trials that would be enough, for the messages of audits with too few."""

from __future__ import annotations

import math

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.plan import HEAD_START, MAX_TRIALS_STATED, SLOWEST, by_then
from dpaudit.inference.sequential.alternatives import pair_laws
from dpaudit.inference.sequential.strategy import Strategy, log_threshold
from dpaudit.learning import FIRST_FIT
from dpaudit.settings.audit import POWER


def enough_trials(
    bets: Strategy,
    claim: TradeoffFunction,
    truth: TradeoffFunction,
    *,
    confidence: float,
    power: float = POWER,
    pairs: int = 1,
    coin_selected: bool = False,
) -> int | None:
    """Estimate the trials of a sequential audit if one pair attains the truth, without simulation.

    The bets on each of several pairs have the share 1 / (2 pairs) of the wealth, and each pair gets enough trials.

    Returns:
        The trials per dataset, rounded up to two digits; None if the truth satisfies the claim, or if the number is too
        large to be stated.
    """
    threshold = log_threshold(confidence) + (math.log(2 * pairs) if pairs > 1 else 0.0)
    laws = pair_laws(truth)
    known = max(by_then(bets, claim, law, threshold, power, coin_selected=coin_selected) for law in laws)
    trials = pairs * (1 + coin_selected) * (FIRST_FIT + HEAD_START + SLOWEST * known)
    if not trials < MAX_TRIALS_STATED:
        return None
    unit: int = 10 ** max(0, len(str(math.ceil(trials))) - 2)
    return math.ceil(trials / unit) * unit


def would_do(trials: int | None, what: str, *, revealing: bool) -> str:
    """Return the end of a sentence that states how many trials would be enough; "" if the number is unknown."""
    if trials is None:
        return ""
    return f"; about {trials:,} {what} would do{' if every output revealed its dataset' if revealing else ''}"
