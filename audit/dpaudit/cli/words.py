"""`dpaudit help words` explains the words of results."""

from __future__ import annotations

from dpaudit.cli.terminal import show

WORDS = {
    "violation": "the claim is false: the attack told the two datasets apart more reliably than the claim allows",
    "no violation": "the runs of this audit did not refute the claim; this is no proof of it",
    "inconclusive": "the audit can neither refute the claim nor say what it would have seen",
    "proven": "a lower bound on the privacy loss (ε or μ), which holds with the confidence of the audit",
    "claimed": "the upper bound that the claim states",
    "would have seen": "this loss would have been found with 90 % probability, with an optimal attack and a mechanism "
    "whose trade-off curve is that of the claim with the larger parameter",
    "could not see much": "no attack beat guessing, or less than a third of the claim is proven",
    "size": "how large the loss is; an audit that stops at its first proof proves little more than the claim",
    "confirmed": "fresh runs in new processes refute the claim by themselves",
    "runs": "number of runs of the mechanism on each of the two datasets",
    "confidence": "a true claim is refuted with probability at most 1 - confidence, whenever the audit stops",
    "p-value": "the confidence with which the claim is refuted is 1 - p",
    "pair": "two datasets that are neighbours under the claim: they differ in one record",
}


def words() -> None:
    """Explain the words of results; also: dpaudit help words."""
    for word, meaning in WORDS.items():
        show(f"{word}\n    {meaning}")
