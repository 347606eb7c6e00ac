"""Audits a claim about a mechanism by many runs of this mechanism."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.arguments import (
    EQUAL,
    check_mechanism,
    check_neighbours,
    check_timing,
    claim_of,
    execution_settings_of,
    limited,
    pairs_of,
    planned_of,
    violation_of,
)
from dpaudit.engine.build_result import Asked, result_of
from dpaudit.engine.collector import Progress, ProgressCallback, new_collector
from dpaudit.engine.fixed import FixedAudit
from dpaudit.engine.progress_line import shown
from dpaudit.engine.replay import Replay, replay
from dpaudit.engine.result_parts import provenance_of, with_training
from dpaudit.engine.sequential import SequentialAudit
from dpaudit.inference.sequential.planned import Planned
from dpaudit.learning.attack import Attack, attack_classes
from dpaudit.pairs.pair import Pair
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict
from dpaudit.running.fingerprint import same_content
from dpaudit.running.foreign import own_error_state
from dpaudit.running.identity import mechanism_name, of_code_and_data, with_settings
from dpaudit.running.mechanisms import resolved
from dpaudit.running.runs import ExecutionSettings
from dpaudit.running.sources import source_of
from dpaudit.running.store import Store, StoreError, StoreRefused, seed_of
from dpaudit.running.streams import fresh_seed
from dpaudit.settings import DEFAULTS, METHODS, AuditSettings, Confirm, Failures, Method, Resume

_CHANCE_NATS = 1.0
# If the best attack on a mechanism at the limit of its claim gains fewer nats, attacks may fail to learn it.
_CLEAR_NATS = 30.0

__all__ = ["METHODS", "ExecutionSettings", "Progress", "Replay", "audit", "fresh_seed", "replay"]


def audit(
    mechanism: object,
    claim: TradeoffFunction | str,
    pairs: Pair | Iterable[Pair],
    *,
    attacks: str | Attack | Sequence[str | Attack] = DEFAULTS.attacks,
    trials: int = DEFAULTS.trials,
    confidence: float = DEFAULTS.confidence,
    method: str = DEFAULTS.method,
    seed: int | None = DEFAULTS.seed,
    jobs: int = DEFAULTS.jobs,
    store: str | Path | None = DEFAULTS.store,
    resume: Resume = DEFAULTS.resume,
    detect: TradeoffFunction | str | None = DEFAULTS.detect,
    measure: bool = DEFAULTS.measure,
    confirm: Confirm = DEFAULTS.confirm,
    observe_time: bool = DEFAULTS.observe_time,
    failures: Failures = DEFAULTS.failures,
    timeout: float | None = DEFAULTS.timeout,
    memory: int | str | None = DEFAULTS.memory,
    progress: ProgressCallback | bool | None = DEFAULTS.progress,
    name: str = DEFAULTS.name,
) -> AuditResult:
    """Try to refute a claim about a mechanism, and state the smallest violation that the audit would have found.

    Args:
        mechanism: A callable `(dataset, rng) -> output`, or an object with `sample(dataset, n, rng)` that returns n
            outputs.  The guarantee rests on one assumption: the runs are independent of each other.  Each call gets a
            copy of the dataset, and each output is copied when it is returned.  For local reports with public
            randomness, such as hashing, a method `supports(candidate, outputs)` says of each output whether, or how
            much, it speaks for a record; "auto" then learns from it (`dpaudit_attacks.supported`).
        claim: The claim to test, or text for `parse_claim`.  It applies to both orders of each pair.
        pairs: Pairs of neighbouring datasets, or a `SearchPairs`.  The claim is refuted if it fails on any pair.
            Trials go to the pairs on which evidence grows.
        attacks: "auto", the name of an attack, an `Attack`, or several of these.
        trials: Maximum number of runs on each dataset, over all pairs.  Choose it before the audit: after half of the
            runs, a sequential audit bets on a refutation within the others; see `inference.sequential.late_bets`.  To
            continue with more trials, give a `store` from the start; otherwise use another seed.
        confidence: Between 0 and 1.  A true claim is called violated with probability at most 1 - confidence, whenever
            the audit stops.  The default of 0.99 takes only about 1.5 times the runs of 0.95 under a violation.
        method: "sequential" stops as soon as the claim is refuted.  "fixed" makes all `trials`: the first tenth of them
            (or 15 % of more than three million) selects a pair and a rejection region, and the others test it exactly.
            The bounds are then tighter at the same number of trials.
        seed: Seed of all randomness except the mechanism's own, which the result records.  With the same seed, a
            mechanism that draws only from its rng gives the same outputs.  If None, it is that of an existing `store`
            or a fresh one.  Use another seed if an attack, pair or claim was chosen after looking at an audit's
            outputs, which would otherwise also test this choice.
        jobs: Number of processes in which the mechanism runs; -1 uses all cores.  The result does not depend on it.
        store: A file that keeps every block of outputs as soon as it is complete.  If the file exists, the audit
            resumes from it.  With the same `trials`, the result is that of an uninterrupted audit; more trials continue
            the same test.  Mechanism, its code, datasets, seed and versions must be the same; see `running.identity`
            and, for the format, `running.store`.
        resume: "same" refuses a store whose mechanism, datasets, seed or versions differ.  "anyway" continues it;
            `warnings` then list what differs, and the guarantee does not cover the mixture of old and new outputs.
        detect: A violation, as a claim, that the audit should be able to detect; otherwise it ends INCONCLUSIVE rather
            than without a violation.  A sequential audit places a share of its bets on it, and detects it earlier;
            other violations take up to about a quarter more runs on average (`inference.sequential.planned`).  Choose
            it before the audit, or use another seed.
        measure: Whether to continue up to `trials` after the claim has been refuted (`refuted_at`), to see how large
            the violation is.  The bounds are valid at any stopping time; without `measure`, those of a sequential audit
            are only slightly above the claim, even for a large violation.
        confirm: Number of fresh runs on each dataset after the claim has been refuted, or "never".  If None, it is the
            number of runs that the refutation took on the pair, and at least 1,000 if a run takes less than 10 ms; and
            never more than what is left of `trials`, or 1,000 with `measure` or method "fixed".  They are made in new
            processes if possible, and show how large the violation is, and whether it rests on a cache or on noise that
            was drawn once; see `AuditResult.confirmation`.
        observe_time: Whether the attacker also sees the running time of each run, with method "sequential" only.  Runs
            are made one by one, in random order, and one of the two runs of a trial counts.  Times are measured by this
            process or by that of an `IsolatedMechanism`, or reported by a `CommandMechanism`; for both, `failures` must
            be "stop".
        failures: What happens when a run raises an exception other than KeyboardInterrupt, including SystemExit.
            "stop" goes on without the pair, and ends INCONCLUSIVE unless the other pairs refute the claim.  "outcome"
            means that the analyst sees the exception, so a `Raised` counts as the output, unless memory, disk space or
            file handles have run out; each call then makes one run.  "retry" makes up to ten attempts at a run, with
            different randomness.  The audit then tests successful runs only, and misses a leak through the failure
            rate.  Selection by success can double epsilon, so each verdict names it (`AuditResult.scope`), and
            `warnings` state how many runs failed.
        timeout: Seconds after which a run, or one call of a batched mechanism, has failed.  Timeouts depend on the load
            of the machine, so they have the effect of "stop", unless `observe_time` is set.  Compiled code of this
            process cannot be ended.  Mechanisms in separate processes have their own time limits.
        memory: Maximum memory of each process that runs the mechanism: bytes, or text such as "2 GB"; on Linux only.
            With a limit, worker processes make the runs, even with `jobs=1`.  A run beyond the limit ends the audit,
            regardless of `failures`; see `running.foreign`.
        progress: True to show a line with the time left, or a function that is called with a `Progress` after each
            block of trials.
        name: Name of the audit in reports; the mechanism's name if empty.

    Returns:
        The result.  If the mechanism fails after something was measured, it is INCONCLUSIVE and holds what was
        measured.

    Raises:
        ValueError: If an argument has a value that is not allowed, a dataset cannot be copied, or `store` belongs to
            another audit.
        TypeError: If an argument has a wrong type.
        MechanismError: If the mechanism fails before anything was measured.
    """
    claim, detect = claim_of("claim", claim), violation_of(detect)
    settings = AuditSettings(
        attacks=attacks,
        trials=trials,
        confidence=confidence,
        method=cast(Method, method),
        seed=seed,
        jobs=jobs,
        store=store,
        resume=resume,
        detect=detect,
        measure=measure,
        confirm=confirm,
        observe_time=observe_time,
        failures=failures,
        timeout=timeout,
        memory=memory,
        progress=progress,
        name=name,
    )
    return audit_for(mechanism, claim, pairs, settings, violations=() if detect is None else (detect,))


@own_error_state()
def audit_for(
    mechanism: object,
    claim: TradeoffFunction,
    pairs: Pair | Iterable[Pair],
    settings: AuditSettings,
    *,
    violations: Sequence[TradeoffFunction],
    late_bets: bool = True,
) -> AuditResult:
    """Make an audit that should detect given violations early."""
    pair_list = pairs_of(pairs)
    check_mechanism(mechanism)
    check_timing(mechanism, settings)
    planned = planned_of(violations, claim, settings.confidence)
    deadline = settings.trials if settings.final and late_bets else None
    mechanism = limited(mechanism, settings)
    return _audited(mechanism, claim, pair_list, settings, planned if settings.bets else None, deadline)


def _audited(
    mechanism: object,
    claim: TradeoffFunction,
    pair_list: Sequence[Pair],
    settings: AuditSettings,
    planned: Planned | None,
    deadline: int | None,
) -> AuditResult:
    """Make the audit, given arguments that have been checked."""
    tested, execution = claim.symmetrized(), execution_settings_of(settings)
    seed = seed_of(settings.store) if settings.seed is None else settings.seed
    equal = [pair for pair in pair_list if same_content(pair.d0, pair.d1)]
    given = len(pair_list)
    if len(equal) < given:
        pair_list = [pair for pair in pair_list if all(pair is not one for one in equal)]
        check_neighbours(mechanism, pair_list, claim)
    collector = new_collector(
        mechanism, pair_list, settings.attacks, settings.trials, seed, settings.jobs, execution, tested, planned
    )
    collector.notes += [f"{EQUAL}; the pair was left out (pair {pair})" for pair in equal if len(equal) < given]
    source = source_of(mechanism)
    identity = of_code_and_data(mechanism, source, pair_list)
    if len(equal) == given:
        collector.failure = f"{EQUAL} (pair {equal[0]})"
    elif settings.store is not None:
        try:
            collector.sampler.store = Store(
                settings.store,
                with_settings(identity, seed, execution, str(settings.detect) if planned else None),
                seed=seed,
                anyway=settings.resume == "anyway",
            )
        except StoreError as error:
            raise StoreRefused(error) from None
    began = time.perf_counter()
    sequential = SequentialAudit(
        collector,
        tested,
        settings.confidence,
        measure=settings.measure,
        planned=planned,
        deadline=deadline,
        confirms=settings.confirms,
    )
    asked = Asked(
        claim=claim,
        detect=settings.detect,
        name=settings.name or mechanism_name(mechanism),
        provenance=provenance_of(seed=seed, mechanism=mechanism_name(mechanism), source=source, identity=identity),
        confirm=settings.confirm,
        trials=settings.trials,
    )
    try:
        with shown(settings.progress, asked.name) as progress:
            run = _BY_METHOD[settings.method](sequential)
            run.go(progress)
            result = result_of(run, asked, began=began)
    finally:
        if collector.sampler.store is not None:
            collector.sampler.store.close()
    return with_training(_about_bits(_hinted(result)), resolved(mechanism), pair_list)


_BY_METHOD: dict[str, Callable[[SequentialAudit], SequentialAudit | FixedAudit]] = {
    "sequential": lambda run: run,
    "fixed": lambda pilot: FixedAudit(pilot.collector, pilot.tested, pilot),
}


def _hinted(result: AuditResult) -> AuditResult:
    """Add a warning if nothing in enough runs distinguishes d0 from d1, as if the mechanism ignored its dataset."""
    if result.verdict is not Verdict.NO_VIOLATION or result.mu_lower > 0:
        return result
    # At the limit of the claim, the best attack gains at least TV^2 / 2 nats per output on average.
    gain = result.trials_used * float(result.claim.delta(0.0)) ** 2 / 2
    # Chance may give an attack a total advantage of some nats over a guess, whose log-loss is ln 2.
    by_chance = math.log(2) - _CHANCE_NATS / max(1, result.trials_used)
    losses = [row.log_loss for row in result.attacks if not math.isnan(row.log_loss)]
    if gain <= _CLEAR_NATS or min(losses, default=0.0) <= by_chance:
        return result
    words = (
        "no attack predicted the dataset of new outputs clearly better than a guess, and the certified bound on mu is "
        "0: check that the outputs depend on the dataset"
    )
    return dataclasses.replace(result, warnings=(*result.warnings, words))


def _about_bits(result: AuditResult) -> AuditResult:
    """Add a warning to a violation if its witness is a region of an attack on the low-order bits of floats."""
    if result.verdict is not Verdict.VIOLATION or result.witness is None:
        return result
    classes = attack_classes()
    used = [name for name in result.witness.attack.split("+") if name in classes]
    on_bits = [name for name in used if getattr(classes[name], "automatic", True) == "released"]
    if not on_bits:
        return result
    words = (
        f"the attack{'s' * (len(on_bits) > 1)} {' and '.join(on_bits)} used the low-order bits of floats, which can "
        "reveal the dataset even if the noise has the claimed distribution; to test the distribution alone, audit with "
        "attacks=median_clipped"
    )
    return dataclasses.replace(result, warnings=(*result.warnings, words))
