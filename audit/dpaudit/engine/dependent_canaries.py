"""Canaries that are assumed to be independent: several runs together, and signs that the assumption is false."""

from __future__ import annotations

import dataclasses

import numpy as np

from dpaudit.engine.score_guesses import Guesses, Labels, count_guesses
from dpaudit.inference.scores import confident
from dpaudit.inference.scores.dependence import half_included
from dpaudit.inference.scores.exchangeability import LEVEL, along_the_list, between_runs
from dpaudit.numerics.arrays import Array
from dpaudit.result.base_evidence import ScoresGuesses
from dpaudit.result.evidence import CanariesInRunsEvidence
from dpaudit.result.several_runs_evidence import all_halves
from dpaudit.result.values import Counts
from dpaudit.sampling.streams import stream
from dpaudit.text.rounding import upper

WHAT_TO_DO = "the bounds of independent canaries are then not valid; use independence=None, which assumes nothing"


def signs_of_dependence(
    scores0: Array, scores1: Array, labels: tuple[Labels, Labels] | None, seed: int
) -> tuple[str, ...]:
    """Return reasons why canaries cannot be taken as independent; empty if the tests find no sign.

    Theorem:
        If the pairs (score, coin) of all canaries are exchangeable between runs, and the scores of each side along
        their list, a reason is returned with probability at most `exchangeability.LEVEL` = 0.1 %.

    Proof:
        Each of the two tests warns if its p-value is at most half of this level, by the theorem of
        `inference.scores.exchangeability`.

    A reason makes the result inconclusive.  The bounds of `independence="canaries"` hold only under independence, so a
    refutation or a bound would have no guarantee after the test has rejected this assumption.  No reason does not
    confirm the assumption: a state that all canaries of one run share cannot be seen in this run.

    Args:
        scores0: Scores of canaries that were left out, in their order.
        scores1: Scores of canaries that were included, in their order.
        labels: The run of every score; None if there is one run.
        seed: Seed of the permutations.
    """
    found = []
    rng = stream(seed, "dependence")
    if labels is not None:
        p_value = between_runs(scores0, scores1, *labels, rng=rng)
        if p_value <= LEVEL / 2:
            found.append(
                f"canaries depend on each other: scores differ between runs, with probability at most {upper(p_value)} "
                f"if independent canaries of one kind were divided at random between the runs; {WHAT_TO_DO}"
            )
    if not found and (p_value := along_the_list(scores0, scores1, rng=rng)) <= LEVEL / 2:
        found.append(
            "canaries depend on each other, or are listed by kind: scores differ along the list of canaries, with "
            f"probability at most {upper(p_value)} if independent canaries are in random order; {WHAT_TO_DO}"
        )
    return tuple(found)


def count_pooled(
    scores: tuple[Array, Array], labels: tuple[Labels, Labels], guesses: Guesses, rng: np.random.Generator
) -> tuple[ScoresGuesses, Counts]:
    """Guess about the canaries of several runs as if all of them came from one run.

    The theorem of `inference.scores.confident` allows different laws for different canaries.  So it holds for the
    canaries of several runs if all canaries are independent given the coins, within runs and across runs.
    """
    sizes = len(scores[0]), len(scores[1])
    runs = int(max(side.max(initial=0) for side in labels)) + 1
    counts = [np.bincount(side, minlength=runs) for side in labels]
    made = tuple((int(out + into), int(into), 0) for out, into in zip(*counts, strict=True))
    if all_halves(made):
        raise ValueError(
            f"half of the canaries of each of {runs:,} runs were included (rounded if their number is odd), so this "
            'number was probably fixed beforehand; use independence=None with included_at_random="fixed_number"'
        )
    r = confident.default_confident(sum(sizes)) if guesses is None else guesses
    evidence, counted = count_guesses(*scores, "canaries", r, rng, half=half_included(*sizes))
    fields = {field.name: getattr(evidence, field.name) for field in dataclasses.fields(evidence)}
    return CanariesInRunsEvidence(**fields, runs=runs), counted
