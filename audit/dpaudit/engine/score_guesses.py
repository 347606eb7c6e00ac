"""Guesses by scores, and the number of right ones: all that a verdict on scores depends on."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from dpaudit.inference.guesses import guess
from dpaudit.inference.scores import confident, fixed_number, runs, several
from dpaudit.numerics.arrays import Array
from dpaudit.result.evidence import (
    CanaryScoresEvidence,
    DrawnCanariesEvidence,
    DrawnRunEvidence,
    OneRunScoresEvidence,
    RunScoresEvidence,
    SeveralDrawnRunsEvidence,
    SeveralRunsEvidence,
)
from dpaudit.result.several_runs_evidence import of_runs
from dpaudit.result.values import Counts

Independence = Literal["runs", "canaries"] | None
Inclusion = Literal["coins", "fixed_number"]
Labels = npt.NDArray[np.intp]
ScoresEvidence = (
    RunScoresEvidence
    | CanaryScoresEvidence
    | OneRunScoresEvidence
    | DrawnCanariesEvidence
    | DrawnRunEvidence
    | SeveralRunsEvidence
    | SeveralDrawnRunsEvidence
)


def count_guesses(
    scores0: Array,
    scores1: Array,
    independence: Independence,
    guesses: int | None,
    rng: np.random.Generator,
    *,
    half: bool = False,
    inclusion: Inclusion = "coins",
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
        inclusion: How canaries were included.

    Returns:
        The evidence, and the guesses counted by side.
    """
    n0, n1 = len(scores0), len(scores1)
    drawn = inclusion == "fixed_number"
    if independence == "runs" or (drawn and independence == "canaries"):
        kind, default_cut = (
            (RunScoresEvidence, runs.default_cut(n0, n1))
            if independence == "runs"
            else (DrawnCanariesEvidence, fixed_number.default_cut(n0 + n1, n1))
        )
        r = default_cut if guesses is None else guesses
        k = runs.count_high(scores0, scores1, r, rng=rng)
        return kind(n0=n0, n1=n1, guesses=r, right=k), Counts(
            false_positives=r - k, n0=n0, false_negatives=n1 - k, n1=n1
        )
    if drawn:
        r, counts = _about_drawn(scores0, scores1, guesses, rng)
        return DrawnRunEvidence(m=n0 + n1, included=n1, guesses=r, right=_right(counts)), counts
    default = confident.default_confident if independence == "canaries" else several.default_guesses
    counts = _most_extreme(scores0, scores1, default(n0 + n1) if guesses is None else guesses, rng)
    one = CanaryScoresEvidence if independence == "canaries" else OneRunScoresEvidence
    made = counts.n0 + counts.n1
    return one(m=n0 + n1, included=n1, half=int(half), guesses=made, right=_right(counts)), counts


def count_in_runs(
    scores: tuple[Array, Array],
    labels: tuple[Labels, Labels],
    guesses: int | None,
    rng: np.random.Generator,
    inclusion: Inclusion,
) -> tuple[ScoresEvidence, Counts]:
    """Guess in each of several runs which canaries were included, and count the right guesses of all runs.

    Args:
        scores: As in `count_guesses`.
        labels: The run of every score.
        guesses: The number of guesses in each run, at most the number of its canaries.
        rng: As in `count_guesses`.
        inclusion: As in `count_guesses`.
    """
    made, counted, drawn = [], [], inclusion == "fixed_number"
    for run in np.unique(np.concatenate(labels)):
        out, into = (side[label == run] for side, label in zip(scores, labels, strict=True))
        m, most = len(out) + len(into), None if guesses is None else min(guesses, len(out) + len(into))
        if drawn:
            r, counts = _about_drawn(out, into, most, rng)
        else:
            r = several.default_guesses(m) if most is None else most
            counts = _most_extreme(out, into, r, rng)
        made.append((m, len(into), r))
        counted.append(counts)
    total = Counts(
        false_positives=sum(counts.false_positives for counts in counted),
        n0=sum(counts.n0 for counts in counted),
        false_negatives=sum(counts.false_negatives for counts in counted),
        n1=sum(counts.n1 for counts in counted),
    )
    return of_runs(made, _right(total), drawn=drawn), total


def _right(counts: Counts) -> int:
    return counts.n0 - counts.false_positives + counts.n1 - counts.false_negatives


def _most_extreme(scores0: Array, scores1: Array, r: int, rng: np.random.Generator) -> Counts:
    """Guess about the canaries with the r most extreme scores, on either side."""
    n0 = len(scores0)
    order = rng.permutation(n0 + len(scores1))  # else the place of a canary would tell `guess` its coin
    answers = guess(np.concatenate([scores0, scores1])[order], r)
    included = order >= n0
    out, into = answers[~included], answers[included]
    return Counts(
        false_positives=int((out == 1).sum()),
        n0=int((out != 0).sum()),
        false_negatives=int((into == -1).sum()),
        n1=int((into != 0).sum()),
    )


def _about_drawn(scores0: Array, scores1: Array, guesses: int | None, rng: np.random.Generator) -> tuple[int, Counts]:
    """Guess about canaries of which a fixed number was included: about both sides if it is half, else the rarer one."""
    n0, n1 = len(scores0), len(scores1)
    r = fixed_number.default_guesses(n0 + n1, n1) if guesses is None else guesses
    if fixed_number.about_both_sides(n0 + n1, n1):
        return r, _most_extreme(scores0, scores1, r, rng)
    if n1 <= n0:
        right = runs.count_high(scores0, scores1, r, rng=rng)
        return r, Counts(false_positives=r - right, n0=r - right, false_negatives=0, n1=right)
    right = runs.count_high(-scores1, -scores0, r, rng=rng)
    return r, Counts(false_positives=0, n0=right, false_negatives=r - right, n1=r - right)
