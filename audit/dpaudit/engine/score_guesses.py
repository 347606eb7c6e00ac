"""Guesses by scores, and the number of right ones: all that a verdict on scores depends on."""

from __future__ import annotations

from typing import Literal

import numpy as np

from dpaudit.inference.guesses import guess
from dpaudit.inference.scores import confident, runs, several
from dpaudit.numerics.arrays import Array
from dpaudit.result.evidence import CanaryScoresEvidence, OneRunScoresEvidence, RunScoresEvidence
from dpaudit.result.values import Counts

Independence = Literal["runs", "canaries"] | None
ScoresEvidence = RunScoresEvidence | CanaryScoresEvidence | OneRunScoresEvidence


def count_guesses(
    scores0: Array,
    scores1: Array,
    independence: Independence,
    guesses: int | None,
    rng: np.random.Generator,
    *,
    half: bool = False,
) -> tuple[ScoresEvidence, Counts]:
    """Guess by scores which runs were on d1, or which canaries were included, and count the right guesses.

    The p-value depends on the scores only through this count.  Equal scores are put in a random order.

    Args:
        scores0: Scores of runs on d0, or of canaries that were left out, (n0,); no NaN.
        scores1: Scores of runs on d1, or of canaries that were included, (n1,).
        independence: As in `audit_scores`.
        guesses: The number of guesses, chosen before the scores are seen; a default by the number of scores if None.
        rng: Generator of the order of equal scores.
        half: Whether half of all canaries were included, also of those learned from; see `dependence.number_factor`.

    Returns:
        The evidence, and the guesses counted by side.
    """
    n0, n1 = len(scores0), len(scores1)
    if independence == "runs":
        r = runs.default_cut(n0, n1) if guesses is None else guesses
        k = runs.count_high(scores0, scores1, r, rng=rng)
        counts = Counts(false_positives=r - k, n0=n0, false_negatives=n1 - k, n1=n1)
        return RunScoresEvidence(n0=n0, n1=n1, guesses=r, right=k), counts
    m = n0 + n1
    kind, default = (
        (CanaryScoresEvidence, confident.default_confident)
        if independence == "canaries"
        else (OneRunScoresEvidence, several.default_guesses)
    )
    order = rng.permutation(m)  # else the place of a canary would tell `guess` its coin
    answers = guess(np.concatenate([scores0, scores1])[order], default(m) if guesses is None else guesses)
    included = order >= n0
    out, into = answers[~included], answers[included]
    counts = Counts(
        false_positives=int((out == 1).sum()),
        n0=int((out != 0).sum()),
        false_negatives=int((into == -1).sum()),
        n1=int((into != 0).sum()),
    )
    right = counts.n0 - counts.false_positives + counts.n1 - counts.false_negatives
    return kind(m=m, included=n1, half=int(half), guesses=counts.n0 + counts.n1, right=right), counts
