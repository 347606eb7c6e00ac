"""The audit: which runs are made, what is learned from them, and when there is enough evidence."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.arguments import check_mechanism, claim_of, execution_settings_of, pairs_of
from dpaudit.engine.build_result import Asked, fixed_result, sequential_result
from dpaudit.engine.collector import Progress, ProgressCallback, new_collector
from dpaudit.engine.fixed import FixedAudit
from dpaudit.engine.provenance import provenance_of
from dpaudit.engine.replay import Replay, replay
from dpaudit.engine.sequential import SequentialAudit
from dpaudit.learning.attack import Attack
from dpaudit.mechanisms import members
from dpaudit.mechanisms.fingerprint import Unknowable, same_content
from dpaudit.mechanisms.sources import source_of
from dpaudit.pairs.pair import Pair, doubts
from dpaudit.result.model import AuditResult
from dpaudit.sampling.runs import ExecutionSettings
from dpaudit.sampling.store import Store, StoreError, seed_of
from dpaudit.sampling.store_identity import identity
from dpaudit.sampling.streams import fresh_seed
from dpaudit.settings.audit import DEFAULTS, METHODS, AuditSettings, Failures, Method
from dpaudit.text.reasons import Reason

__all__ = ["METHODS", "ExecutionSettings", "Progress", "Replay", "audit", "fresh_seed", "replay"]

EQUAL = "d0 and d1 are equal, so no mechanism could be refuted; give two datasets that differ"


def audit(
    mechanism: Any,
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
    detect: TradeoffFunction | str | None = DEFAULTS.detect,
    measure: bool = DEFAULTS.measure,
    observe_time: bool = DEFAULTS.observe_time,
    failures: Failures = DEFAULTS.failures,
    timeout: float | None = DEFAULTS.timeout,
    progress: ProgressCallback | None = DEFAULTS.progress,
    name: str = DEFAULTS.name,
) -> AuditResult:
    """Try to refute `claim` about `mechanism`, and say how small a violation would have been found.

    `mechanism`: a callable `(dataset, rng) -> output`, or an object with `sample(dataset, n, rng)` that returns n
    outputs.  Runs must be independent of each other; the guarantee rests on that alone.  Every call gets a copy of the
    dataset, and outputs are copied as they are returned.  `claim`: a claim, or text for `parse_claim`.  It is about
    both orders of each pair.  `pairs`: neighbouring datasets, or a `SearchPairs`; with several, the claim is refuted if
    it fails on any of them, and trials go where evidence grows.  `attacks`: "auto", a name, an Attack, or several.
    `trials`: the most runs on each dataset, all pairs together.  `confidence`: a true claim is called violated with
    probability at most 1 - confidence, whenever the audit stops.  The default is 0.99 and not 0.95: an accusation needs
    better odds than one in twenty, and evidence grows exponentially, so that the stricter test takes about 1.5 times
    the runs.  `method`: "sequential" stops as soon as the claim is refuted.  "fixed" makes all `trials`, a tenth of
    them (of more than three million, 15 %) to choose a pair and a rejection region, and tests that region exactly; its
    bounds are tighter at a given number of trials.  `seed`: of all randomness but the mechanism's own; a mechanism that
    draws only from its rng is repeated exactly.  None draws a fresh seed, which the result records (that of the store,
    if `store` holds one).  An attack, pair or claim that was chosen after looking at an audit's outputs needs another
    seed: on the same one it would be judged by the outputs it was made from, and the guarantee would not hold.  `jobs`:
    processes the mechanism runs in (-1: all cores); changes no result.  `store`: a file in which every block of outputs
    is kept as soon as it is made.  If it is there already, and of the same mechanism, datasets, seed and versions, the
    audit goes on where it stood, and ends with the result of one that was never interrupted.  Content is compared, code
    included: see `sampling.store_identity`.  A store of anything else is refused.  `sampling.store` describes the
    format.  `detect`: a violation, as a claim, that the audit should be able to see; if it could not, it ends
    INCONCLUSIVE.  `measure`: go on to `trials` after the claim has been refuted, to see how large the violation is:
    `refuted_at` of the result says when the claim fell, and the bounds are those of the end.  They hold whenever the
    audit is looked at.  Without it, a sequential audit certifies hardly more than the claim, however false it is; a
    "fixed" one measures in any case.
    `observe_time`: the attacker also sees how long each run took; for mechanisms that are called once
    for each run, and method "sequential".  Runs are then made here, one by one, in random order, and one of the two of
    each trial counts.  `failures`: "stop" ends the audit INCONCLUSIVE when a run raises.  "outcome" says that the
    analyst sees the exception: it counts as the run's output, a `Raised`; for mechanisms that are called once for each
    run.  An exception may be any but KeyboardInterrupt, SystemExit included.  "retry" makes a run that fails again,
    with other randomness, ten times at most: then the claim is taken to be about runs that succeed, how often they fail
    may be a leak that is not seen, and `warnings` say how many failed where.  `timeout`: seconds; a run, or one call of
    a batched mechanism, that takes longer has failed.  Whether it does depends on the load of the machine, so a timeout
    is an outcome, or is retried, under `observe_time` only; otherwise it ends the audit as with "stop".
    `mechanisms.timeout` says what cannot be ended that way; mechanisms in processes of their own have limits of their
    own.  `progress`: called after each block of trials.  `name`: for the report.

    Raises ValueError for impossible arguments (also for a dataset that cannot be copied), TypeError for those of a
    wrong type, MechanismError if the mechanism fails before anything was measured; a failure later ends the audit
    INCONCLUSIVE, with what was measured until then.
    """
    claim, detect = claim_of("claim", claim), None if detect is None else claim_of("detect", detect)
    pair_list = pairs_of(pairs)
    check_mechanism(mechanism)
    settings = AuditSettings(
        attacks=attacks,
        trials=trials,
        confidence=confidence,
        method=cast(Method, method),
        seed=seed,
        jobs=jobs,
        store=store,
        detect=detect,
        measure=measure,
        observe_time=observe_time,
        failures=failures,
        timeout=timeout,
        progress=progress,
        name=name,
    )
    return _audited(mechanism, claim, pair_list, settings)


def _audited(
    mechanism: Any, claim: TradeoffFunction, pair_list: Sequence[Pair], settings: AuditSettings
) -> AuditResult:
    """`audit` with arguments that have been checked."""
    tested, execution = claim.symmetrized(), execution_settings_of(settings)
    seed = seed_of(settings.store) if settings.seed is None else settings.seed
    equal = [pair for pair in pair_list if same_content(pair.d0, pair.d1)]
    given = len(pair_list)
    if len(equal) < given:
        pair_list = [pair for pair in pair_list if all(pair is not one for one in equal)]
    collector = new_collector(
        mechanism, pair_list, settings.attacks, settings.trials, seed, settings.jobs, execution, tested
    )
    collector.notes += [f"{EQUAL}; the pair was left out (pair {pair})" for pair in equal if len(equal) < given]
    if len(equal) == given:
        collector.failure = f"{EQUAL} (pair {equal[0]})"
    elif settings.store is not None:
        try:
            collector.sampler.store = Store(settings.store, identity(mechanism, pair_list, seed, execution), seed=seed)
        except (StoreError, Unknowable) as error:
            raise ValueError(f"store: {error}") from None
    began = time.perf_counter()
    sequential = SequentialAudit(collector, tested, settings.confidence, measure=settings.measure)
    asked = Asked(
        claim=claim,
        detect=settings.detect,
        name=settings.name or _name(mechanism),
        provenance=provenance_of(seed=seed, mechanism=_name(mechanism), source=source_of(mechanism)),
    )
    try:
        result = _BY_METHOD[settings.method](sequential, asked, settings.progress, began)
    finally:
        if collector.sampler.store is not None:
            collector.sampler.store.close()
    return _doubted(result, pair_list)


def _sequential(run: SequentialAudit, asked: Asked, progress: ProgressCallback | None, began: float) -> AuditResult:
    run.go(progress)
    return sequential_result(run, asked, elapsed_s=time.perf_counter() - began)


def _fixed(pilot: SequentialAudit, asked: Asked, progress: ProgressCallback | None, began: float) -> AuditResult:
    run = FixedAudit(pilot.collector, pilot.tested, pilot)
    run.go(progress)
    return fixed_result(run, asked, elapsed_s=time.perf_counter() - began)


_BY_METHOD = {"sequential": _sequential, "fixed": _fixed}


def _doubted(result: AuditResult, pairs: Sequence[Pair]) -> AuditResult:
    """The result, with a warning for each pair whose stated relation is perhaps not its own.

    It comes before the others: the reason of an inconclusive audit is the last one.
    """
    found = [Reason.of(f"{words} (pair {pair})") for pair in pairs if (words := doubts(pair))]
    return dataclasses.replace(result, warnings=(*found, *result.warnings)) if found else result


def _name(mechanism: Any) -> str:
    named = members.address(mechanism) or getattr(mechanism, "__qualname__", None)
    return str(named or type(mechanism).__qualname__)
