"""The number of scores that an audit of scores needs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.comparison import pair_curves, violates
from dpaudit.engine.arguments import claim_of
from dpaudit.engine.score_design import (
    Coins,
    Inclusion,
    Independence,
    check_design,
    check_independence,
    coins_of,
    evidence_of,
)
from dpaudit.inference.one_run import half_by_chance
from dpaudit.inference.power import larger_violation
from dpaudit.inference.scores.rank_bounds import MOST_POWER
from dpaudit.numerics import bisect_integers
from dpaudit.result.scores_evidence import ScoresEvidence
from dpaudit.result.words import words_of
from dpaudit.settings import DEFAULTS, POWER, check_confidence

LARGER = 1.2
"""Factor of the claim's parameter for which `scores_needed` says how many scores find the violation."""

MAX_SCORES = 262_144
"""Maximum number of scores that a plan tries."""


def plan_scores(
    claim: TradeoffFunction | str,
    truth: TradeoffFunction | str,
    *,
    independence: Independence = None,
    included_at_random: Inclusion = "coins",
    confidence: float = DEFAULTS.confidence,
    power: float = POWER,
) -> int | None:
    """Compute how many scores `audit_scores` needs to refute a claim, if the mechanism is only as private as `truth`.

    The scores are those of a pair of datasets that exists: with subsampling, one dataset has an additional record, and
    no single pair attains the curve of the claim (`claims.comparison`).  If the two directions of the pair
    differ, the stated power holds in both.

    Scores are assumed to be likelihood ratios, and scores of canaries to be independent.  With weaker scores, an audit
    needs more of them.

    Fair coins may include half of the canaries by chance (rounded if their number is odd).  The audit cannot then
    exclude that this number was fixed in advance, so its evidence is weaker.  The stated power takes the probability of
    this case into account.

    Args:
        claim: The claim, or its text.
        truth: The curve of the mechanism, or its text.  A bound that the mechanism does not attain, such as
            zcdp(rho=1) for Gaussian noise, gives too small numbers.
        independence: As in `audit_scores`.
        included_at_random: As in `audit_scores`; a fixed number is taken to be half of the canaries.
        confidence: As in `audit_scores`.
        power: Probability, in (0, 0.99], with which the number of scores is enough.  It is simulated.

    Returns:
        The number of runs on both datasets together, half of them on each; or the number of canaries.  None if
        `MAX_SCORES` scores are too few, or if there is nothing to refute.

    Raises:
        TypeError: If an argument has a wrong type.
        ValueError: If a number is out of its range, or no pair of datasets is known that attains `truth`.
    """
    check_independence(independence)
    inclusion = check_design(independence, included_at_random)
    check_confidence(confidence)
    if not 0 < power <= MOST_POWER:
        raise ValueError(f"power must lie in (0, {MOST_POWER}], got {power}")
    claimed, true = claim_of("claim", claim), claim_of("truth", truth)
    pair_curves(true)  # raises the error before the search

    if not violates(true, claimed):
        return None

    def enough(n: int) -> bool:
        usual, half = _evidence(n, claimed, independence, inclusion, confidence)
        found = usual.chance_to_refute(claimed, true)
        if half is None or found < power:
            return found >= power
        by_chance = half_by_chance(n)
        return (1 - by_chance) * found + by_chance * half.chance_to_refute(claimed, true) >= power

    return _fewest(enough)


def fewest_scores(
    claim: TradeoffFunction | str, *, independence: Independence = None, confidence: float = DEFAULTS.confidence
) -> int | None:
    """Compute the smallest number of scores with which `audit_scores` refutes a claim if every guess is right."""
    check_independence(independence)
    check_confidence(confidence)
    claimed = claim_of("claim", claim)
    return _fewest(lambda n: _evidence(n, claimed, independence, "coins", confidence)[0].can_refute(claimed))


def scores_needed(evidence: ScoresEvidence, claim: TradeoffFunction) -> str:
    """Say how many scores like these would find a violation whose parameter is 20 % above the claim's."""
    truth = larger_violation(claim, LARGER)
    if truth is None or not violates(truth, claim):
        return ""
    m, factor = evidence.scores, 1.0

    def enough(factor: float) -> bool:
        n0, n1 = (max(2, round(factor * n)) for n in (evidence.n0, evidence.n1))
        return dataclasses.replace(evidence, n0=n0, n1=n1).chance_to_refute(claim, truth) >= POWER

    while not enough(factor):
        factor *= 4
        if factor * m > MAX_SCORES:
            return ""
    if factor == 1.0:
        return ""
    number = (factor / 2 if enough(factor / 2) else factor) * m / math.sqrt(2)
    return f"about {float(f'{number:.1g}'):,.0f} {words_of(evidence).unit} would find {truth}"


def _fewest(enough: Callable[[int], bool]) -> int | None:
    """Return the least sufficient number of scores, at least 4; None if `MAX_SCORES` scores are too few."""
    n = 4
    while not enough(n):
        n *= 2
        if n > MAX_SCORES:
            return None
    return n if n == 4 else bisect_integers(enough, inside=n, outside=n // 2).inside


def _evidence(
    n: int, claim: TradeoffFunction, independence: Independence, inclusion: Inclusion, confidence: float
) -> tuple[ScoresEvidence, ScoresEvidence | None]:
    """Return evidence without right guesses about n scores, and that if coins include exactly half by chance."""
    sizes = n // 2, n - n // 2
    halves = Coins(0.5, 1.0, "") if independence == "runs" else coins_of(None, sizes, inclusion)
    coins = Coins(0.5, 1 + half_by_chance(n), "") if independence is None and inclusion == "coins" else halves
    usual, half = (
        evidence_of(
            *sizes,
            independence or "inclusion",
            each,
            runs=n if independence == "runs" else 1,
            claim=claim,
            significance=1 - confidence,
        )
        for each in (coins, halves)
    )
    return usual, half if coins is not halves else None
