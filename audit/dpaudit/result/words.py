"""Defines the sentences of reports that depend on the kind of audit.

Each class of evidence has an instance of `Words`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpaudit.claims import TradeoffFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The sentences of a report that depend on the kind of audit.

    Text between two dollar signs is mathematics, such as `$f(α)$`.  Dollar signs are not used for any other purpose.
    """

    principle: str  # how the verdict was reached, and why it is valid
    references: tuple[str, ...]
    errors: str  # definition of the two errors of an attack
    no_band: str  # meaning of the observed curve if the audit certifies no confidence band
    proof: str  # noun phrase for what proves a violation, such as "the evidence of all runs"
    untried: str  # sentence about datasets, attacks, canaries or scores that were not tried
    others: str  # noun phrase for the same, such as "other pairs or attacks"
    again: str = ""  # reason why no rejection region can be counted on fresh outputs; "" if a region can be counted
    assumption: str = ""  # untestable assumption of the audit, shown with every verdict; "" if there is none
    # origin of the bounds if trials continued after a refutation
    went_on: str = "the bounds are from the end of the audit"
    # statement that a refutation proves, to be followed by the claim
    violates: str = "The mechanism does not keep the claim"
    claimed: str = ""  # words after the claim, such as "for each step"; "" if the claim is about the whole mechanism
    somewhere: str = ""  # words after a bound, such as "for some step"; "" if it is about the whole mechanism
    spent: str = "{runs} per dataset"  # number of runs in words; `spent` fills in {runs}, {steps} and {canaries}
    data: str = ""  # description of how each dataset was selected, if the audited pair has no text
    # advice on how to detect smaller violations
    more: str = "audit more canaries or runs, or canaries that are easier to recognise"
    unit: str = "canaries"  # objects that guesses are about
    each: str = "each included by an independent fair coin"  # how each of these objects was selected
    guesses: str = "guesses"  # what numbers of guesses count; "weighted guesses" if they are total weights
    guessing: str = (
        "Guesses are made for the canaries with the most extreme scores and for no others. The share of right guesses "
        "cannot be compared with the two errors over all canaries, which the claim's curve limits."
    )


def quotation(words: str) -> str:
    """Return foreign words in quotation marks."""
    plain = words.replace("“", '"').replace("”", '"')
    return f"“{plain}”"


def if_curve(violation: TradeoffFunction, place: str = "") -> str:
    """Return the assumption behind a detectable violation: the mechanism's curve equals the curve of the violation.

    Among all mechanisms with the same parameter, a mechanism with this curve is the easiest to refute.
    """
    return f"if the mechanism's trade-off curve{f' {place}' if place else ''} is that of {violation}"


DONG = "Dong, J., Roth, A. & Su, W. J. (2022). Gaussian differential privacy. J. R. Stat. Soc. B 84(1), 3–37."

OF_PAIRS = {
    "errors": (
        "An attack that guesses the dataset from one output makes two kinds of errors. $α$ is the rate at which it "
        "guesses d1 on outputs of d0, and $β$ the rate at which it guesses d0 on outputs of d1."
    ),
    "no_band": (
        "Blue: the attack's observed errors, which chance can carry into the grey area. The audit certifies no "
        "bound on the curve."
    ),
    "untried": (
        "Other datasets and other attacks: a claim is about all neighbours, but only the pairs and attacks of this "
        "audit were tried."
    ),
    "others": "other pairs or attacks",
    "more": "",  # reports on pairs give advice that is based on the config
}
"""Sentences about audits of pairs of datasets."""

CANARIES_ASSUMED = (
    "given the coins, the scores of different canaries are independent of each other, and each depends on its own coin "
    "only"
)
"""The assumption of `independence="canaries"`.

One run cannot show a state that all of its canaries share; see `scores.dependence` and `scores.exchangeability`.
"""

_COINS = "For each canary, a separate fair coin decided whether it was included in the data. "
_ERRORS = (
    "An attack that decides by its score whether a canary was included makes two kinds of errors. $α$ is the rate at "
    "which it calls excluded canaries included, and $β$ the rate at which it calls included canaries excluded."
)
_STEINKE = "Steinke, T., Nasr, M. & Jagielski, M. (2023). Privacy auditing with one (1) training run. NeurIPS 36."
RUNS_ASSUMED = "runs are independent of each other"
"""The assumption about several runs.  Their scores alone cannot test this assumption."""

OF_RUNS = Words(
    principle=(
        "Each score comes from a separate run. All scores are ranked together, and the runs on d1 among the highest "
        "scores are counted. How many scores count as high was fixed before the scores were seen. The p-value is the "
        "maximum probability of at least this many runs on d1, over all mechanisms with trade-off function $f$ or "
        "above. If runs are independent, the p-value is exact for every claim."
    ),
    references=(
        DONG,
        "Hollander, M., Proschan, F. & Sethuraman, J. (1977). Functions decreasing in transposition and their "
        "applications in ranking problems. Ann. Stat. 5(4), 722–733.",
    ),
    errors=(
        "An attack that decides by its score which dataset a run was on makes two kinds of errors. $α$ is the rate at "
        "which it guesses d1 for runs on d0, and $β$ the rate at which it guesses d0 for runs on d1."
    ),
    no_band=(
        "Blue: the errors observed over all runs. The audit certifies no bound on the curve, so chance can carry the "
        "observed errors into the grey area."
    ),
    proof="the number of high scores that are of d1",
    untried="Other datasets and other scores: only the given datasets and scores were tried.",
    others="other datasets or scores",
    again="To repeat it, make new runs with fresh randomness, score them, and audit the scores.",
    assumption=RUNS_ASSUMED,
    more="audit more runs, such as more trained models, or scores that tell the datasets apart better",
    unit="scores",
    each="each from a separate run",
    guessing=(
        "The highest scores are guessed to be of d1. How many scores count as high was fixed beforehand and does not "
        "depend on the scores."
    ),
)
OF_CANARIES = Words(
    principle=(
        _COINS + "For the canaries with the most extreme scores, it was guessed whether they were included; the number "
        "of guesses was fixed beforehand. Given the coins, the scores of different canaries are assumed to be "
        "independent. Then the number of wrong guesses is stochastically at least the number for the most "
        "distinguishable pair with trade-off function $f$. The p-value is the probability of at most this many wrong "
        "guesses for this pair (Xiang et al. 2025, for Gaussian scores)."
    ),
    references=(
        DONG,
        "Xiang, Z. et al. (2025). Tight privacy audit in one run. arXiv:2509.08704.",
    ),
    errors=_ERRORS,
    no_band=(
        "Blue: the errors observed over all canaries. The audit certifies no bound on the curve, so chance can carry "
        "the observed errors into the grey area."
    ),
    proof="the number of right guesses, if canaries are independent",
    untried="Other canaries and other scores: only the given canaries and scores were tried.",
    others="other canaries or scores",
    again="To repeat it, make a new run with new coins, and audit it.",
    assumption=CANARIES_ASSUMED,
)
OF_CANARY_LEVELS = replace(
    OF_CANARIES,
    principle=(
        _COINS + "For every canary it was guessed whether it was included. Guesses about the canaries with the most "
        "extreme scores count five times, guesses about the next canaries three times, and the others once. The "
        "numbers of canaries in these levels were fixed beforehand. Given the coins, the scores of different canaries "
        "are assumed to be independent. Then the total weight of wrong guesses is stochastically at least that for "
        "the most distinguishable pair with trade-off function $f$. The p-value is the probability of at most this "
        "weight for this pair (following Xiang et al. 2025)."
    ),
    proof="the weighted number of right guesses, if canaries are independent",
    guesses="weighted guesses",
    guessing=(
        "Guesses are made for all canaries. A guess counts 5, 3 or 1 times, depending on how extreme the canary's "
        "score is among all scores. The share of right guesses cannot be compared with the two errors, which the "
        "claim's curve limits."
    ),
)
OF_ANY_CANARIES = replace(
    OF_CANARIES,
    principle=(
        _COINS + "For the canaries with the most extreme scores, it was guessed whether they were included; the number "
        "of guesses was fixed beforehand. The p-value bounds the probability of at least this many right guesses under "
        "the claim, however canaries depend on each other (Steinke, Nasr & Jagielski 2023; Mahloujifar, Melis & "
        "Chaudhuri 2024; sharpened by a linear program)."
    ),
    references=(
        _STEINKE,
        "Mahloujifar, S., Melis, L. & Chaudhuri, K. (2024). Auditing f-differential privacy in one run. "
        "arXiv:2410.22235.",
    ),
    no_band=(
        "Blue: the errors observed over all canaries. One run certifies no bound on the curve, so chance can carry the "
        "observed errors into the grey area."
    ),
    proof="the number of right guesses",
    assumption="",
)
OF_WEIGHTED_CANARIES = replace(
    OF_ANY_CANARIES,
    principle=(
        _COINS + "For the canaries with the most extreme scores, it was guessed whether they were included. Several "
        "numbers of guesses were fixed beforehand, and the right guesses of all numbers are added up. The p-value "
        "bounds the probability of at least this total under the claim, however canaries depend on each other, by a "
        "linear program (following Steinke, Nasr & Jagielski 2023; Mahloujifar, Melis & Chaudhuri 2024)."
    ),
    proof="the total number of right guesses",
)

DRAWN_ASSUMED = (
    "given which canaries were included, the scores of different canaries are independent of each other, and each "
    "depends on the inclusion of its own canary only"
)
"""The assumption of `independence="canaries"` if a fixed number of canaries was included."""

_DRAWN = "A fixed number of canaries was included in the data, and all sets of this size were equally likely. "
_ONE_OF_ALL = "from a set in which a fixed number was included at random"
OF_DRAWN_CANARIES = replace(
    OF_CANARIES,
    principle=(
        _DRAWN + "All scores are ranked together, and the included canaries among the highest scores are counted. How "
        "many scores count as high was fixed before the scores were seen. Given which canaries were included, the "
        "scores of different canaries are assumed to be independent. Then the p-value is the maximum probability of at "
        "least this many included canaries, over all mechanisms with trade-off function $f$ or above."
    ),
    references=OF_RUNS.references,
    assumption=DRAWN_ASSUMED,
    each=_ONE_OF_ALL,
    guessing=(
        "The highest scores are guessed to be of included canaries. How many scores count as high was fixed "
        "beforehand and does not depend on the scores."
    ),
)
OF_ANY_DRAWN_CANARIES = replace(
    OF_ANY_CANARIES,
    principle=(
        _DRAWN + "For the canaries with the most extreme scores on one side, it was guessed whether they were "
        "included; the number of guesses was fixed beforehand. The p-value bounds the probability of at least this "
        "many right guesses under the claim, however canaries depend on each other. The p-value is the bound for "
        "independent coins with the same share of included canaries, divided by the probability that these coins "
        "include exactly this number."
    ),
    each=_ONE_OF_ALL,
)
_RUNS_OF_CANARIES = (
    "Runs are independent of each other; the canaries of one run may depend on each other in any way. In each run, "
    "the number of right guesses is stochastically at most a variable whose tail is the bound for one run. The p-value "
    "is the tail of the sum of independent variables of this kind, one for each run (Steinke, Nasr & Jagielski 2023; "
    "Mahloujifar, Melis & Chaudhuri 2024)."
)
_AGAIN_IN_RUNS = "To repeat it, make new runs with new coins, and audit them."
_IN_RUNS = "{runs} with {canaries} canaries"
OF_CANARIES_IN_RUNS = replace(
    OF_CANARIES,
    principle=OF_CANARIES.principle.replace(
        "the scores of different canaries are assumed", "the scores of different canaries, also of one run, are assumed"
    ),
    again=_AGAIN_IN_RUNS,
    spent=_IN_RUNS,
)
OF_SEVERAL_RUNS = replace(
    OF_ANY_CANARIES, principle=_COINS + _RUNS_OF_CANARIES, again=_AGAIN_IN_RUNS, assumption=RUNS_ASSUMED, spent=_IN_RUNS
)
OF_SEVERAL_DRAWN_RUNS = replace(
    OF_ANY_DRAWN_CANARIES,
    principle=_DRAWN.replace("A fixed", "In each run, a fixed") + _RUNS_OF_CANARIES,
    again=_AGAIN_IN_RUNS,
    assumption=RUNS_ASSUMED,
    spent=_IN_RUNS,
)
