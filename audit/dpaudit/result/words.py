"""Defines the sentences of reports that depend on the kind of audit.

Each class of evidence has an instance of `Words`.
"""

from __future__ import annotations

from dataclasses import dataclass

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
