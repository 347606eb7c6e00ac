"""The number of scores that an audit of scores needs."""

from __future__ import annotations

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.arguments import claim_of
from dpaudit.engine.score_guesses import Independence, ScoresEvidence
from dpaudit.engine.scores import LEFT_OUT, check_independence
from dpaudit.inference.scores import confident, runs, several
from dpaudit.numerics.bisect import bisect_integers
from dpaudit.result.evidence import CanaryScoresEvidence, OneRunScoresEvidence, RunScoresEvidence
from dpaudit.settings.audit import DEFAULTS, POWER
from dpaudit.settings.limits import check_confidence

MAX_SCORES = 262_144
"""Numbers of scores beyond this are not tried."""

_ALPHAS = np.linspace(0.0, 1.0, 1001)  # where two curves are compared
_SLACK = 1.03  # probabilities are computed up to 3 % too large


def plan_scores(
    claim: TradeoffFunction | str,
    truth: TradeoffFunction | str,
    *,
    independence: Independence = LEFT_OUT,
    confidence: float = DEFAULTS.confidence,
    power: float = POWER,
) -> int | None:
    """Compute how many scores `audit_scores` needs to refute a claim, if the mechanism is only as private as `truth`.

    Scores are assumed to be likelihood ratios, and scores of canaries to be independent.  Weaker scores need more.

    Args:
        claim: The claim, or its text.
        truth: The curve of the mechanism, or its text.
        independence: As in `audit_scores`.
        confidence: As in `audit_scores`.
        power: Probability, in (0, 1), with which the number of scores is enough.

    Returns:
        The number of runs on both datasets together, half of them on each; or the number of canaries.  None if
        `MAX_SCORES` are too few, or if there is nothing to refute.

    Raises:
        TypeError: If an argument has a wrong type.
        ValueError: If `independence` is left out, or a number is out of its range.
    """
    check_independence(independence)
    check_confidence(confidence)
    if not 0 < power < 1:
        raise ValueError(f"power must lie in (0, 1), got {power}")
    claimed, true = claim_of("claim", claim), claim_of("truth", truth)

    if np.all(true.symmetrized().beta(_ALPHAS) >= claimed.symmetrized().beta(_ALPHAS)):
        return None

    def enough(n: int) -> bool:
        evidence = _of(n, independence)
        least = evidence.least_right(claimed, confidence=confidence)
        return least is not None and evidence.attained(true, least) >= min(_SLACK * power, (1 + power) / 2)

    n = 4
    while not enough(n):
        n *= 2
        if n > MAX_SCORES:
            return None
    return bisect_integers(enough, inside=n, outside=n // 2).inside


def _of(n: int, independence: Independence) -> ScoresEvidence:
    """Return evidence with the default number of guesses about n scores; its right guesses do not matter."""
    if independence == "runs":
        n0, n1 = n // 2, n - n // 2
        r = runs.default_cut(n0, n1)
        return RunScoresEvidence(n0=n0, n1=n1, guesses=r, right=max(0, r - n0))
    if independence == "canaries":
        return CanaryScoresEvidence(m=n, included=0, half=0, guesses=confident.default_confident(n), right=0)
    return OneRunScoresEvidence(m=n, included=0, half=0, guesses=several.default_guesses(n), right=0)
