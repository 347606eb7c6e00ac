"""Defines the sentences of reports that depend on the kind of audit.

Each kind of evidence has an instance of `Words`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpaudit.claims import TradeoffFunction
from dpaudit.result.base_evidence import Evidence, Kind


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
    each: str = ""  # how each of these objects was selected
    guessing: str = ""  # how these guesses are made


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

_OF_PAIRS = {
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

_OF_BETS = Words(
    principle=(
        "A claim is a trade-off function $f$: no attack with type I error $α$ has a type II error below $f(α)$ (Dong, "
        "Roth & Su 2022). A trial runs the mechanism once on each dataset. A score, learned from "
        "earlier trials only, estimates how much likelier an output is under d1 than under d0. Bets on thresholds of "
        "this score are priced by the claim's privacy profile, so that they win nothing on average under a true "
        "claim. The wealth $E$ is then a nonnegative supermartingale, and the probability that it ever reaches "
        "$1/s$ is at most $s$ (Ville 1939). So the audit may stop after any trial. "
        "The bets maximize the growth of the wealth against a range of violations (Grünwald, de Heide & Koolen 2024). "
        "The same bets test every claim, and only their prices differ, so verdict and bounds hold together. After half "
        "of the trials, all wealth may be put on one bet at a time, chosen from earlier trials to reach $1/s$ before "
        "the last trial (Clerico et al. 2026). Nothing is "
        "assumed about the noise. Trials must be independent of each other."
    ),
    references=(
        DONG,
        "Ville, J. (1939). Étude critique de la notion de collectif. Gauthier-Villars, Paris.",
        "Grünwald, P., de Heide, R. & Koolen, W. (2024). Safe testing. J. R. Stat. Soc. B 86(5), 1091–1128.",
        "Clerico, E., Wegel, T., Azangulov, I. & Rebeschini, P. (2026). arXiv:2605.06521.",
    ),
    proof="the evidence of all runs",
    **_OF_PAIRS,
)
_OF_STREAMS = Words(
    principle=(
        "A claim is a trade-off function $f$: no attack with type I error $α$ has a type II error below $f(α)$ (Dong, "
        "Roth & Su 2022). Before each step a fair coin chose the dataset, and the mechanism ran once, on that dataset. "
        "A score, learned from earlier steps only, estimates how much likelier the output is under d1 than under d0. "
        "Bets on thresholds of this score are priced by the claim's privacy profile, so that under a true claim no "
        "step is expected to win. The wealth $E$ is then a nonnegative supermartingale, and the probability that it "
        "ever reaches $1/s$ is at most $s$ (Ville 1939). The claim is about each step given the past: the mechanism "
        "may keep a state, drift, and adapt to all earlier steps. The only assumption is that the mechanism learns "
        "about the coins through the chosen datasets alone."
    ),
    references=(
        DONG,
        "Ville, J. (1939). Étude critique de la notion de collectif. Gauthier-Villars, Paris.",
        "Grünwald, P., de Heide, R. & Koolen, W. (2024). Safe testing. J. R. Stat. Soc. B 86(5), 1091–1128.",
    ),
    proof="the evidence of all runs",
    went_on="the bounds come from the interim analysis with the most evidence",
    again="A stream has no fixed region to count on fresh outputs. To repeat it, make a new stream with new coins.",
    violates="Some step of the stream, given all earlier steps, does not keep the claim",
    claimed="for each step",
    somewhere="for some step",
    spent="{steps} steps",
    data="Each step ran on d0 or on d1, as a fair coin chose",
    **_OF_PAIRS
    | {
        "untried": "Other datasets and other attacks: only the two datasets and the attacks of this stream were tried.",
        "others": "other datasets or attacks",
        "more": "make more steps, or use a score that differs more between the two datasets",
    },
)
_OF_FIXED_RUNS = Words(
    principle=(
        "A claim is a trade-off function $f$: no attack with type I error $α$ has a type II error below $f(α)$ (Dong, "
        "Roth & Su 2022). A pair of datasets, a score and a rejection region were chosen on the first runs and then "
        "frozen. On the other runs, the two kinds of errors are independent binomial counts. The p-value is the "
        "largest probability of counts that contradict the claim at least as strongly as the observed counts. The "
        "largest value is taken over a confidence interval of the type I error and is corrected for the error "
        "probability of this interval. The test is exact (Berger & Boos 1994). It assumes nothing about the noise. It "
        "does assume that runs are independent of each other and that their number was fixed beforehand."
    ),
    references=(
        DONG,
        "Berger, R. & Boos, D. (1994). P values maximized over a confidence set for the nuisance parameter. "
        "J. Am. Stat. Assoc. 89, 1012–1016.",
    ),
    proof="the exact test of the witness's fresh counts",
    **_OF_PAIRS,
)

CANARIES_ASSUMED = (
    "given which canaries were included, the scores of different canaries are independent of each other, and each "
    "depends on the inclusion of its own canary only"
)
"""The assumption of `independence="canaries"`.

One run cannot show a state that all of its canaries share; see `scores.dependence` and `scores.exchangeability`.
"""

RUNS_ASSUMED = "runs are independent of each other"
"""The assumption about several runs.  Their scores alone cannot test this assumption."""

_SORTED = (
    "All scores are sorted, and the higher ones are guessed to be of {high}. The test compares the right guesses in "
    "each range of ranks with those that the claim allows: a fixed mixture of likelihood ratios says how much each "
    "range counts. The p-value bounds the probability of a mixture at least this large, {worst}. At very high "
    "confidence, only the number of right guesses is tested. "
)
_ERRORS = (
    "An attack that decides by its score whether a canary was included makes two kinds of errors. $α$ is the rate at "
    "which it calls excluded canaries included, and $β$ the rate at which it calls included canaries excluded."
)
_HOLLANDER = (
    "Hollander, M., Proschan, F. & Sethuraman, J. (1977). Functions decreasing in transposition and their applications "
    "in ranking problems. Ann. Stat. 5(4), 722–733."
)
_GUESSING = (
    "The highest scores are guessed to be of {high}, as many as there are. The test also uses the order of the scores."
)

_OF_RUNS = Words(
    principle=(
        "Each score comes from a separate run. "
        + _SORTED.format(high="d1", worst="over all mechanisms with trade-off function $f$ or above").rstrip()
    ),
    references=(DONG, _HOLLANDER),
    errors=(
        "An attack that decides by its score which dataset a run was on makes two kinds of errors. $α$ is the rate at "
        "which it guesses d1 for runs on d0, and $β$ the rate at which it guesses d0 for runs on d1."
    ),
    no_band=(
        "Blue: the errors observed over all runs. The audit certifies no bound on the curve, so chance can carry the "
        "observed errors into the grey area."
    ),
    proof="the order of the scores",
    untried="Other datasets and other scores: only the given datasets and scores were tried.",
    others="other datasets or scores",
    again="To repeat it, make new runs with fresh randomness, score them, and audit the scores.",
    assumption=RUNS_ASSUMED,
    more="audit more runs, such as more trained models, or scores that tell the datasets apart better",
    unit="scores",
    each="each from a separate run",
    guessing=_GUESSING.format(high="d1"),
)
_OF_CANARIES = Words(
    principle=(
        _SORTED.format(high="included canaries", worst="over all mechanisms with trade-off function $f$ or above")
        + "This needs canaries that were included by coins or by one random set, and scores that are then independent."
    ),
    references=(DONG, _HOLLANDER),
    errors=_ERRORS,
    no_band=(
        "Blue: the errors observed over all canaries. The audit certifies no bound on the curve, so chance can carry "
        "the observed errors into the grey area."
    ),
    proof="the order of the scores, if canaries are independent",
    untried="Other canaries and other scores: only the given canaries and scores were tried.",
    others="other canaries or scores",
    again="To repeat it, make a new run with new coins, and audit it.",
    assumption=CANARIES_ASSUMED,
    spent="{runs} with {canaries} canaries",
    each="each included at random",
    guessing=_GUESSING.format(high="included canaries"),
)
_OF_ANY_CANARIES = replace(
    _OF_CANARIES,
    principle=(
        _SORTED.format(high="included canaries", worst="however canaries depend on each other")
        + "Curved claims are tested by the number of right guesses about the most extreme scores (Steinke, Nasr & "
        "Jagielski 2023; Mahloujifar, Melis & Chaudhuri 2024). If a fixed number of canaries was included, p-values "
        "are divided by the probability with which coins include this number."
    ),
    references=(
        "Steinke, T., Nasr, M. & Jagielski, M. (2023). Privacy auditing with one (1) training run. NeurIPS 36.",
        "Mahloujifar, S., Melis, L. & Chaudhuri, K. (2024). Auditing f-differential privacy in one run. "
        "arXiv:2410.22235.",
    ),
    proof="the order of the scores",
    assumption="",
)

_WORDS = {
    Kind.SEQUENTIAL: _OF_BETS,
    Kind.ONLINE: _OF_STREAMS,
    Kind.FIXED: _OF_FIXED_RUNS,
    Kind.RUNS: _OF_RUNS,
    Kind.CANARIES: _OF_CANARIES,
    Kind.INCLUSION: _OF_ANY_CANARIES,
}


def words_of(evidence: Evidence) -> Words:
    """Return the sentences of reports about a kind of evidence."""
    return _WORDS[evidence.kind]
