"""All kinds of evidence, and what depends on the class of evidence; see `base_evidence.Evidence`."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.grid import EDGES
from dpaudit.inference.sequential.planned import Planned
from dpaudit.result.base_evidence import Evidence, Kind
from dpaudit.result.confirmation import Confirmation
from dpaudit.result.fixed_evidence import FixedEvidence
from dpaudit.result.histograms import Counts
from dpaudit.result.scores_evidence import ScoresEvidence
from dpaudit.result.sequential_evidence import OnlineEvidence, SequentialEvidence
from dpaudit.result.values import Curve, Verdict
from dpaudit.result.words import words_of
from dpaudit.text.rounding import count, upper
from dpaudit.values import Json, Parameters

__all__ = [
    "EDGES",
    "KINDS",
    "Counts",
    "Evidence",
    "FixedEvidence",
    "Kind",
    "OnlineEvidence",
    "ScoresEvidence",
    "SequentialEvidence",
    "concluded",
    "confirmation_of",
    "disagreement",
    "fingerprint",
    "given_scores",
    "once",
    "pair_log_e",
    "planned_of",
    "read_back",
    "spent",
]

_NEARLY = 1e-6  # relative difference of p-values that may be a rounding error of another machine

KINDS: dict[str, type[Evidence]] = {
    "sequential": SequentialEvidence,
    "fixed": FixedEvidence,
    "scores": ScoresEvidence,
    "online": OnlineEvidence,
}
"""All classes of evidence by `Kind.method`.  Other modules ask the evidence for its `kind`, never for its class."""


def given_scores(evidence: Evidence) -> ScoresEvidence | None:
    """Return the evidence if it is from scores of another program; None if it counts outputs."""
    return evidence if isinstance(evidence, ScoresEvidence) else None


def confirmation_of(evidence: Evidence) -> Confirmation | None:
    """Return the fresh runs after a refutation; None if there are none."""
    return evidence.confirmation if isinstance(evidence, SequentialEvidence | FixedEvidence) else None


def planned_of(evidence: Evidence) -> Planned | None:
    """Return the violations for which a share of the bets was planned; None if there are no such bets."""
    return evidence.planned if isinstance(evidence, SequentialEvidence) else None


def once(evidence: Evidence) -> bool:
    """Return whether the mechanism was run only once."""
    return isinstance(evidence, ScoresEvidence) and evidence.runs == 1


def pair_log_e(evidence: Evidence, claim: TradeoffFunction) -> list[float] | None:
    """Return the log-wealth of each pair, if bets had been placed on that pair only; None without bets."""
    return evidence.pair_log_e(claim) if isinstance(evidence, SequentialEvidence) else None


def concluded(
    evidence: Evidence, claim: TradeoffFunction, *, confidence: float, valid: bool, failed: bool
) -> Parameters:
    """Return the fields of a result that follow from its counts.

    The e-value of an audit that may stop at any time is the final wealth; after a failure at most 1, because the moment
    before it is no stopping time.  Of other audits, it is computed from the p-value by eq. (1) of Vovk & Wang 2021,
    Ann. Stat. 49, with kappa = 1/2.
    """
    tested = claim.symmetrized()
    p_value = evidence.p_value(tested) if valid else 1.0
    if isinstance(evidence, SequentialEvidence):
        log_e = evidence.final_log_e(tested) if valid else 0.0
        e_value = math.exp(min(log_e, 0.0) if failed else log_e) if log_e < 700 else 1.0 if failed else math.inf
    else:
        e_value = 0.5 / math.sqrt(p_value) if p_value > 0 else math.inf
    band = evidence.band(confidence=confidence, bounds_valid=valid)
    return {
        "claim": claim,
        "confidence": confidence,
        "method": evidence.kind.method,
        "evidence": evidence,
        "bounds_valid": valid,
        "p_value": p_value,
        "e_value": e_value,
        "mu_lower": evidence.lower(None, confidence=confidence) if valid else 0.0,
        **({} if band is None else {"curve": Curve(**dict(zip(("alpha", "beta", "beta_upper"), band, strict=True)))}),
    }


def disagreement(verdict: Verdict, p_value: float, *, confidence: float, valid: bool) -> str:
    """Say that a verdict does not follow from a p-value; "" if it may.  See the table of `engine.verdict.ruling`."""
    significance = 1 - confidence
    refuted = valid and p_value <= significance * (1 + (_NEARLY if verdict is Verdict.VIOLATION else -_NEARLY))
    if (verdict is Verdict.VIOLATION) == refuted and (valid or verdict is Verdict.INCONCLUSIVE):
        return ""
    counts = f"give a p-value of {upper(p_value)} at confidence {confidence}" if valid else "are not valid"
    return f"its verdict is {verdict.value!r}, but its counts {counts}"


def spent(evidence: Evidence, runs: int) -> str:
    """Describe a number of runs in the unit of the audit, such as "200 runs per dataset" or "393 steps"."""
    if once(evidence):
        return "one run"
    guessed = given_scores(evidence)
    steps = min(2 * runs, evidence.steps) if isinstance(evidence, OnlineEvidence) else 0
    return words_of(evidence).spent.format(
        runs=f"{count(runs)} run{'' if runs == 1 else 's'}",
        steps=count(steps),
        canaries="" if guessed is None else count(guessed.scores),
    )


def fingerprint(evidence: Evidence) -> str:
    """Return the SHA-256 hash of the object `evidence` of a result file: compact JSON with sorted keys, in UTF-8."""
    text = json.dumps(evidence.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def read_back(values: Mapping[str, Json], target: TradeoffFunction) -> Evidence:
    """Read evidence of any kind."""
    method = values["method"]
    if method not in KINDS:
        raise ValueError(f"evidence must be of method {' or '.join(KINDS)}, got {method!r}")
    return KINDS[method].from_json(values, target)
