"""The design of given scores, the guesses from them, and the number of right guesses, which determines the verdict.

The design is how canaries were included, and which run each score comes from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.tabulated import NO_CLAIM
from dpaudit.inference.scores import both_sides, confident, fixed_number, levels, runs, several, weighted
from dpaudit.inference.scores.dependence import half_included
from dpaudit.inference.scores.exchangeability import LEVEL, along_the_list, between_runs
from dpaudit.numerics.arrays import Array
from dpaudit.result.base_evidence import ScoresGuesses
from dpaudit.result.evidence import (
    CanariesInRunsEvidence,
    CanaryLevelsEvidence,
    CanaryScoresEvidence,
    DrawnCanariesEvidence,
    DrawnRunEvidence,
    OneRunScoresEvidence,
    RunScoresEvidence,
    WeightedGuessesEvidence,
)
from dpaudit.result.several_runs_evidence import all_halves, of_runs
from dpaudit.result.values import Counts
from dpaudit.result.weighted_evidence import check_size
from dpaudit.sampling.streams import stream
from dpaudit.settings.limits import shown
from dpaudit.text.rounding import upper

Independence = Literal["runs", "canaries"] | None
Inclusion = Literal["coins", "fixed_number"]
Guesses = int | Sequence[int] | None
Labels = npt.NDArray[np.intp]

_WHAT_TO_DO = "the bounds of independent canaries are then not valid; use independence=None, which assumes nothing"

DESIGNS = {
    "coins": "an independent fair coin decided for each canary",
    "fixed_number": "a fixed number of canaries was drawn at random, without replacement",
}
"""Meaning of each choice of `included_at_random`."""


def check_design(independence: Independence, inclusion: Any) -> Inclusion:
    """Return how canaries were included."""
    if not isinstance(inclusion, str) or inclusion not in DESIGNS:
        choices = "; ".join(f"{choice!r}: {words}" for choice, words in DESIGNS.items())
        raise ValueError(f"included_at_random must be one of these, got {shown(inclusion)}.  {choices}")
    if independence == "runs" and inclusion != "coins":
        raise ValueError(
            'included_at_random is about canaries; with independence="runs" any number of runs on each dataset is '
            "allowed, so leave it out"
        )
    return "fixed_number" if inclusion == "fixed_number" else "coins"


def run_labels(
    given: Any, sizes: tuple[int, int], independence: Independence, inclusion: Inclusion
) -> tuple[Labels, Labels] | None:
    """Return the run of every score as a number from 0; None if there is one run."""
    if given is None:
        return None
    if independence == "runs":
        raise ValueError(
            'run states which canaries share a run; with independence="runs", every score comes from a run of its own, '
            "so leave run out, or choose another independence"
        )
    if independence == "canaries" and inclusion == "fixed_number":
        raise ValueError(
            'independent canaries of several runs must be included by coins; for included_at_random="fixed_number" in '
            "several runs, set independence=None"
        )
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError(f"run must be two lists: the runs of scores0, and the runs of scores1; got {shown(given)}")
    sides = [np.asarray(side) for side in given]
    for i, (side, n) in enumerate(zip(sides, sizes, strict=True)):
        if side.shape != (n,):
            raise ValueError(f"run[{i}] must name the run of each of {n} scores, got shape {side.shape}")
        if side.dtype.kind not in "biufU" or (side.dtype.kind == "f" and np.isnan(side).any()):
            raise ValueError(f"run[{i}] must consist of numbers or text without missing values, got {side.dtype}")
    if (sides[0].dtype.kind == "U") != (sides[1].dtype.kind == "U") and all(sizes):
        raise ValueError("run must name runs by numbers on both sides, or by text on both sides")
    names, places = np.unique(np.concatenate(sides), return_inverse=True)
    return None if len(names) == 1 else (places[: sizes[0]], places[sizes[0] :])


def check_drawn(labels: tuple[Labels, Labels] | None, sizes: tuple[int, int]) -> None:
    """Raise ValueError if none or all canaries of a run were included."""
    runs = int(max(side.max(initial=0) for side in labels)) + 1 if labels else 1
    counts = [np.bincount(side, minlength=runs) for side in labels] if labels else [np.array([n]) for n in sizes]
    for i, (out, into) in enumerate(zip(*counts, strict=True)):
        if not (out and into):
            where = f" of run {i + 1} (in sorted order)" if labels else ""
            raise ValueError(
                f"{into} of {out + into} canaries{where} were included; a fixed number must include some canaries "
                "and leave some out, since otherwise there is nothing to guess"
            )


def has_levels(m: int, claim: TradeoffFunction, independence: Independence, inclusion: Inclusion) -> bool:
    """Return whether an audit weighs guesses by three levels of confidence, unless the user chooses their number."""
    independent = independence == "canaries" and inclusion == "coins"
    return independent and m >= levels.LEAST_CANARIES and levels.suits(claim)


def default_of(n0: int, n1: int, independence: Independence, inclusion: Inclusion) -> tuple[type[ScoresGuesses], int]:
    """Return the kind of evidence that n0 and n1 scores give without levels, and the default number of guesses."""
    m = n0 + n1
    if independence == "runs":
        return RunScoresEvidence, runs.default_cut(n0, n1)
    if inclusion == "fixed_number":
        if independence == "canaries":
            return DrawnCanariesEvidence, fixed_number.default_cut(m, n1)
        return DrawnRunEvidence, fixed_number.default_guesses(m, n1)
    if independence == "canaries":
        return CanaryScoresEvidence, confident.default_confident(m)
    return OneRunScoresEvidence, several.default_guesses(m)


def evidence_of(n0: int, n1: int, kind: type[ScoresGuesses], guesses: int, right: int, *, half: bool) -> ScoresGuesses:
    """Return evidence of a kind that `default_of` returns; `half` is as in `count_guesses`."""
    counts = {"n0": n0, "n1": n1, "m": n0 + n1, "included": n1, "half": int(half), "guesses": guesses, "right": right}
    return kind(**{field.name: counts[field.name] for field in dataclasses.fields(kind)})


def checked_guesses(given: Any, most: int, of: str) -> int:
    """Return a number of guesses as an int."""
    words = f"guesses must be a whole number from 1 to the number of {of} ({most:,}), got {shown(given)}"
    if isinstance(given, Sequence) and not isinstance(given, str):
        words += "; several numbers of guesses require independence=None, coins, and canaries of one run"
    if not isinstance(given, int | float | np.integer | np.floating) or isinstance(given, bool):
        raise TypeError(words)
    if not 1 <= given <= most or given != int(given):
        raise ValueError(words)
    return int(given)


def count_guesses(
    scores0: Array,
    scores1: Array,
    independence: Independence,
    guesses: Guesses,
    rng: np.random.Generator,
    half: bool = False,
    inclusion: Inclusion = "coins",
    claim: TradeoffFunction = NO_CLAIM,
) -> tuple[ScoresGuesses, Counts]:
    """Guess from scores which runs were on d1, or which canaries were included; return right guesses, also by side.

    The p-value depends on the scores only through this count.  Equal scores are put in a random order.
    """
    n0, n1 = len(scores0), len(scores1)
    if guesses is None and has_levels(n0 + n1, claim, independence, inclusion):
        return _count_levels(scores0, scores1, rng, half=half)
    kind, r = default_of(n0, n1, independence, inclusion)
    if kind is OneRunScoresEvidence and isinstance(guesses, Sequence) and not isinstance(guesses, str):
        return _count_weighted(scores0, scores1, guesses, rng, half=half)
    if guesses is not None:
        r = checked_guesses(guesses, n0 + n1, "runs" if independence == "runs" else "canaries")
    if kind in (RunScoresEvidence, DrawnCanariesEvidence):
        right = runs.count_high(scores0, scores1, r, rng=rng)
        counts = Counts(false_positives=r - right, n0=n0, false_negatives=n1 - right, n1=n1)
    else:
        about = _about_drawn if kind is DrawnRunEvidence else _most_extreme
        counts = about(scores0, scores1, r, rng)
        right = _right(counts)
    return evidence_of(n0, n1, kind, r, right, half=half), counts


def _count_weighted(
    scores0: Array, scores1: Array, guesses: Sequence[int], rng: np.random.Generator, *, half: bool
) -> tuple[ScoresGuesses, Counts]:
    """Count right guesses for several numbers of guesses.  The order of equal scores is the same for all numbers."""
    m, n1 = len(scores0) + len(scores1), len(scores1)
    numbers = weighted.checked_numbers([checked_guesses(r, m, "canaries") for r in guesses], m)
    check_size(numbers)
    order = rng.permutation(m)
    counts = _sum(_in_order(scores0, scores1, r, order) for r in numbers)
    return WeightedGuessesEvidence(
        m=m, included=n1, half=int(half), guesses=sum(numbers), right=_right(counts), numbers=numbers
    ), counts


def _count_levels(
    scores0: Array, scores1: Array, rng: np.random.Generator, *, half: bool
) -> tuple[ScoresGuesses, Counts]:
    """Count right guesses about all canaries by their level.  The counts by side are total weights."""
    m, n1 = len(scores0) + len(scores1), len(scores1)
    first, second = levels.default_numbers(m)
    order = rng.permutation(m)
    one, two, three = (_in_order(scores0, scores1, r, order) for r in (first, second, m))
    w1, w2, w3 = levels.WEIGHTS
    weighted_counts = _sum([*[one] * (w1 - w2), *[two] * (w2 - w3), *[three] * w3])
    return CanaryLevelsEvidence.of(m, n1, (_right(one), _right(two), _right(three)), half=half), weighted_counts


def order_matters(scores0: Array, scores1: Array, evidence: ScoresGuesses) -> bool:
    """Return whether equal scores lie on both sides of a cut; for several runs, whether any two scores are equal."""
    both = np.sort(np.concatenate([scores0, scores1]))
    equal = both[1:] == both[:-1]
    places = np.arange(len(equal)) if evidence.cuts is None else np.array(evidence.cuts) - 1
    return bool(np.any(equal[places[(places >= 0) & (places < len(equal))]]))


def count_in_runs(
    scores: tuple[Array, Array],
    labels: tuple[Labels, Labels],
    guesses: Guesses,
    rng: np.random.Generator,
    inclusion: Inclusion,
) -> tuple[ScoresGuesses, Counts]:
    """Guess in each of several runs which canaries were included, and count the right guesses of all runs."""
    if guesses is not None:
        largest = int(np.bincount(np.concatenate(labels)).max())
        guesses = checked_guesses(guesses, largest, "canaries of the largest run")
    made, counted, drawn = [], [], inclusion == "fixed_number"
    for run in np.unique(np.concatenate(labels)):
        out, into = (side[label == run] for side, label in zip(scores, labels, strict=True))
        m = len(out) + len(into)
        r = default_of(len(out), len(into), None, inclusion)[1] if guesses is None else min(guesses, m)
        counts = (_about_drawn if drawn else _most_extreme)(out, into, r, rng)
        made.append((m, len(into), r))
        counted.append(counts)
    total = _sum(counted)
    return of_runs(made, _right(total), drawn=drawn), total


def _sum(counted: Iterable[Counts]) -> Counts:
    """Add up counts of guesses."""
    each = [(one.false_positives, one.n0, one.false_negatives, one.n1) for one in counted]
    false_positives, n0, false_negatives, n1 = (sum(numbers) for numbers in zip(*each, strict=True))
    return Counts(false_positives=false_positives, n0=n0, false_negatives=false_negatives, n1=n1)


def _right(counts: Counts) -> int:
    return counts.n0 - counts.false_positives + counts.n1 - counts.false_negatives


def _most_extreme(scores0: Array, scores1: Array, r: int, rng: np.random.Generator) -> Counts:
    """Guess about the canaries with the r most extreme scores, both low and high."""
    # without the random order, the position of a canary would reveal its coin to `guess`
    return _in_order(scores0, scores1, r, rng.permutation(len(scores0) + len(scores1)))


def _in_order(scores0: Array, scores1: Array, r: int, order: npt.NDArray[np.int64]) -> Counts:
    """Guess about the r most extreme scores, with the canaries in a given random order."""
    n0 = len(scores0)
    answers = both_sides.guess(np.concatenate([scores0, scores1])[order], r)
    included = order >= n0
    out, into = answers[~included], answers[included]
    return Counts(
        false_positives=int((out == 1).sum()),
        n0=int((out != 0).sum()),
        false_negatives=int((into == -1).sum()),
        n1=int((into != 0).sum()),
    )


def _about_drawn(scores0: Array, scores1: Array, r: int, rng: np.random.Generator) -> Counts:
    """Guess about both sides if half of the canaries were included, and otherwise about the rarer side."""
    n0, n1 = len(scores0), len(scores1)
    if fixed_number.about_both_sides(n0 + n1, n1):
        return _most_extreme(scores0, scores1, r, rng)
    if n1 <= n0:
        right = runs.count_high(scores0, scores1, r, rng=rng)
        return Counts(false_positives=r - right, n0=r - right, false_negatives=0, n1=right)
    right = runs.count_high(-scores1, -scores0, r, rng=rng)
    return Counts(false_positives=0, n0=right, false_negatives=r - right, n1=r - right)


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

    No reason does not confirm independence: a state that all canaries of one run share cannot be seen in this run.
    """
    found = []
    rng = stream(seed, "dependence")
    if labels is not None:
        p_value = between_runs(scores0, scores1, *labels, rng=rng)
        if p_value <= LEVEL / 2:
            found.append(
                f"canaries depend on each other: scores differ between runs, with probability at most {upper(p_value)} "
                f"if independent canaries of one kind were divided at random between the runs; {_WHAT_TO_DO}"
            )
    if not found and (p_value := along_the_list(scores0, scores1, rng=rng)) <= LEVEL / 2:
        found.append(
            "canaries depend on each other, or are listed by kind: scores differ along the list of canaries, with "
            f"probability at most {upper(p_value)} if independent canaries are in random order; {_WHAT_TO_DO}"
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
