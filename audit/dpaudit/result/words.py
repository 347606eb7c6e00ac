"""What reports say about one way to audit.  Each class of evidence brings its own words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The sentences of a report that depend on how the audit was made.

    Text between two dollar signs is mathematics, such as `$f(α)$`; there are no other dollar signs.
    """

    principle: str  # how the verdict was reached and why it is valid
    references: tuple[str, ...]
    errors: str  # what the two errors of an attack are
    no_band: str  # what the observed curve is worth where the audit does not bound it
    proof: str  # what a violation rests on
    untried: str  # what the audit did not try
    others: str  # what a violation says nothing about
    again: str = ""  # why no region can be counted again on fresh outputs; "" if one can
    assumption: str = ""  # what is assumed beyond the setting and cannot be tested; shown beside every verdict
    unit: str = "canaries"  # what guesses are about
    each: str = "each included by a coin of its own"  # what is known of every one of them
    guessing: str = (
        "Guesses are made for the canaries with the most extreme scores and for no others. How many of them are "
        "right cannot be compared with the two errors over all canaries, which the claim's curve limits."
    )


DONG = "Dong, J., Roth, A. & Su, W. J. (2022). Gaussian differential privacy. J. R. Stat. Soc. B 84(1), 3–37."

OF_PAIRS = {
    "errors": (
        "An attack that tells the two datasets apart by one output errs in two ways: $α$ is how often it says d1 on an "
        "output of d0, $β$ how often it says d0 on one of d1."
    ),
    "no_band": (
        "Blue: the attack's observed errors, which chance can carry into the grey. The curve itself is not bounded."
    ),
    "untried": (
        "Other datasets and other attacks: a claim is about all neighbours, and only the pairs and attacks of this "
        "audit were tried."
    ),
    "others": "other pairs or attacks",
}
"""Words of every audit that tells the datasets of a pair apart."""
