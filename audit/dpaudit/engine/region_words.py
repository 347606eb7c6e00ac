"""A rejection region in words: what the outputs in it have in common."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.learning import Score, members
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Outputs, PartsEncoding, PlainEncoding, derived_names

PROBES = 4000
"""Outputs by which a region is put into words, of each dataset at most."""

_MAX_LISTED = 12  # distinct outputs that are listed one by one
_SAME, _NEARLY = 0.99, 0.85  # how far a single feature's cut must agree with the region to be named
_MAX_GAPS = 3  # intervals that are still easier to read than the score


def describe_region(score: Score, threshold: float, examples: Outputs | None) -> str:
    """The region {score > threshold} in words.

    In terms of the output where it is one number or has few labels; otherwise the score's threshold, and the one
    feature that draws nearly the same line, if there is one.
    """
    in_score = f"estimated log-likelihood ratio above {threshold:.3g}"
    if not score.ready or score.encoding is None or examples is None:
        return in_score
    weights = score.weights()
    strongest = score.attacks[max(weights, key=lambda i: weights[i])]
    view = members.sees(strongest)
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
    return _one_feature(score, examples, inside, in_score)


def _numbers(score: Score, examples: Outputs, threshold: float, in_score: str) -> str:
    """The region of outputs that are one number each."""
    if examples.array is None:
        return in_score
    values = examples.array.reshape(-1)
    values = np.unique(values[~np.isnan(values)] if values.dtype.kind == "f" else values)
    if len(values) == 0:
        return in_score
    if len(values) > PROBES:
        values = values[np.linspace(0, len(values) - 1, PROBES).astype(int)]
    inside = score(Outputs.read(values)) > threshold
    if len(values) <= _MAX_LISTED and not (values.dtype.kind == "f" and np.isnan(examples.array).any()):
        chosen = ", ".join(_written(value) for value in values[inside])
        return f"output in {{{chosen}}}" if chosen else in_score
    starts = np.flatnonzero(inside & ~np.concatenate([[False], inside[:-1]]))
    stops = np.flatnonzero(inside & ~np.concatenate([inside[1:], [False]]))
    if len(starts) <= _MAX_GAPS:
        words = [_interval(values, int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
        if "anywhere" in words:  # what is outside is too rare to be among these
            return in_score
        if values.dtype.kind == "f" and np.isnan(examples.array).any():
            words += ["nan"] * bool(score(Outputs.read(np.array([np.nan], values.dtype)))[0] > threshold)
        return f"output {' or '.join(words)}" if words else in_score
    return _one_feature(score, Outputs.read(values), inside, in_score) if 0 < inside.sum() < len(inside) else in_score


def _labels(labels: list[str], inside: npt.NDArray[np.bool_]) -> str:
    """The set of labels that make the region, "" if labels do not decide it or there are too many."""
    groups = {label: [bool(x) for x, one in zip(inside, labels, strict=True) if one == label] for label in set(labels)}
    if "" in groups or len(groups) > _MAX_LISTED or any(len(set(group)) > 1 for group in groups.values()):
        return ""
    return f"output in {{{', '.join(sorted(label for label, group in groups.items() if group[0]))}}}"


def _one_feature(score: Score, examples: Outputs, inside: npt.NDArray[np.bool_], in_score: str) -> str:
    """The feature, or column derived from features, whose best cut is nearest to the region."""
    assert score.encoding is not None
    columns = examples.view(score.encoding, "derived")
    names = score.encoding.names
    names = [*names, *derived_names(names[: score.encoding.numeric])]
    best, agreement, plain = "", 0.0, False
    for name, column in zip(names, columns.T, strict=True):
        words, share = _cut(name, column, inside)
        binary = set(np.unique(column)) <= {0.0, 1.0}
        if share > agreement + (0.01 if plain or not binary else -0.01):  # a yes or no is easier to read
            best, agreement, plain = words, share, binary
    if agreement >= _SAME:
        return best
    return f"{in_score}; nearly the same as: {best}" if agreement >= _NEARLY else in_score


def _cut(name: str, column: Array, inside: npt.NDArray[np.bool_]) -> tuple[str, float]:
    """A condition on one column in words, and how well it agrees with the region: mean of the shares in and out."""
    known = ~np.isnan(column)
    values = np.unique(column[known])
    if len(values) < 2:
        above = known
        words, opposite = f"{name} is there", f"{name} is missing"
    else:
        order = np.argsort(column[known], kind="stable")
        ranked, inner = column[known][order], inside[known][order]
        ends = np.append(np.flatnonzero(ranked[1:] > ranked[:-1]), len(ranked) - 1)[:-1]
        gain = np.cumsum(inner)[ends] / max(1, inner.sum()) - np.cumsum(~inner)[ends] / max(1, (~inner).sum())
        end = int(ends[np.argmax(np.abs(gain))])
        low, high = float(ranked[end]), float(ranked[end + 1])
        with np.errstate(invalid="ignore"):
            above = column > low
        if set(values) == {0.0, 1.0}:
            states = " " in name  # such as "output[1] is odd"; else it is a number or a truth value
            words, opposite = (name, f"not: {name}") if states else (f"{name} = 1", f"{name} = 0")
        else:
            words, opposite = _sides(name, low, high)
            opposite += "" if known.all() else " or missing"
    hit, spared = float(above[inside].mean()), float((~above[~inside]).mean())
    share = (hit + spared) / 2
    return (words, share) if share >= 0.5 else (opposite, 1 - share)


def _sides(name: str, low: float, high: float) -> tuple[str, str]:
    """A cut between two neighbouring values in words: what lies above it, and what lies below."""
    if math.isinf(low) or math.isinf(high):  # there is no middle
        return f"{name} above {low:.4g}", f"{name} at most {low:.4g}"
    middle = low / 2 + high / 2
    return f"{name} above {middle:.4g}", f"{name} below {middle:.4g}"


def _written(value: Any) -> str:
    """A value of an output, integers in full."""
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def _between(inside: Any, outside: Any) -> Any:
    """A number between two values, one of which may be infinite; then it is the one outside."""
    middle = inside / 2 + outside / 2
    return middle if np.isfinite(middle) else outside


def _interval(values: np.ndarray[Any, Any], first: int, last: int) -> str:
    low = _between(values[first], values[first - 1]) if first > 0 else None
    high = _between(values[last], values[last + 1]) if last + 1 < len(values) else None
    if low is None and high is None:
        return "anywhere"
    if low is None:
        return f"below {high:.4g}"
    return f"above {low:.4g}" if high is None else f"between {low:.4g} and {high:.4g}"
