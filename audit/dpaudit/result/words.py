"""The words of messages and reports that depend on the kind of audit: each kind of evidence has its own `Words`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpaudit.claims import TradeoffFunction
from dpaudit.result.base_evidence import Evidence, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of messages and reports that depend on the kind of audit, with mathematics between dollars."""

    sees: str = "one output"  # what an attacker sees
    reveals: str = "the two datasets apart"  # what an attacker can tell from it
    errors: str = "$α$: d1 is guessed on outputs of d0; $β$: d0 is guessed on outputs of d1."  # of an attack
    others: str = "other pairs or attacks"  # what was not tried
    again: str = ""  # how to repeat the audit if no rejection region can be counted on fresh outputs; "" if one can
    assumption: str = ""  # untestable assumption of the audit, shown with every verdict; "" if there is none
    went_on: str = "the bounds are from the end of the audit"  # origin of the bounds after a refutation
    claimed: str = ""  # words after the claim, such as "for each step"; "" if the claim is about the whole mechanism
    somewhere: str = ""  # words after a bound, such as "for some step"; "" if it is about the whole mechanism
    spent: str = "{runs} per dataset"  # number of runs in words; `spent` fills in {runs}, {steps} and {canaries}
    data: str = ""  # how each dataset was selected, if the audited pair has no text
    more: str = ""  # how to see smaller violations; "" if more pairs and runs do
    unit: str = "canaries"  # objects that guesses are about
    each: str = ""  # how each of these objects was selected


def quotation(words: str) -> str:
    """Return foreign words in quotation marks."""
    plain = words.replace("“", '"').replace("”", '"')
    return f"“{plain}”"


def if_curve(violation: TradeoffFunction, place: str = "") -> str:
    """Return the assumption behind a detectable violation: the curve is the violation's, the easiest one to refute."""
    return f"if the mechanism's trade-off curve{f' {place}' if place else ''} is that of {violation}"


CANARIES_ASSUMED = (
    "given which canaries were included, the scores of different canaries are independent of each other, and each "
    "depends on the inclusion of its own canary only"
)
"""The assumption of `independence="canaries"`.

One run cannot show a state that all of its canaries share; see `inference.scores.exchangeability`.
"""

RUNS_ASSUMED = "runs are independent of each other"
"""The assumption about several runs.  Their scores alone cannot test this assumption."""

_OF_PAIRS = Words()
_OF_STREAMS = Words(
    sees="the outputs of the steps",
    reveals="which dataset a step used",
    others="other datasets or attacks",
    again="Make a new stream with new coins: a stream has no fixed region to count on fresh outputs.",
    went_on="the bounds come from the interim analysis with the most evidence",
    claimed="for each step",
    somewhere="for some step",
    spent="{steps} steps",
    data="Each step ran on one of two datasets, as a fair coin chose",
    more="make more steps, or use a score that differs more between the two datasets",
)
_OF_RUNS = Words(
    sees="the score of a run",
    reveals="which dataset the run used",
    errors="$α$: d1 is guessed for runs on d0; $β$: d0 is guessed for runs on d1.",
    others="other datasets or scores",
    again="Make new runs with fresh randomness, score them, and audit the scores.",
    assumption=RUNS_ASSUMED,
    more="audit more runs, such as more trained models, or scores that tell the datasets apart better",
    unit="scores",
    each="each from a separate run",
)
_OF_CANARIES = Words(
    sees="the scores",
    reveals="which canaries were included",
    errors="$α$: an excluded canary is called included; $β$: an included canary is called excluded.",
    others="other canaries or scores",
    again="Make a new run with new coins, and audit it.",
    assumption=CANARIES_ASSUMED,
    spent="{runs} with {canaries} canaries",
    more="audit more canaries or runs, or canaries that are easier to recognise",
    each="each included at random",
)

_WORDS = {
    Kind.SEQUENTIAL: _OF_PAIRS,
    Kind.ONLINE: _OF_STREAMS,
    Kind.FIXED: _OF_PAIRS,
    Kind.RUNS: _OF_RUNS,
    Kind.CANARIES: _OF_CANARIES,
    Kind.INCLUSION: replace(_OF_CANARIES, assumption=""),
}


def words_of(evidence: Evidence) -> Words:
    """Return the words of messages and reports about a kind of evidence."""
    return _WORDS[evidence.kind]
