"""From a finished audit to its result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.collector import Collector
from dpaudit.engine.constant_outputs import judged, nothing_varied
from dpaudit.engine.fixed import STUDIED, FixedAudit
from dpaudit.engine.judgement import Judgement
from dpaudit.engine.sequential import SequentialAudit
from dpaudit.engine.witness import make_witness
from dpaudit.inference.power import (
    Law,
    fixed_margin,
    largest_epsilon,
    least_detectable,
    least_detectable_fixed,
    power_margin,
    smallest_rate,
)
from dpaudit.inference.sequential.alternatives import scaled
from dpaudit.inference.sequential.bands import anytime_band, fixed_band
from dpaudit.inference.sequential.strategy import strategy
from dpaudit.learning import Learner
from dpaudit.pairs.pair import brief
from dpaudit.result.evidence import Evidence, overstated
from dpaudit.result.model import AuditResult
from dpaudit.result.values import AttackRow, Curve, Detectable, History, PairRow, StoppedBy, Verdict

POWER = 0.9  # with which the smallest detectable violation would have been seen


def sequential_result(
    run: SequentialAudit,
    *,
    claim: TradeoffFunction,
    detect: TradeoffFunction | None,
    name: str,
    environment: dict[str, Any],
    elapsed_s: float,
) -> AuditResult:
    """The result of an audit that could stop at any time."""
    evidence, significance = run.evidence, 1 - run.confidence
    counts = evidence.counts
    bets = int(counts.sum(axis=(1, 2)).max()) // 2  # on the pair that was tried most: the leak may be there alone
    share = 1.0 if len(counts) == 1 else 1 / (2 * len(counts))

    def margin(truth: Law) -> float:
        return power_margin(
            strategy(run.tested), run.tested, truth, bets, significance=significance * share, power=POWER
        )

    dependent = run.collector.dependence()
    constants = _constants(
        run.collector, dict(enumerate(run.pair_log_e)), run.refuted and not dependent, run.tested, significance
    )
    detectable = _detectable(
        evidence,
        least_detectable(run.tested, margin) if bets and not constants.doubts else None,
        confidence=run.confidence,
        shown=bets,
        where="" if len(counts) == 1 else "on the pair that was tried most, ",
    )
    verdict, warnings = _verdict(run.collector, run.refuted, dependent, constants, claim, detectable, detect, margin)
    void = bool(dependent or constants.doubts) or not run.collector.trials
    best = int(np.argmax([-math.inf if i in evidence.lost else log_e for i, log_e in enumerate(run.pair_log_e)]))
    total = counts.sum(axis=0)
    return AuditResult(
        name=name,
        verdict=verdict,
        claim=claim,
        confidence=run.confidence,
        method="sequential",
        p_value=1.0 if void else min(1.0, math.exp(-run.most)),
        e_value=1.0 if void else _e_value(run),
        trials_used=run.collector.trials,
        trials_allowed=run.collector.allowed,
        stopped_by=_stopped_by(run, verdict),
        mu_lower=0.0 if void else evidence.mu_lower(confidence=run.confidence),
        certified=not void,
        curve=_curve(_no_band(*total) if evidence.single or void else anytime_band(*total, significance=significance)),
        witness=make_witness(
            run.collector.learners[best],
            run.tested,
            *counts[best],
            pair=str(run.collector.sampler.pairs[best]),
            pairs=len(run.collector.learners),
            violated=verdict is Verdict.VIOLATION,
            recount=not evidence.single,
        ),
        detectable=detectable,
        history=_history(run),
        evidence=evidence,
        pairs=_pair_rows(run),
        attacks=_attack_rows(run.collector.learners),
        warnings=tuple(warnings),
        environment=environment | _costs(run.collector),
        elapsed_s=elapsed_s,
    )


def fixed_result(
    run: FixedAudit,
    *,
    claim: TradeoffFunction,
    detect: TradeoffFunction | None,
    name: str,
    environment: dict[str, Any],
    elapsed_s: float,
) -> AuditResult:
    """The result of an audit of a fixed number of trials."""
    evidence, confidence = run.evidence, run.pilot.confidence
    significance = 1 - confidence
    dependent = run.collector.dependence()
    certified = run.collector.stopped_by == "trials" and not dependent  # else the number of trials was not fixed
    p_value = evidence.p_value(run.tested) if certified else 1.0
    refuted = p_value <= significance
    constants = _constants(run.collector, {run.pair: math.inf}, refuted, run.tested, significance)
    if constants.doubts:
        certified, p_value = False, 1.0

    sizes = {"pilot": int(evidence.pilot.sum(axis=1).min()), "trials": evidence.trials}

    def margin(truth: Law) -> float:
        return fixed_margin(run.tested, truth, **sizes, significance=significance, power=POWER)

    detectable = _detectable(
        evidence,
        least_detectable_fixed(run.tested, **sizes, significance=significance, power=POWER)
        if evidence.trials and not constants.doubts
        else None,
        confidence=confidence,
        shown=evidence.trials,
        where="" if len(run.collector.learners) == 1 else "on the pair that the pilot chose, ",
    )
    verdict, warnings = _verdict(run.collector, refuted, dependent, constants, claim, detectable, detect, margin)
    return AuditResult(
        name=name,
        verdict=verdict,
        claim=claim,
        confidence=confidence,
        method="fixed",
        p_value=p_value,
        e_value=0.5 / math.sqrt(p_value),  # p to e: Vovk & Wang 2021, Ann. Stat. 49, eq. (1) with kappa = 1/2
        trials_used=run.collector.trials,
        trials_allowed=run.collector.allowed,
        stopped_by=run.collector.stopped_by,
        mu_lower=evidence.mu_lower(confidence=confidence) if certified else 0.0,
        certified=certified,
        curve=_curve(
            fixed_band(*evidence.counts, significance=significance) if certified else _no_band(*evidence.counts)
        ),
        witness=make_witness(
            run.collector.learners[run.pair],
            run.tested,
            *evidence.counts,
            pair=str(run.collector.sampler.pairs[run.pair]),
            threshold=evidence.threshold,
        ),
        detectable=detectable,
        history=_history(run.pilot),
        evidence=evidence,
        pairs=_pair_rows(run.pilot),
        attacks=_attack_rows(run.collector.learners),
        warnings=tuple(warnings),
        environment=environment | _costs(run.collector) | ({STUDIED: run.studied} if run.studied else {}),
        elapsed_s=elapsed_s,
    )


def _verdict(
    collector: Collector,
    refuted: bool,
    dependent: list[str],
    constants: Judgement,
    claim: TradeoffFunction,
    detectable: Detectable,
    detect: TradeoffFunction | None,
    margin: Any,
) -> tuple[Verdict, list[str]]:
    warnings = [*collector.notes, *(warning for learner in collector.learners for warning in learner.warnings)]
    if collector.failure:
        kept = f"; the {collector.trials} runs per dataset before it are kept" if collector.trials else ""
        warnings.append(f"{collector.failure}{kept}")
    elif collector.dropped:
        warnings += [f"{failure}; the pair was dropped" for failure in collector.dropped.values()]
    warnings += collector.conduct
    if collector.sampler.store is not None:
        warnings += collector.sampler.store.words(collector.trials)
    if collector.interrupted:
        warnings.append(f"interrupted after {collector.trials} of {collector.allowed} runs per dataset")
    if dependent:
        warnings += dependent
        return Verdict.INCONCLUSIVE, warnings
    if constants.doubts:
        return Verdict.INCONCLUSIVE, [*warnings, *constants.doubts]
    if refuted:
        return Verdict.VIOLATION, [*warnings, *constants.hints]
    if collector.stopped_by != "trials":
        return Verdict.INCONCLUSIVE, warnings
    if unseen := collector.unseen:
        return Verdict.INCONCLUSIVE, [*warnings, *unseen]
    if not detectable.claim:
        warnings.append(f"{collector.trials} runs per dataset are too few to see any violation of {claim.label}")
        return Verdict.INCONCLUSIVE, warnings
    if detect is not None and margin(scaled(detect, 1.0)) < 0:
        few = f"{collector.trials} runs per dataset are too few to see {detect.label} with {POWER:.0%} probability"
        return Verdict.INCONCLUSIVE, [*warnings, few]
    return Verdict.NO_VIOLATION, warnings


def _constants(
    collector: Collector,
    evidence: dict[int, float],
    refuted: bool,
    tested: TradeoffFunction,
    significance: float,
) -> Judgement:
    """What outputs that never vary mean for the verdict."""
    if refuted:
        return judged(collector, evidence, tested, significance)
    return Judgement(doubts=nothing_varied(collector))


def _detectable(
    evidence: Evidence, least: TradeoffFunction | None, *, confidence: float, shown: int, where: str
) -> Detectable:
    """What the audit would have seen; `shown`: runs that count on the pair of the `least` violation.

    AssertionError if the evidence certifies more than any test of its kind can.
    """
    found = Detectable(
        claim="" if least is None else str(least),
        assumption=f"{where}if an attack knows the likelihood ratio; learning it costs more",
        smallest_rate=smallest_rate(shown),
        largest_epsilon=largest_epsilon(evidence.trials, significance=1 - confidence),
    )
    if words := overstated(evidence, found.largest_epsilon, confidence=confidence):
        raise AssertionError(words)
    return found


def _no_band(counts0: Any, counts1: Any) -> tuple[Any, Any, Any]:
    """The observed curve, with 1 - alpha as its upper bound, which every curve keeps.

    For audits that certify no band.  Running times drift, so there is no one curve that a band could be about.  Runs
    that depend on each other, and a number of trials that was not fixed, take a band its confidence.
    """
    alpha, beta, _ = anytime_band(counts0, counts1, significance=0.5)
    return alpha, beta, 1 - alpha


def _stopped_by(run: SequentialAudit, verdict: Verdict) -> StoppedBy:
    """Evidence that was found to count for nothing did not end the audit with a refutation."""
    if verdict is Verdict.VIOLATION:
        return "evidence"
    return "dependence" if run.refuted else run.collector.stopped_by


def _e_value(run: SequentialAudit) -> float:
    """The wealth at the end, which is a stopping time unless the mechanism failed.

    After a failure it is the wealth just before the failing run.  That moment is chosen by an outcome of the run, so
    the expectation of the wealth may exceed 1; that of the lesser of it and 1 cannot.
    """
    return min(_exp(run.log_e), 1.0) if run.collector.failure else _exp(run.log_e)


def _curve(band: tuple[Any, Any, Any]) -> Curve:
    alpha, beta, beta_upper = band
    return Curve(alpha=alpha, beta=beta, beta_upper=beta_upper)


def _history(run: SequentialAudit) -> History:
    return History(
        trials=np.array([trials for trials, _ in run.history], dtype=np.int64),
        log_e=np.array([log_e for _, log_e in run.history], dtype=np.float64),
    )


def _pair_rows(run: SequentialAudit) -> tuple[PairRow, ...]:
    pairs, spent = run.collector.sampler.pairs, run.collector.spent
    return tuple(
        PairRow(
            label=str(pair),
            relation=pair.relation,
            d0=brief(pair.d0, 200),
            d1=brief(pair.d1, 200),
            trials=trials,
            log_e=log_e,
        )
        for pair, trials, log_e in zip(pairs, spent, run.pair_log_e, strict=True)
    )


def _costs(collector: Collector) -> dict[str, Any]:
    """What depends on the machine, and the fingerprint of what came out."""
    seconds: dict[str, float] = {}
    for learner in collector.learners:
        for index, spent in learner.seconds.items():
            name = learner.attacks[index].name
            seconds[name] = round(seconds.get(name, 0.0) + spent, 3)
    found: dict[str, Any] = {
        "outputs": str(collector.digest),
        "first outputs": collector.beginning.fingerprints(),
        "seconds of attacks": seconds,
    }
    return found | ({"runs after the evidence": collector.observed} if collector.observed else {})


def _attack_rows(learners: Sequence[Learner]) -> tuple[AttackRow, ...]:
    """One row for each attack: means over the pairs on which it was used."""
    rows: list[AttackRow] = []
    for index, attack in enumerate(learners[0].attacks):
        weights = [learner.weights().get(index, 0.0) for learner in learners]
        losses = [loss for learner in learners if not math.isnan(loss := learner.mean_loss(index))]
        used = any(index in learner.weights() for learner in learners)
        rows.append(
            AttackRow(
                name=attack.name,
                weight=float(np.mean(weights)),
                log_loss=float(np.mean(losses)) if losses else math.nan,
                note="; ".join(dict.fromkeys(learner.absence(index) for learner in learners)) if not used else "",
            )
        )
    return tuple(rows)


def _exp(log_e: float) -> float:
    return math.exp(log_e) if log_e < 700 else math.inf
