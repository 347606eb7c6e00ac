"""The log-likelihood ratio of a session: the sum over its steps, each given the steps before.

An answer depends on its query and the dataset, so all answers to one query teach its law together: fifty sessions of
forty answers are two thousand answers.  Outcomes (an answer, a refusal, an error) and what is reported are learned as
frequencies, given the query and the outcome before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit.numerics import Array
from dpaudit_attacks.known_noise import KnownNoise
from dpaudit_attacks.logistic import Logistic

Transcript = tuple[Any, ...]
_FEW = 32  # answers with at most so many different values are learned as frequencies
_CELLS = 12  # cells of a histogram of answers whose law is not known
_TOP = 60.0  # nats; the score of what was erased, above every other


@dataclass(frozen=True, slots=True)
class SessionLaw:
    """Log-likelihood ratios of transcripts, from laws of answers and frequencies of outcomes."""

    name: ClassVar[str] = "session_law"
    calibrated: ClassVar[bool] = False
    automatic: ClassVar[bool] = False

    def suits(self, outputs0: Sequence[Any], outputs1: Sequence[Any]) -> bool:
        """Return whether all outputs are transcripts of sessions."""
        return all(is_transcript(output) for side in (outputs0, outputs1) for output in side)

    def fit(
        self, outputs0: Sequence[Transcript], outputs1: Sequence[Transcript], rng: np.random.Generator
    ) -> Callable[[Sequence[Transcript]], Array]:
        return session_ratio(outputs0, outputs1, rng)


@dataclass(frozen=True, slots=True)
class ReportedLaw:
    """The same ratio plus what the session reported: how far the loss is beyond the report.

    What was erased has the largest score, whatever was learned.  The test of what sessions report rests on this
    (`dpaudit.engine.interactive`).
    """

    name: ClassVar[str] = "reported_law"
    calibrated: ClassVar[bool] = True
    automatic: ClassVar[bool] = False

    def fit(
        self, outputs0: Sequence[Transcript], outputs1: Sequence[Transcript], rng: np.random.Generator
    ) -> Callable[[Sequence[Transcript]], Array]:
        kept = [[output for output in side if is_transcript(output)] for side in (outputs0, outputs1)]
        ratio = session_ratio(kept[0], kept[1], rng)

        def score(outputs: Sequence[Transcript]) -> Array:
            kept = np.array([is_transcript(output) for output in outputs], dtype=bool)
            scores = np.full(len(outputs), _TOP)
            transcripts = [output for output in outputs if is_transcript(output)]
            if transcripts:
                spent = np.array([(output[-1][3] or 0.0) if output else 0.0 for output in transcripts])
                scores[kept] = np.clip(ratio(transcripts) + np.minimum(spent, _TOP), 1 - _TOP, _TOP - 1)
            return scores

        return score


def is_transcript(output: Any) -> bool:
    """Return whether an output is a tuple of steps (query, outcome, value, spent)."""
    return isinstance(output, tuple) and all(isinstance(step, tuple) and len(step) == 4 for step in output)


@dataclass(frozen=True, slots=True)
class SessionRatio:
    """The learned log-likelihood ratio of transcripts; it can be sent to other processes if no law is `known`."""

    outcomes: Mapping[Any, float]  # ((query, outcome before), outcome) -> nats
    answers: Mapping[Any, Callable[[Sequence[Any]], Array]]  # query -> nats of answers

    def __call__(self, outputs: Sequence[Transcript]) -> Array:
        scores = np.zeros(len(outputs))
        places: dict[Any, tuple[list[int], list[Any]]] = {}
        for place, transcript in enumerate(outputs):
            before = ""
            for query, outcome, value, _ in transcript:
                scores[place] += self.outcomes.get(((query, before), outcome), 0.0)
                if outcome == "answer" and query in self.answers:
                    where, values = places.setdefault(query, ([], []))
                    where.append(place)
                    values.append(value)
                before = outcome
        for query, (where, values) in places.items():
            np.add.at(scores, where, self.answers[query](values))
        return scores


def session_ratio(
    outputs0: Sequence[Transcript],
    outputs1: Sequence[Transcript],
    rng: np.random.Generator,
    *,
    known: bool = True,
) -> SessionRatio:
    """Learn the log-likelihood ratio of transcripts.

    Args:
        outputs0: Transcripts of sessions on d0.
        outputs1: Transcripts of sessions on d1.
        rng: Randomness of the laws.
        known: Whether answers may follow a law of `KnownNoise`, which is more precise and cannot be pickled.
    """
    counts: tuple[Counter[Any], Counter[Any]] = (Counter(), Counter())
    answers: dict[Any, tuple[list[Any], list[Any]]] = {}
    for side, outputs in enumerate((outputs0, outputs1)):
        for transcript in outputs:
            before = ""
            for query, outcome, value, _ in transcript:
                counts[side][(query, before), outcome] += 1
                if outcome == "answer":
                    answers.setdefault(query, ([], []))[side].append(value)
                before = outcome
    pairs = {*counts[0], *counts[1]}
    sizes, totals = Counter(context for context, _ in pairs), (Counter[Any](), Counter[Any]())
    for some, total in zip(counts, totals, strict=True):
        for (context, _), number in some.items():
            total[context] += number
    logs = [
        {pair: np.log((some[pair] + 0.5) / (total[pair[0]] + 0.5 * sizes[pair[0]])) for pair in pairs}
        for some, total in zip(counts, totals, strict=True)
    ]
    outcomes = {pair: float(logs[1][pair] - logs[0][pair]) for pair in pairs}
    return SessionRatio(outcomes, {query: _law(*sides, rng, known) for query, sides in answers.items()})


def _law(
    values0: Sequence[Any], values1: Sequence[Any], rng: np.random.Generator, known: bool
) -> Callable[[Sequence[Any]], Array]:
    """Learn the log-likelihood ratio of one answer: known noise, frequencies, a histogram or a logistic curve."""
    try:
        sides = [np.asarray([np.ravel(value) for value in side], dtype=np.float64) for side in (values0, values1)]
        width = max(side.shape[1] for side in sides if side.size)
        numbers = all(side.shape == (len(side), width) and np.isfinite(side).all() for side in sides)
    except (TypeError, ValueError, IndexError):
        numbers, width = False, 0
    if numbers and known and KnownNoise().suits(*sides):
        return Numbers(KnownNoise().fit(*sides, rng), width)
    texts = [[repr(value) for value in side] for side in (values0, values1)]
    if not numbers or len({*texts[0], *texts[1]}) <= _FEW:
        counts = Counter(texts[0]), Counter(texts[1])
        half = 0.5 * (len({*texts[0], *texts[1]}) + 1)
        unseen = float(np.log((len(texts[0]) + half) / (len(texts[1]) + half)))
        logs = {
            text: unseen + float(np.log((counts[1][text] + 0.5) / (counts[0][text] + 0.5)))
            for text in counts[0] | counts[1]
        }
        return Frequencies(logs, unseen)
    if width > 1:
        return Numbers(Logistic().fit(*sides, rng), width)
    cuts = np.unique(np.quantile(np.concatenate(sides), np.linspace(0, 1, _CELLS + 1)[1:-1]))
    cells = [np.bincount(np.searchsorted(cuts, side[:, 0]), minlength=len(cuts) + 1) + 0.5 for side in sides]
    return Numbers(Histogram(cuts, np.log(cells[1] / cells[1].sum()) - np.log(cells[0] / cells[0].sum())), 1)


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The ratio of smoothed frequencies of values, by their texts."""

    logs: Mapping[str, float]
    unseen: float

    def __call__(self, values: Sequence[Any]) -> Array:
        return np.array([self.logs.get(repr(value), self.unseen) for value in values])


@dataclass(frozen=True, slots=True)
class Histogram:
    """The ratio of smoothed frequencies in cells between cuts."""

    cuts: Array
    ratio: Array

    def __call__(self, table: Array) -> Array:
        return self.ratio[np.searchsorted(self.cuts, table[:, 0])]


@dataclass(frozen=True, slots=True)
class Numbers:
    """Applies a ratio to answers that are rows of `width` numbers; other answers have the ratio 0."""

    ratio: Callable[[Array], Array]
    width: int

    def __call__(self, values: Sequence[Any]) -> Array:
        scores = np.zeros(len(values))
        rows = [(place, np.ravel(value)) for place, value in enumerate(values) if np.size(value) == self.width]
        if rows:
            table = np.asarray([row for _, row in rows], dtype=np.float64)
            scores[[place for place, _ in rows]] = np.nan_to_num(self.ratio(table), nan=0.0, posinf=_TOP, neginf=-_TOP)
        return scores
