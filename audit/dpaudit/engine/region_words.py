"""Describes a rejection region in words: what its outputs have in common.

For synthetic tables, it also describes the query that tells the two datasets apart best, with its answers on both.  For
example: "rows with city = Ulm: 0 without the record, 1 to 4 with it".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpaudit.learning import Score
from dpaudit.learning.attack import sees
from dpaudit.numerics.arrays import AnyArray, Array
from dpaudit.outputs import Outputs, PartsEncoding, PlainEncoding, Queries, derived_names
from dpaudit.outputs.tables import Parts
from dpaudit.result.values import OUTCOME
from dpaudit.text.printable import one_line, shortened

PROBES = 4000
"""Maximum number of outputs of each dataset that are used to describe a region."""

_MAX_LISTED = 12  # maximum number of distinct outputs that are listed one by one
_SAME, _NEARLY = 0.99, 0.85  # agreement at which a feature replaces the score; agreement at which it is also named
_EXACT = 2**53  # a float64 represents all integers up to this absolute value exactly
_ANSWERS = ("number of rows ", "distance of ")  # beginnings of names of numbers, whatever their values
_SEVERAL = re.compile(r"^not: (type of output.*) is .*$")  # a part that has one of several labels
_MAX_GAPS = 3  # maximum number of intervals; more are harder to read than the score
_LEAST_AGREEMENT = 0.6  # minimum mean of the shares of both datasets that a cut of the answers identifies
CHANCE = 0.05  # maximum probability that any query is stated if the table does not depend on the dataset
_INNER = (0.1, 0.9)  # quantiles of the answers that are stated if the answers on both datasets overlap


def describe_region(score: Score, threshold: float, examples: Outputs | None) -> str:
    """Describe the region {score > threshold} in words.

    The words are about the output itself if it is one number or has few labels, or about a feature that separates the
    outputs as well as the score does.  Otherwise they state the score's threshold.
    """
    in_score = f"estimated log-likelihood ratio above {threshold:.3g}"
    if not score.ready or score.encoding is None or examples is None:
        return in_score
    if (unknown := examples.unknown_outputs(score.encoding)) is not None:
        examples = examples.take(np.flatnonzero(~unknown))
    weights = score.weights()
    strongest = score.attacks[max(weights, key=lambda i: weights[i])]
    view = sees(strongest)
    if view == "bits":
        in_score = f"low-order bits of the numbers: {in_score}"
    elif view == "timed":
        in_score = f"running time: {in_score}"
    if isinstance(score.encoding, PlainEncoding) and score.encoding.single and view != "timed":
        return _numbers(score, examples, threshold, in_score)
    inside = score(examples) > threshold
    if not inside.any() or inside.all():
        return in_score
    if isinstance(score.encoding, PartsEncoding):
        named = _labels([parts.labels.get("output", "") for parts in examples.parts()], inside)
        if named:
            return named
    return one_feature(score, examples, inside, in_score)


def _numbers(score: Score, examples: Outputs, threshold: float, in_score: str) -> str:
    """Describe a region of outputs that are one number each."""
    if examples.array is None:
        return in_score
    values = examples.array.reshape(-1)
    values = np.unique(values[~np.isnan(values)] if values.dtype.kind == "f" else values)
    if len(values) == 0:
        return in_score
    if len(values) > PROBES:
        values = values[np.linspace(0, len(values) - 1, PROBES).astype(int)]
    inside = score(Outputs.read(list(values))) > threshold
    whole = bool(np.all(values == np.floor(values)))
    recurring = whole or examples.array.size >= 2 * len(values)  # outputs with continuous noise never recur
    if len(values) <= _MAX_LISTED and recurring and not (values.dtype.kind == "f" and np.isnan(examples.array).any()):
        chosen = ", ".join(_written(value) for value in values[inside])
        return f"output in {{{chosen}}}" if chosen else in_score
    starts = np.flatnonzero(inside & ~np.concatenate([[False], inside[:-1]]))
    stops = np.flatnonzero(inside & ~np.concatenate([inside[1:], [False]]))
    if len(starts) <= _MAX_GAPS:
        words = [interval_words(values, int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
        if "anywhere" in words:  # outputs outside the region are too rare to be among the examples
            return in_score
        if values.dtype.kind == "f" and np.isnan(examples.array).any():
            words += ["nan"] * bool(score(Outputs.read([values.dtype.type(np.nan)]))[0] > threshold)
        return f"output {' or '.join(words)}" if words else in_score
    return (
        one_feature(score, Outputs.read(list(values)), inside, in_score) if 0 < inside.sum() < len(inside) else in_score
    )


def _labels(labels: list[str], inside: npt.NDArray[np.bool_]) -> str:
    """Return the labels that make up the region; "" if labels do not determine the region or are too many."""
    groups = {label: [bool(x) for x, one in zip(inside, labels, strict=True) if one == label] for label in set(labels)}
    if "" in groups or len(groups) > _MAX_LISTED or any(len(set(group)) > 1 for group in groups.values()):
        return ""
    return f"output in {{{', '.join(sorted(label for label, group in groups.items() if group[0]))}}}"


def one_feature(score: Score, examples: Outputs, inside: npt.NDArray[np.bool_], in_score: str) -> str:
    """Describe the region by the original or derived feature whose best cut agrees most with the region."""
    assert score.encoding is not None
    columns = examples.view(score.encoding, "derived")
    names = score.encoding.names
    derived = derived_names(names[: score.encoding.numeric])
    if isinstance(score.encoding, PartsEncoding):  # these features belong to parts of the output, so their names say so
        derived = [name if "output" in name else f"{name} among the parts" for name in derived]
    names = [*names, *derived]
    if isinstance(score.encoding, PartsEncoding) and score.encoding.table_queries is not None:
        names += [
            f"number of {name}" if name.startswith("rows ") else name for name in score.encoding.table_queries.names
        ]
        columns = np.hstack([columns, examples.view(score.encoding, "queries")])
    centres = score.encoding.centre or ()
    if any(centres):  # derived columns are computed after the subtraction of the centres, so their names would be false
        names, columns = score.encoding.names, columns[:, : len(score.encoding.names)]
    centres = (*centres, *[0] * (len(names) - len(centres)))
    best, agreement, plain = "", 0.0, False
    for name, column, centre in zip(names, columns.T, centres, strict=True):
        words, share = best_condition(name, column, inside, centre)
        if words == f"not: {name}":
            words = _positive(words, examples, inside)
        binary = not centre and set(np.unique(column)) <= {0.0, 1.0} and not name.startswith(_ANSWERS)
        if share > agreement + (0.01 if plain or not binary else -0.01):  # a binary feature is easier to read
            best, agreement, plain = words, share, binary
    if agreement >= _SAME:
        return best
    return f"{in_score}; nearly the same as: {best}" if agreement >= _NEARLY else in_score


def _positive(words: str, examples: Outputs, inside: npt.NDArray[np.bool_]) -> str:
    """Replace "not: PART is LABEL" by "PART is raised ERROR", if all outputs of the region are this exception."""
    for part in _SEVERAL.findall(words):
        found = {parts.labels.get(part) for parts, one in zip(examples.parts(), inside, strict=True) if one}
        (other,) = found if len(found) == 1 else (None,)
        if other is not None and other.startswith("raised "):
            return f"{part} is {other}"
    return words


def best_condition(name: str, column: Array, inside: npt.NDArray[np.bool_], centre: int = 0) -> tuple[str, float]:
    """Return the best condition on one column, in words, and its agreement with the region.

    An encoding may have subtracted the integer `centre` from the column.  The agreement is the mean of two shares:
    outputs in the region that satisfy the condition, and outputs outside it that do not.
    """
    known = ~np.isnan(column)
    values = np.unique(column[known])
    if len(values) < 2:
        above = known
        words, opposite = f"{name} is present", f"{name} is missing"
    else:
        order = np.argsort(column[known], kind="stable")
        ranked, inner = column[known][order], inside[known][order]
        ends = np.append(np.flatnonzero(ranked[1:] > ranked[:-1]), len(ranked) - 1)[:-1]
        gain = np.cumsum(inner)[ends] / max(1, inner.sum()) - np.cumsum(~inner)[ends] / max(1, (~inner).sum())
        end = int(ends[np.argmax(np.abs(gain))])
        low, high = float(ranked[end]), float(ranked[end + 1])
        with np.errstate(invalid="ignore"):
            above = column > low
        if not centre and set(values) == {0.0, 1.0} and not name.startswith(_ANSWERS):
            states = " " in name  # the name is a statement, such as "output[1] is odd"
            words, opposite = (name, f"not: {name}") if states else (f"{name} = 1", f"{name} = 0")
        else:
            words, opposite = _sides(name, low, high, centre)
            opposite += "" if known.all() else " or missing"
    hit, spared = float(above[inside].mean()), float((~above[~inside]).mean())
    share = (hit + spared) / 2
    return (words, share) if share >= 0.5 else (opposite, 1 - share)


def _sides(name: str, low: float, high: float, centre: int) -> tuple[str, str]:
    """Describe both sides of a cut between two adjacent values, the upper side first."""
    if centre and math.isfinite(low):
        exact = centre + (Fraction(low) if math.isinf(high) else (Fraction(low) + Fraction(high)) / 2)
        cut = str(math.floor(exact)) if low.is_integer() else f"{float(exact):.17g}"
        return f"{name} above {cut}", f"{name} at most {cut}"
    if math.isinf(low) or math.isinf(high):  # an infinite value has no midpoint with another value
        return f"{name} above {low:.4g}", f"{name} at most {low:.4g}"
    middle = _cut(low, high)
    return f"{name} above {middle}", f"{name} below {middle}"


def _written(value: object) -> str:
    """Write a value of an output; integers keep all digits."""
    if isinstance(value, float | np.floating):
        return f"{value:.0f}" if float(value).is_integer() and abs(float(value)) <= _EXACT else f"{value:.6g}"
    return str(value)


def _cut(one: float, other: float) -> str:
    """Write the midpoint of two numbers with enough digits to separate them, or else the number outside the region."""
    if isinstance(other, int | np.integer) and max(abs(int(one)), abs(int(other))) > _EXACT:
        return str(int(other))
    low, high = sorted((float(one), float(other)))
    middle = low / 2 + high / 2
    if not np.isfinite(middle):
        return f"{float(other):.4g}"
    written = (f"{middle:.{digits}g}" for digits in range(4, 18))
    return next((text for text in written if low < float(text) < high), f"{middle:.17g}")


def interval_words(values: AnyArray, first: int, last: int) -> str:
    """Describe the interval from values[first] to values[last], with ends halfway to the adjacent values."""
    low = _cut(values[first], values[first - 1]) if first > 0 else None
    high = _cut(values[last], values[last + 1]) if last + 1 < len(values) else None
    if low is None and high is None:
        return "anywhere"
    if low is None:
        return f"below {high}"
    return f"above {low}" if high is None else f"between {low} and {high}"


def query_words(score: Score, threshold: float, examples: Outputs | None) -> str:
    """Describe the query of tables whose answers tell the datasets apart best; "" if none does better than chance."""
    encoding = score.encoding
    if examples is None or not isinstance(encoding, PartsEncoding) or encoding.table_queries is None:
        return ""
    answers, half = np.asarray(examples.view(encoding, "queries")), len(examples) // 2
    inside = score(examples) > threshold
    if not half or not answers.shape[1] or not inside.any():
        return ""
    agreement = [_agreement(column[:half], column[half:]) for column in answers.T]
    best = int(np.argmax(agreement))
    name = encoding.table_queries.table_of(best)
    present = np.array([name in parts.tables for parts in examples.parts()], dtype=np.float64)
    telling = _agreement(present[:half], present[half:])  # whether there is a table at all
    on0, on1 = _of_sides(encoding.table_queries)
    if telling >= max(agreement[best], _LEAST_AGREEMENT, agreement_by_chance(half, 1)):
        outcomes = [_outcome(parts, name) for parts in examples.parts()]
        return f"{OUTCOME}{_usual(outcomes[:half])} {on0}, {_usual(outcomes[half:])} {on1}"
    if agreement[best] < max(_LEAST_AGREEMENT, agreement_by_chance(half, 1 + encoding.table_queries.tried)):
        return ""
    first, second = stated(answers[:half, best], answers[half:, best])
    words = shortened(one_line(encoding.table_queries.names[best]))
    return f"{words}: {first} {on0}, {second} {on1}"


def _outcome(parts: Parts, table: str) -> str:
    """Describe an output by whether it contains the table, or else by its type, such as "raised ValueError"."""
    if table in parts.tables:
        return "a table"
    kind, message = parts.labels.get("type of output", "unknown"), parts.labels.get("message of output", "")
    return shortened(one_line(f"{kind}: {message}" if message else kind))


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
    """Return an agreement that the best of several queries rarely reaches by chance.

    The agreement is (1 + D) / 2 with the two-sample Kolmogorov-Smirnov distance D.  If both samples of size n have one
    law, then P(D >= d) <= e exp(-n d^2) (Wei & Dudley 2012, Thm 1).  A union bound covers all queries, also those
    proposed by the outputs: given all outputs together, their division between the datasets is uniformly random.
    """
    return 0.5 + 0.5 * float(np.sqrt(np.log(np.e * tried / CHANCE) / n))


def stated(first: Array, second: Array) -> tuple[str, str]:
    """State the answers on both datasets: all answers if those on the two datasets do not overlap."""
    known = [side[~np.isnan(side)] for side in (first, second)]
    if not all(len(side) for side in known):
        return _range(known[0], ""), _range(known[1], "")
    apart = known[0].max() < known[1].min() or known[1].max() < known[0].min()
    if apart:
        return _range(known[0], ""), _range(known[1], "")
    inner = [np.quantile(side, _INNER, method="nearest") for side in known]
    return _range(inner[0], "mostly "), _range(inner[1], "mostly ")


def _range(answers: Array, before: str) -> str:
    if not len(answers):
        return "no rows"
    low, high = f"{answers.min():.4g}", f"{answers.max():.4g}"
    return before + (low if low == high else f"{low} to {high}")
