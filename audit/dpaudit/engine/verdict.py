"""The rule that derives the verdict from the facts of an audit.

This module makes no runs and computes no numbers.  `engine.build_result`, `engine.scores`
and `engine.online` collect the facts.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.result.values import StoppedBy, Verdict
from dpaudit.text import Reason, WarningCode


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

    The bounds are valid unless one of the first two rows applies, or the counts are not `complete`.

    `stopped_by` states what ended the trials.  If the evidence reached its threshold and so ended them, the value is
    "evidence".  But if one of the first two rows overrules that evidence, the value is "dependence".
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
    for reasons in (unclaimed, facts.unseen, facts.ignored, *missed):
        if reasons:
            return Verdict.INCONCLUSIVE, reasons
    return Verdict.NO_VIOLATION, ()


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
