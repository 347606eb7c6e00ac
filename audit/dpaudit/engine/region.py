"""Describes a rejection region by a condition: what its outputs have in common.

For synthetic tables, it also describes the query that tells the datasets apart best, such as "rows with city = Ulm: 0
without the record, 1 to 4 with it".
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpaudit.learning import Score
from dpaudit.learning.attack import sees
from dpaudit.numerics import EXACT, Array, Flags
from dpaudit.outputs import Outputs, PartsEncoding, PlainEncoding, Queries, derived_names
from dpaudit.outputs.tables import Parts
from dpaudit.result.values import VIEW_WORDS, Condition, Interval, Region
from dpaudit.text import one_line, shortened
from dpaudit.values import OUTPUT, Feature, Label, words

PROBES = 4000  # maximum number of outputs of each dataset that are used to describe a region

_LISTED = 12  # maximum number of distinct outputs that are listed one by one
_SAME, _NEARLY = 0.99, 0.85  # agreement at which a feature replaces the score; agreement at which it is also named
_STATEMENTS = {
    *("{} is {}", "{} equals {}", "{} is above {}", "{} is a whole number", "{} is odd", "{} is zero"),
    *("{} in {}", "word {} in {}", "column {} in {}"),
}
_ANSWERS = {"query {}", "distance of {} and {}"}  # numbers, even if all are 0 or 1
_GAPS = 3  # maximum number of intervals; more are harder to read than the score
_AGREEMENT = 0.6  # minimum mean of the shares of both datasets that a cut of the answers identifies
CHANCE = 0.05  # maximum probability that any query is stated if the table does not depend on the dataset
_INNER = (0.1, 0.9)  # quantiles of the answers that are stated if the answers on both datasets overlap


def describe_region(score: Score, threshold: float, examples: Outputs | None) -> Region:
    """Describe the region {score > threshold}, by the output or by a feature that separates as well as the score."""
    if not score.ready or score.encoding is None or examples is None:
        return Region()
    if (unknown := examples.unknown_outputs(score.encoding)) is not None:
        examples = examples.take(np.flatnonzero(~unknown))
    weights = score.weights()
    seen = sees(score.attacks[max(weights, key=lambda i: weights[i])])
    found = _condition(score, examples, threshold, timed=seen == "timed")
    return replace(found, view=next((view for view in VIEW_WORDS if view == seen), "natural"))


def _condition(score: Score, examples: Outputs, threshold: float, *, timed: bool) -> Region:
    if isinstance(score.encoding, PlainEncoding) and score.encoding.single and not timed:
        return _numbers(score, examples, threshold)
    inside = score(examples) > threshold
    if not inside.any() or inside.all():
        return Region()
    if isinstance(score.encoding, PartsEncoding):
        listed = _labels([parts.labels.get(OUTPUT) for parts in examples.parts()], inside)
        if listed is not None:
            return Region(condition=Condition(listed=listed))
    return one_feature(score, examples, inside)


def _numbers(score: Score, examples: Outputs, threshold: float) -> Region:
    """Describe a region of outputs that are one number each."""
    if examples.array is None:
        return Region()
    values = examples.array.reshape(-1)
    missing = values.dtype.kind == "f" and bool(np.isnan(values).any())
    values = np.unique(values[~np.isnan(values)] if missing else values)
    if len(values) == 0:
        return Region()
    if len(values) > PROBES:
        values = values[np.linspace(0, len(values) - 1, PROBES).astype(int)]
    inside = score(Outputs.read(list(values))) > threshold
    finite = values.dtype.kind != "f" or bool(np.isfinite(values).all())
    whole = bool(np.all(values == np.floor(values)))
    recurring = whole or examples.array.size >= 2 * len(values)  # outputs with continuous noise never recur
    if len(values) <= _LISTED and recurring and finite and not missing:
        return Region(condition=Condition(listed=tuple(values[inside].tolist()))) if inside.any() else Region()
    changes = np.diff(inside.astype(int), prepend=0, append=0)
    starts, stops = np.flatnonzero(changes > 0).tolist(), (np.flatnonzero(changes < 0) - 1).tolist()
    if len(starts) <= _GAPS:
        intervals = tuple(
            Interval(
                low=_cut(values[a], values[a - 1]) if a > 0 else -math.inf,
                high=_cut(values[b], values[b + 1]) if b + 1 < len(values) else math.inf,
            )
            for a, b in zip(starts, stops, strict=True)
        )
        missing = missing and bool(score(Outputs.read([values.dtype.type(np.nan)]))[0] > threshold)
        if not (intervals or missing) or Interval() in intervals:  # outputs outside are too rare to be examples
            return Region()
        return Region(condition=Condition(intervals=intervals, missing=missing))
    return one_feature(score, Outputs.read(list(values)), inside)


def _labels(labels: list[Label | None], inside: Flags) -> tuple[Label, ...] | None:
    """Return the labels that make up the region; None if labels do not determine the region or are too many."""
    known = dict(zip(labels, inside.tolist(), strict=True))
    if None in known or len(known) > _LISTED:
        return None
    if any(known[label] != one for label, one in zip(labels, inside, strict=True)):
        return None
    return tuple(sorted((label for label, one in known.items() if one and label is not None), key=words))


def one_feature(score: Score, examples: Outputs, inside: Flags) -> Region:
    """Describe the region by the original or derived feature whose best cut agrees most with the region."""
    if not inside.any() or inside.all():
        return Region()
    assert score.encoding is not None
    columns = examples.view(score.encoding, "derived")
    names = score.encoding.names
    derived = derived_names(names[: score.encoding.numeric])
    if isinstance(score.encoding, PartsEncoding):  # the numbers of the whole are those of all parts
        derived = [("{} among the parts", name) if len(name) == 1 else name for name in derived]
    names = [*names, *derived]
    if isinstance(score.encoding, PartsEncoding) and score.encoding.table_queries is not None:
        names += [("query {}", name) for name in score.encoding.table_queries.names]
        columns = np.hstack([columns, examples.view(score.encoding, "queries")])
    centres = score.encoding.centre or ()
    if any(centres):  # derived columns are computed after the subtraction of the centres, so their names would be false
        names, columns = score.encoding.names, columns[:, : len(score.encoding.names)]
    centres = (*centres, *[0] * (len(names) - len(centres)))
    best, agreement, plain = Condition(), 0.0, False
    for name, column, centre in zip(names, columns.T, centres, strict=True):
        found, share = best_condition(name, column, inside, centre)
        binary = not centre and set(np.unique(column)) <= {0.0, 1.0} and name[0] not in _ANSWERS
        if share > agreement + (0.01 if plain or not binary else -0.01):  # a binary feature is easier to read
            best, agreement, plain = found, share, binary
    if agreement < _NEARLY:
        return Region()
    return Region(condition=_positive(best, examples, inside), nearly=agreement < _SAME)


def _positive(found: Condition, examples: Outputs, inside: Flags) -> Condition:
    """Replace "not: PART is LABEL" by "PART is raised ERROR", if all outputs of the region are this exception."""
    match found:
        case Condition(feature=("{} is {}", ("type of {}", _) as part, _), negated=True):
            labels = {parts.labels.get(part) for parts, one in zip(examples.parts(), inside, strict=True) if one}
            match list(labels):
                case [("raised {}", _) as label]:
                    return Condition(feature=("{} is {}", part, label))
    return found


def best_condition(name: Feature, column: Array, inside: Flags, centre: int = 0) -> tuple[Condition, float]:
    """Return the best condition on one column, from which `centre` was subtracted, and its agreement with the region.

    The agreement is the mean share of outputs in the region that satisfy it, and of those outside that do not.
    """
    known = ~np.isnan(column)
    values = np.unique(column[known])
    if len(values) < 2:
        above, found = known, Condition(feature=name, intervals=(Interval(),))
        opposite = replace(found, negated=True)
    else:
        order = np.argsort(column[known], kind="stable")
        ranked, inner = column[known][order], inside[known][order]
        ends = np.append(np.flatnonzero(ranked[1:] > ranked[:-1]), len(ranked) - 1)[:-1]
        gain = np.cumsum(inner)[ends] / max(1, inner.sum()) - np.cumsum(~inner)[ends] / max(1, (~inner).sum())
        end = int(ends[np.argmax(np.abs(gain))])
        low, high = float(ranked[end]), float(ranked[end + 1])
        with np.errstate(invalid="ignore"):
            above = column > low
        if name[0] in _STATEMENTS:
            found = Condition(feature=name)
            opposite = replace(found, negated=True)
        else:
            if centre and math.isfinite(low):
                exact = centre + (Fraction(low) if math.isinf(high) else (Fraction(low) + Fraction(high)) / 2)
                cut = math.floor(exact) if low.is_integer() else float(exact)
            else:
                cut = _cut(low, high)
            found = Condition(feature=name, intervals=(Interval(low=cut),))
            opposite = replace(found, negated=True, missing=not known.all())
            if known.all() and not centre:
                opposite = Condition(feature=name, intervals=(Interval(high=cut),))
    hit, spared = float(above[inside].mean()), float((~above[~inside]).mean())
    share = (hit + spared) / 2
    return (found, share) if share >= 0.5 else (opposite, 1 - share)


def _cut(one: float, other: float) -> int | float:
    """Return the midpoint of two numbers with few digits, or else the number outside the region."""
    if isinstance(other, int | np.integer) and max(abs(int(one)), abs(int(other))) > EXACT:
        return int(other)
    low, high = sorted((float(one), float(other)))
    middle = min(max(low / 2 + high / 2, -sys.float_info.max), sys.float_info.max)
    rounded = (float(f"{middle:.{digits}g}") for digits in range(4, 18))
    return next((number for number in rounded if low < number < high), middle)


def query_words(score: Score, threshold: float, examples: Outputs | None) -> tuple[str, bool]:
    """Describe the query of tables whose answers tell the datasets apart best; "" if none does better than chance.

    The second value is True if the words state the outcomes, because the runs on one dataset give no table.
    """
    encoding = score.encoding
    if examples is None or not isinstance(encoding, PartsEncoding) or encoding.table_queries is None:
        return "", False
    answers, half = np.asarray(examples.view(encoding, "queries")), len(examples) // 2
    inside = score(examples) > threshold
    if not half or not answers.shape[1] or not inside.any():
        return "", False
    agreement = [_agreement(column[:half], column[half:]) for column in answers.T]
    best = int(np.argmax(agreement))
    name = encoding.table_queries.table_of(best)
    present = np.array([name in parts.tables for parts in examples.parts()], dtype=np.float64)
    telling = _agreement(present[:half], present[half:])  # whether there is a table at all
    on0, on1 = _of_sides(encoding.table_queries)
    if telling >= max(agreement[best], _AGREEMENT, agreement_by_chance(half, 1)):
        outcomes = [_outcome(parts, name) for parts in examples.parts()]
        return f"{_usual(outcomes[:half])} {on0}, {_usual(outcomes[half:])} {on1}", True
    if agreement[best] < max(_AGREEMENT, agreement_by_chance(half, 1 + encoding.table_queries.tried)):
        return "", False
    first, second = stated(answers[:half, best], answers[half:, best])
    query = shortened(one_line(encoding.table_queries.names[best]))
    return f"{query}: {first} {on0}, {second} {on1}", False


def _outcome(parts: Parts, table: Feature) -> str:
    """Describe an output by whether it contains the table, or else by its type, such as "raised ValueError"."""
    if table in parts.tables:
        return "a table"
    labels = [parts.labels.get(name) for name in (("type of {}", OUTPUT), ("message of {}", OUTPUT))]
    return shortened(one_line(": ".join(words(label) for label in labels if label is not None) or "unknown"))


def _usual(outcomes: list[str]) -> str:
    ((outcome, times),) = Counter(outcomes).most_common(1)
    return outcome if times == len(outcomes) else f"mostly {outcome}"


def _of_sides(queries: Queries) -> tuple[str, str]:
    row0, row1 = queries.targets
    if row0 is None and row1 is not None:
        return "without the record", "with it"
    if row0 is not None and row1 is None:
        return "with the record", "without it"
    return "on d0", "on d1"


def _agreement(first: Array, second: Array) -> float:
    """Return the mean share of answers on either dataset that the best cut identifies; NaN counts as the largest."""
    values = np.concatenate([first, second])
    order = np.argsort(values, kind="stable")
    ranked = np.nan_to_num(values[order], nan=np.inf)
    of_first = np.repeat([True, False], [len(first), len(second)])[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], False))
    if not len(ends):
        return 0.5
    gain = np.cumsum(of_first)[ends] / len(first) - np.cumsum(~of_first)[ends] / len(second)
    return float(0.5 + np.abs(gain).max() / 2)


def agreement_by_chance(n: int, tried: int) -> float:
    """Return an agreement, (1 + D) / 2, that the best of several queries rarely reaches by chance.

    If both samples have one law, P(D >= d) <= e exp(-n d^2) for the Kolmogorov-Smirnov distance (Wei & Dudley 2012, Thm
    1), by a union bound over all queries.
    """
    return 0.5 + 0.5 * float(np.sqrt(np.log(np.e * tried / CHANCE) / n))


def stated(first: Array, second: Array) -> tuple[str, str]:
    """State the answers on both datasets: all answers if those on the two datasets do not overlap."""
    known = [side[~np.isnan(side)] for side in (first, second)]
    before = ""
    if all(map(len, known)) and known[0].max() >= known[1].min() and known[1].max() >= known[0].min():
        known, before = [np.quantile(side, _INNER, method="nearest") for side in known], "mostly "
    return _range(known[0], before), _range(known[1], before)


def _range(answers: Array, before: str) -> str:
    if not len(answers):
        return "no rows"
    low, high = f"{answers.min():.4g}", f"{answers.max():.4g}"
    return before + (low if low == high else f"{low} to {high}")
