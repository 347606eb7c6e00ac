"""The log-likelihood ratio of a session: the sum over its steps, each given the steps before.

An answer depends on its query and the dataset, so all answers to one query teach its law together: fifty sessions of
forty answers are two thousand answers.  Outcomes (an answer, a refusal, an error) are learned as frequencies, given the
query and the outcome before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpaudit.numerics import Array, fit_logistic, linear
from dpaudit_attacks.known_noise import KnownNoise

Transcript = tuple[Any, ...]
Sides = tuple[Sequence[Transcript], Sequence[Transcript]]
Ratio = Callable[[Sequence[Transcript]], Array]
_FEW = 32  # values or messages with at most so many different texts are learned as frequencies
_CELLS = (2, 4, 12)  # cells of histograms of answers whose law is not known
_GRID = 512  # places at which a learned law is tabulated
_QUERIES = 6  # queries whose sums are looked at
_FAR = 60.0  # nats; larger ratios of single answers are clipped
_PILOT = 40  # sessions that a conclusion counts as, when it is corrected by frequencies


@dataclass(frozen=True, slots=True)
class SessionLaw:
    """Log-likelihood ratios of transcripts, from laws of answers and frequencies of outcomes.

    Args:
        earlier: Transcripts of both datasets from before the audit, to learn from.
        head_start: Log-loss in nats by which the attack counts as better in the mixture.
    """

    name: ClassVar[str] = "session_law"
    sees: ClassVar[str] = "natural"
    calibrated: ClassVar[bool] = True
    automatic: ClassVar[bool] = False  # `audit_interactive` adds it
    earlier: Sides = ((), ())
    head_start: float = 0.0

    @property
    def first_fit(self) -> int:
        """The number of outputs at the first fit."""
        return 1 if self.earlier[0] else 10

    def suits(self, outputs0: Sequence[Any], outputs1: Sequence[Any]) -> bool:
        """Return whether all outputs are transcripts of sessions."""
        return all(steps_of(output) is not None for side in (outputs0, outputs1) for output in side)

    def fit(self, outputs0: Sequence[Transcript], outputs1: Sequence[Transcript], rng: np.random.Generator) -> Ratio:
        return _calibrated(self.learned, [*self.earlier[0], *outputs0], [*self.earlier[1], *outputs1], rng)

    def learned(self, outputs0: Sequence[Transcript], outputs1: Sequence[Transcript], rng: Any) -> Ratio:
        """Learn a ratio that is not calibrated."""
        return session_ratio(outputs0, outputs1, rng)


@dataclass(frozen=True, slots=True)
class SessionSums(SessionLaw):
    """A logistic regression on sums and first answers of each query, for steps that depend on each other.

    The sums of two queries show what they share, such as a noisy threshold.  The difference of their first answers
    shows noise that they share.
    """

    name: ClassVar[str] = "session_sums"

    def learned(self, outputs0: Sequence[Transcript], outputs1: Sequence[Transcript], rng: Any) -> Ratio:
        steps = [step for output in (*outputs0, *outputs1) for step in steps_of(output) or ()]
        queries = [query for query, _ in Counter(step[0] for step in steps).most_common(_QUERIES)]

        def design(outputs: Sequence[Transcript]) -> Array:
            rows = np.zeros((len(outputs), 3 * len(queries) + len(queries) * (len(queries) - 1) // 2))
            for row, output in zip(rows, outputs, strict=True):
                firsts = []
                for place, query in enumerate(queries):
                    asked = [step for step in steps_of(output) or () if step[0] == query]
                    answers = np.array([_number(step[2]) for step in asked if step[1] == "answer"])
                    answers = answers[np.isfinite(answers)]
                    firsts.append(answers[0] if len(answers) else 0.0)
                    row[3 * place : 3 * place + 3] = len(answers), len(asked) - len(answers), answers.sum()
                row[3 * len(queries) :] = [a - b for place, a in enumerate(firsts) for b in firsts[:place]]
            return rows

        rows = design([*outputs0, *outputs1])
        middle, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
        slopes, intercept = fit_logistic((rows - middle) / spread, len(outputs0))
        return lambda outputs: np.asarray(linear((design(outputs) - middle) / spread, slopes) + intercept)


@dataclass(frozen=True, slots=True)
class ReportedLaw:
    """The same ratio plus what the session reported: how far the loss is beyond the report.

    If the analyst drew a conclusion, this number is the score, corrected by its frequencies.

    What was erased has the largest score that any output can have, whatever was learned.  The test of what sessions
    report rests on this (`dpaudit.engine.interactive`).
    """

    name: ClassVar[str] = "reported_law"
    first_fit: ClassVar[int] = 1  # an analyst's conclusion is a score before anything was learned
    sees: ClassVar[str] = "natural"
    calibrated: ClassVar[bool] = True
    automatic: ClassVar[bool] = False

    def suits(self, outputs0: Sequence[Any], outputs1: Sequence[Any]) -> bool:
        """Return whether all outputs of the second dataset are transcripts of sessions."""
        return all(steps_of(output) is not None for output in outputs1)

    def fit(self, outputs0: Sequence[Transcript], outputs1: Sequence[Transcript], rng: np.random.Generator) -> Ratio:
        kept0, kept1 = ([output for output in side if steps_of(output) is not None] for side in (outputs0, outputs1))
        if not kept0 or not kept1:
            return lambda outputs: np.zeros(len(outputs))
        if all(output and output[-1][0] == "concludes" for output in (*kept0, *kept1)):
            excess = _conclusions(kept0, kept1, len(outputs0))
        else:
            excess = _calibrated(_beyond_report, kept0, kept1, rng)
        top = _top(excess(kept0), excess(kept1), len(outputs0), len(outputs1))

        def score(outputs: Sequence[Transcript]) -> Array:
            scores = np.full(len(outputs), top)
            kept = [place for place, output in enumerate(outputs) if steps_of(output) is not None]
            if kept:
                scores[kept] = np.minimum(np.nan_to_num(excess([outputs[place] for place in kept])), top)
            return scores

        return score


def _top(excess0: Array, excess1: Array, total0: int, total1: int) -> float:
    """Return the log-likelihood ratio of the region of what was erased and of all transcripts with larger scores.

    Transcripts are pooled with what was erased from the largest score down, as long as this raises the ratio; it is at
    least 0, because nothing was erased on the second dataset.
    """
    cuts = np.unique(np.concatenate([excess0, excess1]))
    below0, below1 = (np.searchsorted(np.sort(side), cuts, side="left") for side in (excess0, excess1))
    ratios = np.log(total1 - below1 + 0.5) - np.log(total0 - below0 + 0.5) + np.log(total0 / total1)
    return float(max(0.0, ratios.max()))


def _beyond_report(outputs0: Sequence[Transcript], outputs1: Sequence[Transcript], rng: np.random.Generator) -> Ratio:
    """Learn the ratio of transcripts on d1 to those on d0, plus what they report."""
    ratio = session_ratio(outputs0, outputs1, rng)

    def spent(output: Transcript) -> float:
        return min((steps_of(output) or ((0, "", 0, 0.0),))[-1][3] or 0.0, _FAR)

    return lambda outputs: ratio(outputs) + np.array([spent(output) for output in outputs])


def _calibrated(
    learn: Callable[[Sequence[Transcript], Sequence[Transcript], np.random.Generator], Ratio],
    outputs0: Sequence[Transcript],
    outputs1: Sequence[Transcript],
    rng: np.random.Generator,
) -> Ratio:
    """Learn a ratio, calibrated by a logistic curve that is fitted to ratios of transcripts in the other half."""
    held: tuple[list[Array], list[Array]] = [], []
    for half in range(2):
        ratio = learn(outputs0[half::2] or outputs0, outputs1[half::2] or outputs1, rng)
        for some, side in zip(held, (outputs0, outputs1), strict=True):
            some.append(ratio(side[1 - half :: 2]))
    design = [np.concatenate(some)[:, None] for some in held]
    slope, intercept = fit_logistic(np.concatenate(design), len(design[0]))
    final = learn(outputs0, outputs1, rng)
    return lambda outputs: np.asarray(max(float(slope[0]), 0.0) * final(outputs) + intercept)


def _conclusions(kept0: Sequence[Transcript], kept1: Sequence[Transcript], total0: int) -> Ratio:
    """Learn the ratio of each conclusion; the conclusion itself, a ratio, counts as some sessions."""
    counts = [Counter(float(output[-1][1]) for output in side) for side in (kept0, kept1)]

    def corrected(conclusion: float) -> float:
        share = (counts[0][conclusion] + counts[1][conclusion] + 1) / (total0 + len(kept1) + 2)
        prior0 = 2 * share / (1 + np.exp(conclusion))
        prior1 = 2 * share - prior0
        numbers = counts[0][conclusion] + _PILOT * prior0, counts[1][conclusion] + _PILOT * prior1
        return float(np.log(numbers[1] / (len(kept1) + _PILOT)) - np.log(numbers[0] / (total0 + _PILOT)))

    return lambda outputs: np.array([corrected(float(output[-1][1])) for output in outputs])


def steps_of(output: Any) -> Transcript | None:
    """Return the steps (query, outcome, value, spent) of a transcript, without a conclusion; None for other outputs."""
    if not isinstance(output, tuple) or not all(isinstance(step, tuple) for step in output):
        return None
    steps = output[:-1] if output and output[-1][:1] == ("concludes",) else output
    return steps if all(len(step) == 4 for step in steps) else None


@dataclass(frozen=True, slots=True)
class SessionRatio:
    """The learned log-likelihood ratio of transcripts; it can be sent to other processes."""

    outcomes: Mapping[Any, float]  # ((query, outcome before), outcome) -> nats
    answers: Mapping[Any, Callable[[Sequence[Any]], Array]]  # query -> nats of answers

    def __call__(self, outputs: Sequence[Transcript]) -> Array:
        scores = np.zeros(len(outputs))
        answered: dict[Any, tuple[list[int], list[Any]]] = {}
        for place, transcript in enumerate(outputs):
            before = ""
            for query, outcome, value, _ in steps_of(transcript) or ():
                scores[place] += self.of_outcome(query, before, outcome, value)
                if outcome == "answer" and query in self.answers:
                    places, values = answered.setdefault(query, ([], []))
                    places.append(place)
                    values.append(value)
                before = outcome
        for query, (places, values) in answered.items():
            np.add.at(scores, places, self.answers[query](values))
        return scores

    def of_step(self, query: Any, before: str, outcome: str, value: Any) -> float:
        """Return the ratio of one step, given the outcome before."""
        law = self.answers.get(query) if outcome == "answer" else None
        answer = 0.0 if law is None else float(law([value])[0])
        return self.of_outcome(query, before, outcome, value) + answer

    def of_outcome(self, query: Any, before: str, outcome: str, value: Any) -> float:
        """Return the ratio of an outcome alone, and of its message if it is no answer."""
        known = self.outcomes.get(((query, before), _named(outcome, value)))
        return known if known is not None else self.outcomes.get(((query, before), outcome), 0.0)


def _named(outcome: str, value: Any) -> str:
    return outcome if outcome == "answer" else f"{outcome}: {value}"


def session_ratio(
    outputs0: Sequence[Transcript], outputs1: Sequence[Transcript], rng: np.random.Generator
) -> SessionRatio:
    """Learn the log-likelihood ratio of transcripts on d1 to those on d0."""
    sides = [[steps_of(output) or () for output in outputs] for outputs in (outputs0, outputs1)]
    messages = {_named(step[1], step[2]) for side in sides for steps in side for step in steps}
    counts: tuple[Counter[Any], Counter[Any]] = (Counter(), Counter())
    answers: dict[Any, tuple[list[Any], list[Any]]] = {}
    for side, transcripts in enumerate(sides):
        for steps in transcripts:
            before = ""
            for query, outcome, value, _ in steps:
                name = _named(outcome, value) if len(messages) <= _FEW else outcome
                counts[side][(query, before), name] += 1
                if outcome == "answer":
                    answers.setdefault(query, ([], []))[side].append(value)
                before = outcome
    seen = {*counts[0], *counts[1]}
    sizes, totals = Counter(context for context, _ in seen), (Counter[Any](), Counter[Any]())
    for some, total in zip(counts, totals, strict=True):
        for (context, _), number in some.items():
            total[context] += number
    logs = [
        {one: np.log((some[one] + 0.5) / (total[one[0]] + 0.5 * sizes[one[0]])) for one in seen}
        for some, total in zip(counts, totals, strict=True)
    ]
    outcomes = {one: float(logs[1][one] - logs[0][one]) for one in seen}
    return SessionRatio(outcomes, {query: _law(*values, rng) for query, values in answers.items()})


Law = Callable[[Sequence[Any]], Array]
"""Maps n answers to one query to their log-likelihood ratios (n,)."""


def _law(values0: Sequence[Any], values1: Sequence[Any], rng: np.random.Generator) -> Law:
    """Learn the log-likelihood ratio of one answer: known noise, or what predicts held-out answers best."""
    try:
        sides = [np.asarray([np.ravel(value) for value in side], dtype=np.float64) for side in (values0, values1)]
        width = max(side.shape[1] for side in sides if side.size)
        numbers = all(side.shape == (len(side), width) and np.isfinite(side).all() for side in sides)
    except (TypeError, ValueError, IndexError):
        numbers, width = False, 0
    if numbers and width == 1 and KnownNoise().suits(*sides):
        return Table.of(KnownNoise().fit(sides[0], sides[1], rng), sides[0], sides[1])
    ways: list[Callable[[Sequence[Any], Sequence[Any]], Law]] = [lambda a, b: Frequencies({}, 0.0)]
    if not numbers or len({repr(value) for side in (values0, values1) for value in side}) <= _FEW:
        ways.append(Frequencies.of)
    else:
        ways += [Vectors.of] + ([partial(Table.of_cells, cells) for cells in _CELLS] if width == 1 else [])
    losses = [0.0] * len(ways)
    for fold in range(2 if min(len(values0), len(values1)) >= 4 else 0):
        for place, way in enumerate(ways):
            law = way(values0[fold::2], values1[fold::2])
            held0, held1 = law(values0[1 - fold :: 2]), law(values1[1 - fold :: 2])
            losses[place] += float(np.logaddexp(0, held0).mean() + np.logaddexp(0, -held1).mean())
    return ways[int(np.argmin(losses))](values0, values1)


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The ratio of smoothed frequencies of values, by their texts."""

    logs: Mapping[str, float]
    unseen: float

    @classmethod
    def of(cls, values0: Sequence[Any], values1: Sequence[Any]) -> Frequencies:
        counts = Counter(map(repr, values0)), Counter(map(repr, values1))
        half = 0.5 * (len(counts[0] | counts[1]) + 1)
        unseen = float(np.log((len(values0) + half) / (len(values1) + half)))
        logs = {
            text: unseen + float(np.log((counts[1][text] + 0.5) / (counts[0][text] + 0.5)))
            for text in counts[0] | counts[1]
        }
        return cls(logs, unseen)

    def __call__(self, values: Sequence[Any]) -> Array:
        return np.array([self.logs.get(repr(value), self.unseen) for value in values])


@dataclass(frozen=True, slots=True)
class Table:
    """A ratio that is constant between cuts; answers that are no numbers have the ratio 0."""

    cuts: Array
    ratio: Array

    @classmethod
    def of(cls, ratio: Callable[[Array], Array], side0: Array, side1: Array) -> Table:
        """Tabulate the ratio of numbers: of each integer, or at a grid from the least to the largest number."""
        values = np.concatenate([side0, side1])[:, 0]
        low, high = float(values.min()), float(values.max())
        whole = bool(np.all(values == np.floor(values))) and high - low < _GRID
        at = np.arange(low - 1, high + 2) if whole else np.linspace(low, high, _GRID)
        found = np.clip(np.nan_to_num(ratio(at[:, None])), -_FAR, _FAR)
        return cls((at[1:] + at[:-1]) / 2, found)

    @classmethod
    def of_cells(cls, cells: int, values0: Sequence[Any], values1: Sequence[Any]) -> Table:
        """Learn a histogram of numbers with cells of equal frequency."""
        sides = [np.array([_number(value) for value in side]) for side in (values0, values1)]
        cuts = np.unique(np.quantile(np.concatenate(sides), np.linspace(0, 1, cells + 1)[1:-1]))
        counts = [np.bincount(np.searchsorted(cuts, side), minlength=len(cuts) + 1) + 0.5 for side in sides]
        return cls(cuts, np.log(counts[1] / counts[1].sum()) - np.log(counts[0] / counts[0].sum()))

    def __call__(self, values: Sequence[Any]) -> Array:
        numbers = np.array([_number(value) for value in values])
        return np.where(np.isnan(numbers), 0.0, self.ratio[np.searchsorted(self.cuts, numbers)])


@dataclass(frozen=True, slots=True)
class Vectors:
    """A linear ratio of answers that are rows of d numbers; other answers have the ratio 0."""

    slopes: Array
    intercept: float

    @classmethod
    def of(cls, values0: Sequence[Any], values1: Sequence[Any]) -> Vectors:
        """Fit a logistic regression to rows of numbers."""
        rows = np.array([np.ravel(value) for value in (*values0, *values1)], dtype=np.float64)
        middle, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-12
        slopes, intercept = fit_logistic((rows - middle) / spread, len(values0))
        slopes = slopes / spread
        return cls(slopes, float(intercept - slopes @ middle + np.log(len(values0) / len(values1))))

    def __call__(self, values: Sequence[Any]) -> Array:
        rows = np.full((len(values), len(self.slopes)), np.nan)
        for place, value in enumerate(values):
            numbers = [_number(number) for number in (value if isinstance(value, Iterable) else (value,))]
            if len(numbers) == len(self.slopes):
                rows[place] = numbers
        known = np.isfinite(rows).all(axis=1)
        ratios = np.clip(linear(np.where(known[:, None], rows, 0.0), self.slopes) + self.intercept, -_FAR, _FAR)
        return np.where(known, ratios, 0.0)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")
