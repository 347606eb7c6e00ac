"""The number of scores that an audit of scores needs."""

from __future__ import annotations

from collections.abc import Callable

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.comparison import violates
from dpaudit.claims.operations.pair_curves import pair_curves
from dpaudit.engine.arguments import claim_of
from dpaudit.engine.score_guesses import (
    Inclusion,
    Independence,
    check_design,
    default_of,
    evidence_of,
    has_levels,
)
from dpaudit.engine.scores import LEFT_OUT, check_independence
from dpaudit.inference.scores import both_sides
from dpaudit.inference.scores.dependence import half_by_chance
from dpaudit.numerics.bisect import bisect_integers
from dpaudit.result.base_evidence import ScoresGuesses
from dpaudit.result.evidence import CanaryLevelsEvidence, RunScoresEvidence
from dpaudit.settings.audit import DEFAULTS, POWER
from dpaudit.settings.limits import check_confidence

MAX_SCORES = 262_144
"""Maximum number of scores that a plan tries."""


def plan_scores(
    claim: TradeoffFunction | str,
    truth: TradeoffFunction | str,
    *,
    independence: Independence = LEFT_OUT,
    included_at_random: Inclusion = "coins",
    confidence: float = DEFAULTS.confidence,
    power: float = POWER,
) -> int | None:
    """Compute how many scores `audit_scores` needs to refute a claim, if the mechanism is only as private as `truth`.

    The scores are those of a pair of datasets that exists: with subsampling, one dataset has an additional record, and
    no single pair attains the curve of the claim (`claims.operations.pair_curves`).  If the two directions of the pair
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
        power: Probability, in (0, 1), with which the number of scores is enough; at most 0.999 for canaries, because
            their right guesses are simulated.

    Returns:
        The number of runs on both datasets together, half of them on each; or the number of canaries.  None if
        `MAX_SCORES` scores are too few, or if there is nothing to refute.

    Raises:
        TypeError: If an argument has a wrong type.
        ValueError: If `independence` is left out, a number is out of its range, or no pair of datasets is known that
            attains `truth`.
    """
    check_independence(independence)
    inclusion = check_design(independence, included_at_random)
    check_confidence(confidence)
    if not 0 < power < 1:
        raise ValueError(f"power must lie in (0, 1), got {power}")
    if independence != "runs" and power > both_sides.MOST_POWER:
        raise ValueError(f"power must be at most {both_sides.MOST_POWER} for canaries, got {power}")
    claimed, true = claim_of("claim", claim), claim_of("truth", truth)
    pair_curves(true)  # raises the error before the search

    if not violates(true, claimed):
        return None

    def chance(evidence: ScoresGuesses) -> float:
        least = evidence.least_right(claimed, confidence=confidence)
        return 0.0 if least is None else evidence.attained(true, least)

    def enough(n: int) -> bool:
        usual = chance(planned_evidence(n, claimed, independence, inclusion))
        by_chance = 0.0 if independence == "runs" or inclusion == "fixed_number" else half_by_chance(n)
        if usual < power or not by_chance:
            return usual >= power
        # `usual` ignores that the evidence is weaker if coins include half.  This case contributes at most
        # `by_chance` to `usual`, so `by_chance` is subtracted, and the power with the weaker evidence is added.
        halved = by_chance * chance(planned_evidence(n, claimed, independence, inclusion, half=True))
        return usual - by_chance + halved >= power

    return _fewest(enough)


def fewest_scores(
    claim: TradeoffFunction | str,
    *,
    independence: Independence = LEFT_OUT,
    confidence: float = DEFAULTS.confidence,
) -> int | None:
    """Compute the smallest number of scores with which `audit_scores` refutes a claim if every guess is right."""
    check_independence(independence)
    check_confidence(confidence)
    claimed = claim_of("claim", claim)

    def enough(n: int) -> bool:
        evidence = planned_evidence(n, claimed, independence, "coins")
        return evidence.least_right(claimed, confidence=confidence) is not None

    return _fewest(enough)


def _fewest(enough: Callable[[int], bool]) -> int | None:
    """Return the least sufficient number of scores, at least 4; None if `MAX_SCORES` scores are too few."""
    n = 4
    while not enough(n):
        n *= 2
        if n > MAX_SCORES:
            return None
    return n if n == 4 else bisect_integers(enough, inside=n, outside=n // 2).inside


def planned_evidence(
    n: int, claim: TradeoffFunction, independence: Independence, inclusion: Inclusion, *, half: bool = False
) -> ScoresGuesses:
    """Return evidence about n scores with the default number of guesses and a placeholder for the right guesses."""
    n0, n1 = n // 2, n - n // 2
    if has_levels(n, claim, independence, inclusion):
        return CanaryLevelsEvidence.of(n, n1, (0, 0, 0), half=half)
    kind, r = default_of(n0, n1, independence, inclusion)
    return evidence_of(n0, n1, kind, r, max(0, r - n0) if issubclass(kind, RunScoresEvidence) else 0, half=half)
