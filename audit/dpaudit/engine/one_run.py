"""The audit of a single run with many canaries, such as one training run of a model."""

from __future__ import annotations

import math
import time
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpaudit.claims import PureDP, TradeoffFunction, parse_claim
from dpaudit.engine.provenance import provenance_of
from dpaudit.engine.verdict import Facts, ruling
from dpaudit.inference.guesses import guess, right_guesses
from dpaudit.inference.one_run import fewest_right, refutes
from dpaudit.inference.power import least_parameter
from dpaudit.numerics.arrays import Array
from dpaudit.result.evidence import OneRunEvidence
from dpaudit.result.model import AuditResult
from dpaudit.result.values import AttackRow, Counts, Curve, Detectable, History, Witness
from dpaudit.settings.audit import DEFAULTS, POWER
from dpaudit.settings.limits import check_confidence
from dpaudit.text.reasons import About, Reason


def audit_one_run(
    scores: npt.ArrayLike,
    included: npt.ArrayLike,
    claim: TradeoffFunction | str,
    *,
    confidence: float = DEFAULTS.confidence,
    guesses: int | None = None,
    name: str = "one run",
) -> AuditResult:
    """Try to refute a claim from one output of a mechanism whose data included each of m canaries by a fair coin.

    Args:
        scores: (m,), how strongly the output suggests that each canary was included.  Higher scores mean a stronger
            suggestion; +-inf is allowed.
        included: (m,), booleans: whether each canary was included.  Independent fair coins must have decided this, and
            the scores may depend on the coins only through the output.
        claim: The claim to test, or text for `parse_claim`.  It is about adding or removing one canary; see
            `inference.one_run` for the theorems.
        confidence: Between 0 and 1.  A true claim is called violated with probability at most 1 - confidence.
        guesses: Number of canaries, those with the most extreme scores, whose inclusion is guessed.  Choose it before
            you see the output.  If None, 1.5 m^(3/4).
        name: Name of the audit in reports.

    Returns:
        The result.  It certifies no trade-off curve, because a single run bounds none.

    Raises:
        ValueError: If a score is NaN, there are no scores, the arrays differ in length, or the confidence or the
            number of guesses is not allowed.
    """
    began = time.perf_counter()
    claim = parse_claim(claim) if isinstance(claim, str) else claim
    check_confidence(confidence)
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(included)
    answers = guess(values, guesses)
    r, v = right_guesses(answers, truth)
    if len(values) == 0:
        raise ValueError("scores must be those of at least one canary, got none")
    evidence = OneRunEvidence(canaries=len(values), guesses=r, right=v)
    p_value = evidence.p_value(claim)
    detectable = _detectable(claim, len(values), r, 1 - confidence)
    few = "" if detectable.claim else Reason(f"{r} guesses are too few to see any violation", About.TOO_FEW)
    found = ruling(Facts(fixed=True, trials=1, allowed=1, refuted=p_value <= 1 - confidence, too_few=few))
    alpha, beta = _curve(values, truth.astype(bool))
    return AuditResult(
        name=name,
        verdict=found.verdict,
        claim=claim,
        confidence=confidence,
        method=evidence.method,
        p_value=p_value,
        e_value=0.5 / math.sqrt(p_value) if p_value > 0 else math.inf,  # as in `build_result._Fixed.e_value`
        trials_used=1,
        trials_allowed=1,
        stopped_by=found.stopped_by,
        mu_lower=evidence.mu_lower(confidence=confidence),
        curve=Curve(alpha=alpha, beta=beta, beta_upper=1 - alpha),  # one run bounds no curve, but T <= 1 - alpha holds
        witness=_witness(claim, answers, truth.astype(bool), r, v, 1 - confidence),
        detectable=detectable,
        history=History(trials=np.zeros(0, dtype=np.int64), log_e=np.zeros(0)),
        evidence=evidence,
        pairs=(),
        attacks=(AttackRow(name="scores", weight=1.0, log_loss=math.nan, note="given by the user"),),
        warnings=found.reasons,
        provenance=provenance_of(seed=0, mechanism=name),
        elapsed_s=time.perf_counter() - began,
    )


def _witness(
    claim: TradeoffFunction,
    answers: npt.NDArray[np.int8],
    included: npt.NDArray[np.bool_],
    r: int,
    v: int,
    significance: float,
) -> Witness | None:
    """Return the number of right guesses, and the number that would refute the claim.

    Guesses are made for the canaries with the most extreme scores.  The trade-off curve bounds error rates over all
    canaries, so the error rates of the guessed canaries cannot be compared with it, and are nan.
    """
    out, into = (answers != 0) & ~included, (answers != 0) & included
    if not out.any() or not into.any():
        return None
    return Witness(
        pair=f"each of {len(answers)} canaries in or out",
        attack="scores",
        region=f"{v} of {r} guesses right",
        alpha=math.nan,
        beta=math.nan,
        claimed_beta=math.nan,
        counts=Counts(
            false_positives=int((answers[out] == 1).sum()),
            n0=int(out.sum()),
            false_negatives=int((answers[into] == -1).sum()),
            n1=int(into.sum()),
        ),
        counted="guesses",
        guesses=r,
        right=v,
        needed=fewest_right(claim, len(answers), r, significance=significance),
    )


def _curve(scores: Array, included: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the observed errors of the rule "included if score > t" over all canaries, from alpha = 1 to 0."""
    cuts = np.unique(scores)
    out, into = np.sort(scores[~included]), np.sort(scores[included])
    alpha = 1 - np.searchsorted(out, cuts, side="right") / max(len(out), 1)
    beta = np.searchsorted(into, cuts, side="right") / max(len(into), 1)
    alpha, beta = np.append(1.0, alpha), np.append(0.0, beta)
    alpha[-1], beta[-1] = 0.0, 1.0
    return alpha, beta


@lru_cache(maxsize=64)  # it does not depend on the scores, so audits of equal size share it
def _detectable(claim: TradeoffFunction, m: int, r: int, significance: float) -> Detectable:
    """Find the least epsilon such that guesses that are right with odds e^epsilon would refute the claim."""
    from scipy.stats import binom  # takes half a second, which other audits save

    def seen(epsilon: float) -> bool:
        v = int(binom.ppf(1 - POWER, r, 1 / (1 + math.exp(-epsilon))))
        return refutes(claim, m, r, v, significance=significance)

    least = least_parameter(seen) if r else None
    return Detectable(
        claim="" if least is None else str(PureDP(least)),
        assumption="assuming that every guess is right with odds e^epsilon",
        rule_of_three_rate=1 - 0.05 ** (1 / m),
        largest_epsilon=OneRunEvidence(canaries=m, guesses=r, right=r).epsilon_lower(0.0, confidence=1 - significance),
    )
