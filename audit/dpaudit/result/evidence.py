"""All kinds of evidence, that of a fixed number of trials, and what depends on the class of evidence."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpaudit.claims import Reported, TradeoffFunction
from dpaudit.inference.fixed import exact_binomial
from dpaudit.inference.fixed.regions import threshold_for_epsilon, threshold_for_mu
from dpaudit.inference.grid import BINS, EDGES
from dpaudit.inference.scores.families import Family, TextFamily, check_nested, epsilon_inside, family_of
from dpaudit.inference.sequential.bands import Band, fixed_band, uncertified_band
from dpaudit.inference.sequential.planned import Planned
from dpaudit.result.base_evidence import Counts, Evidence, Kind, check_bins, check_trials, dense, sparse
from dpaudit.result.confirmation import WEAKEST_PARAMETER, Confirmation
from dpaudit.result.scores_evidence import ScoresEvidence
from dpaudit.result.sequential_evidence import OnlineEvidence, SequentialEvidence
from dpaudit.result.values import Curve, Verdict, beyond
from dpaudit.result.words import words_of
from dpaudit.rounding import count, lower, lower_as, upper
from dpaudit.values import Json, JsonObject, Parameters

__all__ = ["EDGES", "Counts", "Evidence", "Kind", "OnlineEvidence", "SequentialEvidence"]  # of other modules


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FixedEvidence(Evidence):
    """Counts of the values of one fixed score on fresh outputs, and the fixed rejection regions for this score.

    Each p-value and each bound is valid with the stated confidence if the audit made the planned number of trials; see
    `inference.fixed.exact_binomial`.  Bounds may use other regions than the test; all come from the pilot only.
    """

    pair: int  # index of the pair that the pilot phase selected
    threshold: int  # last bin below the rejection region {bin > threshold} on which the claim is tested
    pilot: Counts  # of the score on the pilot's latest outputs, to select regions, (2, BINS); see `merge_saturated`
    counts: Counts  # counts of the score on all outputs after the pilot phase; shape (2, BINS)
    # delta of an (epsilon, delta)-DP claim; the bound on epsilon at this delta uses the claim's rejection region
    delta: float = math.nan
    confirmation: Confirmation | None = None  # the fresh runs after a refutation

    kind = Kind.FIXED

    def __repr__(self) -> str:
        x, n0, y, n1 = self.outcome
        return f"FixedEvidence({x:,} of {n0:,} outputs of d0 in the region, {y:,} of {n1:,} of d1)"

    @property
    def trials(self) -> int:
        return int(self.counts[0].sum())

    @property
    def outcome(self) -> tuple[int, int, int, int]:
        """(x, n0, y, n1): the claim's region contains x of the n0 outputs of d0, and y of the n1 outputs of d1."""
        return beyond(self.counts, self.threshold).hits

    @property
    def histograms(self) -> tuple[Counts]:
        return (self.counts,)

    def p_value(self, claim: TradeoffFunction) -> float:
        return exact_binomial.p_value(claim, *self.outcome)

    def parameter_lower(self, family: Family, *, significance: float, precision: float) -> float:
        """Return Buehler's bound of the parameter, because p-values may fall as claims weaken; no `precision`."""
        return exact_binomial.parameter_lower(
            lambda t: family(max(t, WEAKEST_PARAMETER)), *self.outcome, significance=significance
        )

    def band(self, *, confidence: float, bounds_valid: bool) -> Band:
        return fixed_band(*self.counts, significance=1 - confidence) if bounds_valid else uncertified_band(*self.counts)

    def lower(self, delta: float | None, *, confidence: float) -> float:
        significance, threshold = 1 - confidence, self.threshold
        known: Any = {"trials": self.trials, "significance": significance, "otherwise": threshold}
        if delta is None:
            threshold = threshold_for_mu(*self.pilot, **known)
            return exact_binomial.mu_lower(*beyond(self.counts, threshold).hits, significance=significance)
        if delta != self.delta:
            threshold = threshold_for_epsilon(*self.pilot, delta=delta, **known)
        hits = beyond(self.counts, threshold).hits
        return exact_binomial.epsilon_lower(*hits, delta=delta, significance=significance)

    def to_json(self) -> JsonObject:
        values: JsonObject = {"method": self.kind.method, "pair": self.pair, "threshold": self.threshold}
        if not math.isnan(self.delta):
            values["delta"] = self.delta
        values |= {"bins": BINS, "pilot": sparse(self.pilot), "counts": sparse(self.counts)}
        if self.confirmation is not None:
            values["confirmation"] = self.confirmation.to_json()
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Json], target: TradeoffFunction) -> FixedEvidence:
        check_bins(values)
        threshold = int(values["threshold"])
        if not 0 <= threshold < BINS:
            raise ValueError(f"evidence must have a threshold among {BINS} bins, got {threshold}")
        counts, fresh = dense(values["counts"]), values.get("confirmation")
        check_trials(counts)
        return cls(
            pair=int(values["pair"]),
            threshold=threshold,
            pilot=dense(values["pilot"]),
            counts=counts,
            delta=float(values.get("delta", math.nan)),
            confirmation=None if fresh is None else Confirmation.from_json(fresh, target),
        )


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


def saw_times(evidence: Evidence) -> bool:
    """Return whether the attacker saw running times: then only one output of each trial of a pair counts."""
    return isinstance(evidence, SequentialEvidence) and evidence.coin_selected


def pair_log_e(evidence: Evidence, claim: TradeoffFunction) -> list[float] | None:
    """Return the log-wealth of each pair, if bets had been placed on that pair only; None without bets."""
    return evidence.pair_log_e(claim) if isinstance(evidence, SequentialEvidence) else None


def concluded(
    evidence: Evidence, claim: TradeoffFunction, *, confidence: float, valid: bool, failed: bool
) -> Parameters:
    """Return the fields of a result that follow from its counts.

    The e-value is the final wealth of an audit that may stop at any time; after a failure at most 1, because the moment
    before it is no stopping time.  Other audits compute it by eq. (1) of Vovk & Wang 2021, Ann. Stat. 49, kappa = 1/2.
    """
    tested = claim.symmetrized()
    p_value = evidence.p_value(tested) if valid else 1.0
    if isinstance(evidence, SequentialEvidence):
        log_e = evidence.final_log_e(tested) if valid else 0.0
        e_value = math.exp(min(log_e, 0.0) if failed else log_e) if log_e < 700 else 1.0 if failed else math.inf
    else:
        e_value = 0.5 / math.sqrt(p_value) if p_value > 0 else math.inf
    bounded = valid and not isinstance(claim, Reported)
    band = evidence.band(confidence=confidence, bounds_valid=bounded)
    return {
        "claim": claim,
        "confidence": confidence,
        "method": evidence.kind.method,
        "evidence": evidence,
        "bounds_valid": valid,
        "p_value": p_value,
        "e_value": e_value,
        "mu_lower": evidence.lower(None, confidence=confidence) if bounded else math.nan if valid else 0.0,
        **({} if band is None else {"curve": Curve(**dict(zip(("alpha", "beta", "beta_upper"), band, strict=True)))}),
    }


def disagreement(verdict: Verdict, p_value: float, *, confidence: float, valid: bool) -> str:
    """Say that a verdict does not follow from a p-value; "" if it may; see `engine.result_parts.ruling`."""
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
    return words_of(evidence).spent.format(
        runs=f"{count(runs)} run{'' if runs == 1 else 's'}",
        steps=count(min(2 * runs, evidence.steps)) if isinstance(evidence, OnlineEvidence) else "",
        canaries=count(evidence.scores) if isinstance(evidence, ScoresEvidence) else "",
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


# absolute precision of the family's parameter; coarse because one claim may take seconds, such as 2,500 steps of DP-SGD
_PRECISION = 1e-3
_APART = 1.05  # ratio of the two parameters whose claims are compared to check that the family is nested


class AssumedBound(float):
    """A lower bound on epsilon, in nats, that is valid if the stated assumption is true.

    `str(bound)`, `repr(bound)` and `f"{bound:.3f}"` state the assumption and round down; numbers computed from it do
    not.
    """

    assumption: str  # assumption in words, such as "the mechanism's curve is gaussian(mu=?) for some ?"
    parameter: float  # parameter of the largest refuted claim of the family; 0 if no claim is refuted

    def __new__(cls, epsilon: float, assumption: str, parameter: float) -> AssumedBound:
        bound = super().__new__(cls, epsilon)
        bound.assumption, bound.parameter = assumption, parameter
        return bound

    def __getnewargs__(self) -> tuple[float, str, float]:  # type: ignore[override]  # for copies and pickles
        return float(self), self.assumption, self.parameter

    def __repr__(self) -> str:
        return f"{float(self)!r} (assuming that {self.assumption})"

    def __str__(self) -> str:
        return f"{lower(self, 6)} (assuming that {self.assumption})"

    def __format__(self, specification: str) -> str:
        return f"{lower_as(self, specification)} (assuming that {self.assumption})" if specification else str(self)


def bound_outside(evidence: Evidence, epsilon: float) -> float:
    """Return a bound that states the untested assumption of the evidence; a plain number if there is none."""
    assumption = words_of(evidence).assumption
    return AssumedBound(epsilon, assumption, epsilon) if assumption else epsilon


def bound_inside(
    evidence: Evidence, delta: float, assuming: str | Family, *, confidence: float, valid: bool
) -> AssumedBound:
    """Find the largest claim of a family that the evidence refutes, and return the epsilon of this claim at `delta`.

    Theorem:
        Let the mechanism's curve be the claim with parameter t of a nested family, as dpaudit computes this claim.  The
        probability that the bound exceeds the epsilon of this claim is at most 1 - confidence.

    Proof:
        The bound exceeds the epsilon of the claim at t only if the bound of the parameter exceeds t.  Each kind of
        evidence states in `parameter_lower` why this has probability at most 1 - confidence.  For the parameters of a
        family that is written as text, also whole numbers, `text_families` completes the proof.

    Closed forms, such as those of Gaussian and Laplace claims, are exact.  Compositions are computed with the error
    that `claims.accounting` states, so the epsilon of the exact claim may be slightly smaller.
    If the counts of the audit are not `valid`, the bound is 0.
    """
    if not 0 <= delta <= 1:
        raise ValueError(f"delta must lie in [0, 1], got {delta}")
    family = family_of(assuming)
    text = family if isinstance(family, TextFamily) else None
    if isinstance(assuming, str):
        words = f"is {'gaussian(mu=?)' if assuming == 'gaussian' else assuming} for some ?"
    else:
        words = f"lies in the family {getattr(assuming, '__name__', 'given as a function')}"
    assumption = "; and ".join(filter(None, [f"the mechanism's curve {words}", words_of(evidence).assumption]))
    if not valid:
        return AssumedBound(0.0, assumption, 0.0)
    precision = _PRECISION if text is None else text.precision(_PRECISION)
    place = evidence.parameter_lower(family, significance=1 - confidence, precision=precision)
    if place > 0:
        check_nested(family, place, _APART * place)
        check_nested(family, place / 2, place)
    else:
        check_nested(family, 1.0, _APART)
    parameter = text.parameter(place) if text is not None and place > 0 else place
    return AssumedBound(epsilon_inside(family, place, delta), assumption, parameter)
