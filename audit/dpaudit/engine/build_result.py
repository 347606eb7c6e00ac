"""Builds the result of a finished audit."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.claims import Reported, TradeoffFunction
from dpaudit.engine.fixed import FixedAudit
from dpaudit.engine.fresh_runs import FRESH_RUNS, Fresh, confirm
from dpaudit.engine.independence import Judgement, judgement_of, nothing_varied
from dpaudit.engine.plan import enough_trials, would_do
from dpaudit.engine.result_parts import Facts, attack_rows, pair_rows, ruling, with_costs
from dpaudit.engine.result_parts import detectable as detectable_row
from dpaudit.engine.sequential import SequentialAudit
from dpaudit.engine.witness import make_witness
from dpaudit.inference.power import (
    Law,
    fixed_margin,
    largest_epsilon,
    largest_violation,
    least_detectable,
    least_detectable_fixed,
    power_margin,
)
from dpaudit.inference.sequential.alternatives import pair_laws
from dpaudit.result.evidence import concluded
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance
from dpaudit.result.values import Detectable, History, Verdict, Witness
from dpaudit.settings import POWER, Confirm
from dpaudit.text import Reason, WarningCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The arguments of an audit that its result repeats."""

    claim: TradeoffFunction
    detect: TradeoffFunction | None
    name: str
    provenance: Provenance
    confirm: Confirm = None  # as in `audit`
    trials: int = 0  # the argument `trials` of `audit`


class _Sequential:
    """The statistics of a sequential audit.  The class `_Fixed` has the same attributes and methods."""

    def __init__(self, run: SequentialAudit) -> None:
        self.run, self.collector, self.bets, self.evidence = run, run.collector, run, run.evidence
        self._significance = 1 - run.confidence
        self.refuted = run.refuted  # whether the claim is refuted, if the counts are valid
        self.refuted_at = run.refuted_at
        counts, several = self.evidence.counts, len(self.evidence.counts) > 1
        # the violation may lie in one pair only, so the power is computed for the pair with the most trials
        self.shown = int(counts.sum(axis=(1, 2)).max()) // 2
        self.where = "on the pair with the most trials" if several else ""
        self._share = 1 / (2 * len(counts)) if several else 1.0  # of the initial wealth, bet on this pair alone
        self.second_stage_trials = 0

    def margin(self, truth: Law) -> float:
        """Return a number that is nonnegative if the audit detects the given law with probability `POWER`."""
        level, run = self._significance * self._share, self.run
        coins = self.evidence.coin_selected
        return power_margin(
            run.bets, run.tested, truth, self.shown, significance=level, power=POWER, coin_selected=coins
        )

    def enough(self, truth: TradeoffFunction) -> int | None:
        """Estimate the number of runs on each dataset that would detect a violation; None if it is unknown."""
        return enough_trials(
            self.run.bets,
            self.run.tested,
            truth,
            confidence=self.run.confidence,
            pairs=len(self.collector.learners),
            coin_selected=self.evidence.coin_selected,
        )

    def least(self) -> TradeoffFunction | None:
        """Return the smallest detectable violation in the family of the claim; None if no violation is detectable."""
        return least_detectable(self.run.tested, self.margin)

    @property
    def pair(self) -> int:
        """Index of the pair with the strongest evidence."""
        return self.run.strongest

    def confirm(self, asked: Asked) -> Fresh:
        """Make the fresh runs that follow a refutation: at most as many as are left."""
        made = self.collector.trials + self.collector.observed
        left = min(FRESH_RUNS, asked.trials) if self.run.measure else asked.trials - made
        return confirm(self.collector, self.pair, self.run.tested, self._significance, asked=asked.confirm, left=left)

    def witness(self, *, violated: bool) -> Witness | None:
        best = self.pair
        return make_witness(
            self.collector.learners[best],
            self.run.tested,
            *self.evidence.counts[best],
            pair=self.collector.sampler.pairs[best],
            pairs=len(self.collector.learners),
            violated=violated,
            recount=not self.evidence.coin_selected,
        )


class _Fixed:
    """The statistics of an audit with a fixed number of trials.  The class `_Sequential` has the same members."""

    def __init__(self, run: FixedAudit) -> None:
        self.run, self.collector, self.bets, self.evidence = run, run.collector, run.pilot, run.evidence
        self._significance = 1 - run.pilot.confidence
        self.refuted = self.evidence.p_value(run.tested) <= self._significance
        self.refuted_at = None  # a fixed audit tests the claim only at its end
        self.pair = run.pair  # the pair that the pilot chose
        self.shown = self.evidence.trials
        self.where = "" if len(run.collector.learners) == 1 else "on the pair that the pilot chose"
        self._sizes = {"pilot": int(self.evidence.pilot.sum(axis=1).min()), "trials": self.evidence.trials}
        self.second_stage_trials = run.second_stage_trials

    def margin(self, truth: Law) -> float:
        return fixed_margin(self.run.tested, truth, **self._sizes, significance=self._significance, power=POWER)

    def enough(self, truth: TradeoffFunction) -> int | None:
        pairs = len(self.run.collector.learners)
        laws, made = pair_laws(truth), int(self.collector.trials)
        tested, level = self.run.tested, self._significance
        for times in [2 << k for k in range(13)] if pairs == 1 and self.shown else ():
            sizes = {name: size * times for name, size in self._sizes.items()}
            if all(fixed_margin(tested, law, **sizes, significance=level, power=POWER) >= 0 for law in laws):
                return made * times
        return None

    def least(self) -> TradeoffFunction | None:
        return least_detectable_fixed(self.run.tested, **self._sizes, significance=self._significance, power=POWER)

    def confirm(self, asked: Asked) -> Fresh:
        """Make fresh runs in the region of the audit, in addition to all its trials."""
        return confirm(
            self.collector,
            self.pair,
            self.run.tested,
            self._significance,
            asked=asked.confirm,
            left=min(FRESH_RUNS, asked.trials),
            threshold=self.evidence.threshold,
        )

    def witness(self, *, violated: bool) -> Witness | None:
        return make_witness(
            self.collector.learners[self.run.pair],
            self.run.tested,
            *self.evidence.counts,
            pair=self.collector.sampler.pairs[self.run.pair],
            threshold=self.evidence.threshold,
        )


def result_of(run: SequentialAudit | FixedAudit, asked: Asked, *, began: float) -> AuditResult:
    """Build the result of a finished audit that began at a time of `time.perf_counter`."""
    method = _Fixed(run) if isinstance(run, FixedAudit) else _Sequential(run)
    collector, evidence, confidence = method.collector, method.evidence, method.bets.confidence
    accused = not collector.void and _facts(method, (), Judgement()).accused
    witness = method.witness(violated=accused)
    if isinstance(run, SequentialAudit):
        run.observe()  # further runs after a refutation
    dependent = collector.dependence()
    fresh, judgement = None, Judgement(doubts=nothing_varied(collector.seen))
    if _facts(method, dependent, Judgement()).accused:
        fresh = method.confirm(asked)
        method.evidence = evidence = dataclasses.replace(evidence, confirmation=fresh.confirmation)
        judgement = judgement_of(fresh.confirmation, collector.seen[method.pair])
        if collector.void:  # scores may have become void among the fresh runs
            dependent = collector.dependence()
    counts = fresh.confirmation.counts if fresh else None
    detectable = detectable_row(
        method.least() if method.shown and not judgement.doubts else None,
        method.where or "on this pair",
        "the attack is optimal",
        shown=method.shown,
        largest_epsilon=largest_epsilon(max(evidence.trials, counts.n0 if counts else 0), significance=1 - confidence),
    )
    facts = _with_power(_facts(method, dependent, judgement), asked, detectable, method)
    found = ruling(facts)
    failed = found.stopped_by == "failure"
    if isinstance(asked.claim, Reported):  # a size of thinned laws is none of sessions
        detectable = dataclasses.replace(detectable, claim="", largest_epsilon=math.inf)
    numbers = concluded(evidence, asked.claim, confidence=confidence, valid=found.bounds_valid, failed=failed)
    compared = method.pair if fresh is not None and fresh.confirmation.processes else None
    stated = found.verdict is not Verdict.INCONCLUSIVE or numbers["mu_lower"] > 0
    untested = collector.untested(compared) if stated else []
    return AuditResult(
        **numbers,
        name=asked.name,
        verdict=found.verdict,
        trials_used=collector.trials,
        trials_allowed=collector.allowed,
        stopped_by=found.stopped_by,
        refuted_at=method.refuted_at if found.verdict is Verdict.VIOLATION else None,
        witness=(fresh and fresh.witness) or witness,
        detectable=detectable,
        history=History(
            trials=np.array([trials for trials, _ in method.bets.history], dtype=np.int64),
            log_e=np.array([log_e for _, log_e in method.bets.history], dtype=np.float64),
        ),
        pairs=pair_rows(method.bets, evidence),
        attacks=attack_rows(collector.learners),
        warnings=(*untested, *found.reasons),
        provenance=with_costs(asked.provenance, collector, second_stage_trials=method.second_stage_trials),
        elapsed_s=time.perf_counter() - began,
    )


def _facts(method: _Sequential | _Fixed, dependent: Sequence[str], judgement: Judgement) -> Facts:
    """Collect the facts that determine the verdict, except the facts about power, which `_with_power` adds."""
    collector = method.collector
    store = collector.sampler.store
    return Facts(
        fixed=not method.evidence.kind.anytime,
        trials=collector.trials,
        allowed=collector.allowed,
        measured=method.bets.measure,
        refuted=method.refuted,
        interrupted=collector.interrupted,
        failure=collector.failure,
        void=bool(collector.void),
        dropped=tuple(collector.dropped.values()),
        dependent=tuple(dependent),
        doubts=tuple(judgement.doubts),
        hints=tuple(judgement.hints),
        unseen=tuple(collector.unseen),
        notes=(*collector.notes, *(words for learner in collector.learners for words in learner.warnings)),
        side_effects=(*collector.side_effects, *(store.words(collector.trials) if store is not None else [])),
    )


def _with_power(facts: Facts, asked: Asked, detectable: Detectable, method: _Sequential | _Fixed) -> Facts:
    """Add the facts about power: whether the audit could have detected some violation, and the one in `detect`."""
    if ruling(facts).verdict is not Verdict.NO_VIOLATION:
        return facts  # the power would not change the verdict
    few = f"{facts.trials} runs per dataset are too few to see"
    if not detectable.claim:
        too_few = Reason(f"{few} any violation of {asked.claim.label}{_enough(asked, method)}", WarningCode.TOO_FEW)
        return dataclasses.replace(facts, too_few=too_few)
    if asked.detect is None or all(method.margin(law) >= 0 for law in pair_laws(asked.detect)):
        return facts
    missed = f"{few} {asked.detect.label} with {POWER:.0%} probability{_enough(asked, method)}"
    return dataclasses.replace(facts, detect_missed=Reason(missed, WarningCode.TOO_FEW))


def _enough(asked: Asked, method: _Sequential | _Fixed) -> str:
    """Return a phrase that states how many runs would have detected the violation in `detect`, or any violation."""
    sought = asked.detect or largest_violation(asked.claim)
    return would_do(method.enough(sought), "runs per dataset", revealing=asked.detect is None)
