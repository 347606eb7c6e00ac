"""What the results of all kinds of audits share: the rule of the verdict, tables of pairs and attacks, provenance."""

from __future__ import annotations

import datetime
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.collector import Collector
from dpaudit.engine.sequential import SequentialAudit
from dpaudit.inference.grid import CENTRES
from dpaudit.inference.power import rule_of_three_rate
from dpaudit.learning import Learner
from dpaudit.numerics import Array
from dpaudit.pairs.difference import DATASET_LENGTH, brief, hidden_difference
from dpaudit.pairs.pair import Pair
from dpaudit.result.evidence import Evidence, pair_log_e
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance, SourceFile, TrainingRecord, histograms
from dpaudit.result.values import AttackRow, Detectable, PairRow, StoppedBy, Verdict
from dpaudit.result.words import if_curve
from dpaudit.running.identity import Identity, public
from dpaudit.running.sources import Source
from dpaudit.text import Reason, WarningCode, __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about an audit when it ends.  Texts and tuples are empty if they do not apply."""

    fixed: bool  # whether the number of trials was fixed beforehand and the counts are tested once
    trials: int  # runs per dataset that were made
    allowed: int  # maximum number of runs per dataset
    refuted: bool  # whether the counts, taken as valid, refute the claim at the audit's confidence
    measured: bool = False  # whether trials continue after the claim has been refuted
    interrupted: bool = False  # whether the user interrupted the audit
    failure: str = ""  # the failure of the mechanism that ended the audit
    void: bool = False  # whether an attack made the scores worthless; `dependent` then holds the reason
    dropped: tuple[str, ...] = ()  # failures that ended the trials of one pair, but not of other pairs
    dependent: tuple[str, ...] = ()  # why no guarantee holds: dependent runs, or void scores
    doubts: tuple[str, ...] = ()  # why the outputs prove nothing: constant, cached, or from noise drawn once
    hints: tuple[str, ...] = ()  # likely causes of a violation
    unseen: tuple[str, ...] = ()  # pairs that the audit could not examine to the end
    ignored: tuple[str, ...] = ()  # why the mechanism seems to ignore its dataset, so that nothing was tested
    too_few: str = ""  # why no violation in the claim's own family would have been detected
    detect_missed: str = ""  # why the violation in `detect` would not have been detected
    unclaimed: str = ""  # why there is nothing to refute: no claim was given
    notes: tuple[str, ...] = ()  # warnings from before the first run, and of the attacks
    side_effects: tuple[str, ...] = ()  # side effects of the mechanism

    @property
    def ended(self) -> StoppedBy:
        """What ended the trials, if the evidence did not end them."""
        if self.interrupted:
            return "interruption"
        return "failure" if self.failure or self.void else "trials"

    @property
    def complete(self) -> bool:
        """Whether the counts may be tested.  A fixed audit needs all trials, and any other audit at least one trial."""
        return self.ended == "trials" if self.fixed else self.trials > 0

    @property
    def accused(self) -> bool:
        """Whether the audit reports a violation if there are no `doubts`."""
        return self.refuted and self.complete and not self.dependent


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """The verdict and its consequences."""

    verdict: Verdict
    bounds_valid: bool  # whether p-value and bounds are valid; if not, p-value 1 and bounds 0 are reported
    stopped_by: StoppedBy
    reasons: tuple[str, ...]  # warnings of the result; the last warning is the reason for an inconclusive verdict


def ruling(facts: Facts) -> Ruling:
    """Derive the verdict from the facts.  The first row that applies decides:

    | fact                                                       | verdict            | last of the reasons |
    |------------------------------------------------------------|--------------------|---------------------|
    | runs depend on each other, or scores are void              | INCONCLUSIVE       | `dependent`         |
    | outputs never vary, or may come from a cache               | INCONCLUSIVE       | `doubts`            |
    | the claim is refuted; if `fixed`, all trials were made     | VIOLATION          | `hints`             |
    | a failure or an interruption ended the trials              | INCONCLUSIVE       | what happened       |
    | no claim was given                                         | INCONCLUSIVE       | `unclaimed`         |
    | a pair was not examined to the end                         | INCONCLUSIVE       | `unseen`            |
    | the mechanism seems to ignore its dataset                  | INCONCLUSIVE       | `ignored`           |
    | no violation of the claim would have been detected         | INCONCLUSIVE       | `too_few`           |
    | the violation in `detect` would not have been detected     | INCONCLUSIVE       | `detect_missed`     |
    | none of these                                              | NO_VIOLATION       |                     |

    The bounds are valid unless one of the first two rows applies, or the counts are not `complete`.  `stopped_by` is
    what ended the trials: "evidence" that reached its threshold is "dependence" if one of these rows overrules it.
    """
    verdict, last = _verdict(facts)
    stopped_by = facts.ended
    if facts.refuted and not facts.fixed and not facts.measured:
        stopped_by = "evidence" if verdict is Verdict.VIOLATION else "dependence"
    return Ruling(
        verdict=verdict,
        bounds_valid=facts.complete and not facts.dependent and not facts.doubts,
        stopped_by=stopped_by,
        reasons=(*_reported(facts), *last),
    )


def _verdict(facts: Facts) -> tuple[Verdict, tuple[str, ...]]:
    """Apply the table of `ruling`; return the verdict and its reasons."""
    if reasons := facts.dependent or facts.doubts:
        return Verdict.INCONCLUSIVE, reasons
    if facts.accused:
        return Verdict.VIOLATION, facts.hints
    if facts.ended != "trials":
        return Verdict.INCONCLUSIVE, ()
    unclaimed, *missed = ((one,) if one else () for one in (facts.unclaimed, facts.too_few, facts.detect_missed))
    reasons = next(filter(None, (unclaimed, facts.unseen, facts.ignored, *missed)), ())
    return (Verdict.INCONCLUSIVE if reasons else Verdict.NO_VIOLATION), reasons


def _reported(facts: Facts) -> tuple[str, ...]:
    """Return the warnings that are reported with every verdict."""
    failures: tuple[str, ...] = ()
    if facts.failure:
        kept = f"; the {facts.trials} runs per dataset before it are kept" if facts.trials else ""
        failures = (Reason(f"{facts.failure}{kept}", WarningCode.FAILURE),)
    elif facts.dropped:
        failures = tuple(Reason(f"{one}; the pair was dropped", WarningCode.FAILURE) for one in facts.dropped)
    words = f"interrupted after {facts.trials} of {facts.allowed} runs per dataset"
    interrupted = Reason(words, WarningCode.INTERRUPTION)
    return (*facts.notes, *failures, *facts.side_effects, *([interrupted] if facts.interrupted else []))


_POINTS = 400  # maximum number of thresholds of the curve of scores


def pair_rows(run: SequentialAudit, evidence: Evidence) -> tuple[PairRow, ...]:
    """Return one row for each pair, in order; a fixed audit has bet on the outputs of its pilot only."""
    pairs, spent = run.collector.sampler.pairs, run.collector.spent
    wealth = pair_log_e(evidence, run.tested) or run.pair_log_e
    return tuple(
        PairRow(
            label=str(pair),
            relation=pair.relation,
            d0=brief(pair.d0, DATASET_LENGTH),
            d1=brief(pair.d1, DATASET_LENGTH),
            difference=hidden_difference(pair.d0, pair.d1, DATASET_LENGTH),
            trials=trials,
            log_e=log_e,
        )
        for pair, trials, log_e in zip(pairs, spent, wealth, strict=True)
    )


def attack_rows(learners: Sequence[Learner]) -> tuple[AttackRow, ...]:
    """Return one row for each attack: its mean weight over all pairs, and its mean log-loss over pairs that used it."""
    rows: list[AttackRow] = []
    weights = [learner.weights() for learner in learners]
    for index, attack in enumerate(learners[0].attacks):
        losses = [loss for learner in learners if not math.isnan(loss := learner.mean_loss(index))]
        absences = [] if any(index in each for each in weights) else [learner.absence(index) for learner in learners]
        rows.append(
            AttackRow(
                name=attack.name,
                weight=float(np.mean([each.get(index, 0.0) for each in weights])),
                log_loss=float(np.mean(losses)) if losses else math.nan,
                note="; ".join(dict.fromkeys(absences)),
            )
        )
    return tuple(rows)


def detectable(
    least: TradeoffFunction | None, place: str, attained_if: str, *, shown: int, largest_epsilon: float
) -> Detectable:
    """Describe the smallest violation that an audit could have detected, if there is one."""
    return Detectable(
        claim="" if least is None else str(least),
        assumption="" if least is None else f"{if_curve(least, place)} and {attained_if}",
        rule_of_three_rate=rule_of_three_rate(shown),
        largest_epsilon=largest_epsilon,
    )


def observed_curve(scores0: Array, scores1: Array) -> tuple[Array, Array]:
    """Return both errors of the attack "d1 if the score is above t", from alpha = 1 to 0, at a few hundred points."""
    out, into = np.sort(scores0), np.sort(scores1)
    sides = [side for side in (out, into) if len(side)]
    cuts = [side[np.linspace(0, len(side) - 1, _POINTS // 2).astype(int)] for side in sides]
    at = np.unique(np.concatenate(cuts))
    alpha = np.append(1.0, 1 - np.searchsorted(out, at, side="right") / max(len(out), 1))
    beta = np.append(0.0, np.searchsorted(into, at, side="right") / max(len(into), 1))
    alpha[-1], beta[-1] = 0.0, 1.0
    return alpha, beta


_FOR_DATA = ("numpy", "scipy", "pandas", "polars")  # packages that most mechanisms use, and that are rarely audited
_PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib")


def provenance_of(
    *, seed: int, mechanism: str, source: Source | None = None, identity: Identity | None = None
) -> Provenance:
    """Return versions, machine, seed and date of an audit that begins now, and the identity of its code and data."""
    source = source or Source()
    return Provenance(
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seed=seed,
        mechanism=mechanism,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        packages={"dpaudit": __version__} | {name: found for name in _PACKAGES if (found := _version(name))},
        mechanism_packages=_used_first(source) or None,
        mechanism_hashes=dict(source.hashes) or None,
        mechanism_file=None if source.file is None else SourceFile(path=str(source.file), sha256=source.sha256),
        mechanism_modules=dict(source.modules) or None,
        identity=None if identity is None else public(identity),
    )


def _used_first(source: Source) -> dict[str, str]:
    """Return the versions of packages: those that the mechanism names, then those for data, then dependencies."""
    from packaging.utils import canonicalize_name

    def rank(package: tuple[str, str]) -> tuple[bool, bool]:
        name = canonicalize_name(package[0])
        return name not in source.used, name in _FOR_DATA

    return dict(sorted(source.packages.items(), key=rank))


def with_costs(provenance: Provenance, collector: Collector, *, second_stage_trials: int) -> Provenance:
    """Add the costs of a finished audit and the fingerprints of its outputs."""
    seconds: dict[str, float] = {}
    for learner in collector.learners:
        for index, spent in learner.seconds.items():
            name = learner.attacks[index].name
            seconds[name] = round(seconds.get(name, 0.0) + spent, 3)
    return replace(
        provenance,
        outputs=str(collector.outputs_fingerprint),
        first_outputs=tuple(collector.beginning.fingerprints()),
        attack_seconds=seconds,
        runs_after_evidence=collector.observed or None,
        running_times=collector.sampler.clock or None,
        second_stage_trials=second_stage_trials or None,
    )


@cache
def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def training_words(mechanism: object) -> str:
    """Return how a mechanism describes its training in its optional attribute `training_words`; "" if it has none."""
    words: Any = getattr(mechanism, "training_words", "")
    return words if isinstance(words, str) else ""


def with_training(result: AuditResult, mechanism: object, pairs: Sequence[Pair]) -> AuditResult:
    """Add the record of the training that a mechanism describes, and the warnings of its method `doubts`."""
    words = training_words(mechanism)
    if not words:
        return result
    counted = result.evidence.histograms
    most = int(np.argmax([counts.sum() for counts in counted])) if counted else 0
    edges, out, into = histograms(*(np.repeat(CENTRES, side) for side in counted[most])) if counted else ((), (), ())
    record = TrainingRecord(
        design="sequential" if result.evidence.kind.anytime else "fixed",
        training=words,
        canary=result.pairs[most].label if most < len(result.pairs) else "",
        edges=edges,
        out=out,
        into=into,
    )
    ask: Any = getattr(mechanism, "doubts", None)
    found = [f"{words} (pair {pair})" for pair in pairs for words in ask(pair.d0, pair.d1)] if callable(ask) else []
    return replace(result, training=record, warnings=(*found, *result.warnings))
