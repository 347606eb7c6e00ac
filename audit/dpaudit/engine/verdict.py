"""The rule that gives the verdict: from the facts of an audit to what is said of the claim.

No run is made here and no number is computed.  `engine.build_result` and `engine.one_run` collect the facts.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.result.values import StoppedBy, Verdict
from dpaudit.text.reasons import About, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of an audit when it ends.  Texts and tuples are empty where there is nothing to say."""

    fixed: bool  # whether the number of trials was fixed beforehand and their counts are tested once
    trials: int  # runs per dataset that were made
    allowed: int  # runs per dataset that could have been made
    refuted: bool  # whether the counts, taken as valid, refute the claim at the audit's confidence
    measured: bool = False  # whether trials go on after the claim has been refuted
    interrupted: bool = False  # by the user
    failure: str = ""  # what the mechanism did that ended the audit
    void: bool = False  # whether an attack made the scores worthless; `dependent` then holds the reason
    dropped: tuple[str, ...] = ()  # failures that ended the trials of one pair while others went on
    dependent: tuple[str, ...] = ()  # why no guarantee holds: dependent runs, or void scores
    doubts: tuple[str, ...] = ()  # why the outputs prove nothing: constant, duplicated or kept by the mechanism
    hints: tuple[str, ...] = ()  # what a violation may come from
    unseen: tuple[str, ...] = ()  # pairs that the audit could not look at to the end
    too_few: str = ""  # why no violation in the claim's own family would have been seen
    detect_missed: str = ""  # why the violation asked for by `detect` would not have been seen
    unclaimed: str = ""  # why there is nothing to refute: no claim was given
    notes: tuple[str, ...] = ()  # found before the first run, and by the attacks
    side_effects: tuple[str, ...] = ()  # what the mechanism did besides giving outputs

    def __post_init__(self) -> None:
        if self.void and not self.dependent:
            raise AssertionError("void scores must give their reason in `dependent`")

    @property
    def ended(self) -> StoppedBy:
        """What ended the trials, apart from the evidence."""
        if self.interrupted:
            return "interruption"
        return "failure" if self.failure or self.void else "trials"

    @property
    def complete(self) -> bool:
        """Whether the counts may be tested.  A fixed number of trials must have been made; else any number will do."""
        return self.ended == "trials" if self.fixed else self.trials > 0

    @property
    def accused(self) -> bool:
        """Whether a violation is about to be reported, unless the outputs raise `doubts`."""
        return self.refuted and self.complete and not self.dependent


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What follows from the facts."""

    verdict: Verdict
    bounds_valid: bool  # whether p-value and bounds hold; if not, p-value 1 and bounds 0 are reported
    stopped_by: StoppedBy
    reasons: tuple[str, ...]  # for the warnings of the result; the reason of an inconclusive verdict is the last one


def ruling(facts: Facts) -> Ruling:
    """Give the verdict.  The first row that applies decides:

    | fact                                                       | verdict            | last of the reasons |
    |------------------------------------------------------------|--------------------|---------------------|
    | runs depend on each other, or scores are void              | INCONCLUSIVE       | `dependent`         |
    | outputs that never vary, or were kept                      | INCONCLUSIVE       | `doubts`            |
    | the claim is refuted; if `fixed`, all trials were made     | VIOLATION          | `hints`             |
    | a failure or an interruption ended the trials              | INCONCLUSIVE       | what happened       |
    | no claim was given                                         | INCONCLUSIVE       | `unclaimed`         |
    | a pair was not looked at to the end                        | INCONCLUSIVE       | `unseen`            |
    | no violation of the claim would have been seen             | INCONCLUSIVE       | `too_few`           |
    | the violation asked for would not have been seen           | INCONCLUSIVE       | `detect_missed`     |
    | none of these                                              | NO_VIOLATION       |                     |

    An audit is certified unless one of the first two rows applies, or its counts are not `complete`.

    An audit with a fixed number of trials was stopped by what ended its trials.  One that may stop at any time was
    stopped by "evidence" if it reports a violation, and by "dependence" if its evidence sufficed but proves nothing.
    """
    verdict, last = _verdict(facts)
    stopped_by = facts.ended
    if facts.refuted and not facts.fixed and not facts.measured:
        stopped_by = "evidence" if verdict is Verdict.VIOLATION else "dependence"
    return Ruling(
        verdict=verdict,
        bounds_valid=facts.complete and not facts.dependent and not facts.doubts,
        stopped_by=stopped_by,
        reasons=tuple(map(Reason.of, (*_reported(facts), *last))),
    )


def _verdict(facts: Facts) -> tuple[Verdict, tuple[str, ...]]:
    """The table of `ruling`: the verdict, and the reasons that go with it."""
    if facts.dependent:
        return Verdict.INCONCLUSIVE, facts.dependent
    if facts.doubts:
        return Verdict.INCONCLUSIVE, facts.doubts
    if facts.accused:
        return Verdict.VIOLATION, facts.hints
    if facts.ended != "trials":
        return Verdict.INCONCLUSIVE, ()
    if facts.unclaimed:
        return Verdict.INCONCLUSIVE, (facts.unclaimed,)
    if facts.unseen:
        return Verdict.INCONCLUSIVE, facts.unseen
    if facts.too_few:
        return Verdict.INCONCLUSIVE, (facts.too_few,)
    if facts.detect_missed:
        return Verdict.INCONCLUSIVE, (facts.detect_missed,)
    return Verdict.NO_VIOLATION, ()


def _reported(facts: Facts) -> tuple[str, ...]:
    """What is said whatever the verdict is."""
    failures: tuple[str, ...] = ()
    if facts.failure:
        kept = f"; the {facts.trials} runs per dataset before it are kept" if facts.trials else ""
        failures = (Reason(f"{facts.failure}{kept}", About.FAILURE),)
    elif facts.dropped:
        failures = tuple(f"{failure}; the pair was dropped" for failure in facts.dropped)
    words = f"interrupted after {facts.trials} of {facts.allowed} runs per dataset"
    interrupted = Reason(words, About.INTERRUPTION)
    return (*facts.notes, *failures, *facts.side_effects, *([interrupted] if facts.interrupted else []))
