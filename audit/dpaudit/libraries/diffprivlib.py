"""Reads subjects from mechanisms, tools and models of diffprivlib.

The claim is the epsilon and the delta of the object, and the pairs follow from its sensitivity, bounds and categories.
Sensitivities are for one replaced record, but for histograms for one additional record.  A replaced record of k-means
must stay in its cluster, so only k-means with one cluster has generated pairs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.libraries import neighbours
from dpaudit.libraries.cells import FLOATS, INTEGERS, Cells
from dpaudit.libraries.inside import diffprivlib as inside
from dpaudit.libraries.subject import LibraryObject, Subject, UnknownSubject, stated_claim
from dpaudit.pairs.pair import Pair, Relation
from dpaudit.values import JsonObject

_WHOLE = ("Geometric", "GeometricTruncated", "GeometricFolded", "GaussianDiscrete")
_ADDED = ("histogram", "histogram2d", "histogramdd")
_CLASSIFIERS = ("GaussianNB", "LogisticRegression")
_BOUNDED = ("mean", "nanmean", "sum", "nansum", "var", "nanvar", "std", "nanstd", "median", "quantile", "percentile")
_REQUIRED: Mapping[str, Sequence[str]] = {
    **dict.fromkeys((*_BOUNDED, "GaussianNB", "StandardScaler", "KMeans"), ("bounds",)),
    **dict.fromkeys(_ADDED, ("range",)),
    "PCA": ("bounds", "data_norm"),
    "LogisticRegression": ("data_norm",),
    "LinearRegression": ("bounds_X", "bounds_y"),
}
"""Arguments that diffprivlib computes from the data if they are missing.  Its epsilon does not cover this."""

_FEATURES = 2  # number of features of a model whose bounds do not state this number


def subject(
    made: Any,
    *,
    claim: TradeoffFunction | None = None,
    pairs: Iterable[Pair] | None = None,
    name: str = "",
    **arguments: Any,
) -> Subject:
    """Read the claim and the pairs of a mechanism, a tool or a model.

    Args:
        made: A mechanism such as `Laplace(epsilon=1, sensitivity=1)`, a tool such as `tools.mean`, or a model such as
            `GaussianNB(epsilon=1, bounds=(0, 1))`.
        claim: The claim to audit; None reads the epsilon and the delta of the object.
        pairs: Pairs of neighbouring datasets; None generates pairs.
        name: The name of the audit; by default, the name of the class or the function.
        **arguments: The arguments of a tool, such as epsilon=1 and bounds=(0, 1).

    Raises:
        UnknownSubject: If the claim or the pairs cannot be read; the message says what to give.
    """
    if arguments or (callable(made) and not isinstance(made, type | functools.partial) and not hasattr(made, "fit")):
        made = functools.partial(made, **arguments)
    if isinstance(made, type):
        raise UnknownSubject(f"{made.__name__} is a class; pass an object, such as {made.__name__}(epsilon=1, ...)")
    found = inside.facts(made)
    return Subject(
        mechanism=Made(made),
        claim=claim_of(found) if claim is None else claim,
        pairs=pairs_of(found) if pairs is None else list(pairs),
        name=name or f"diffprivlib {found['name']}",
        source=f"diffprivlib {found['version']}, {found['name']}: its epsilon and delta",
    )


class Made(LibraryObject, inside=inside):
    """An object of diffprivlib as a mechanism."""


def claim_of(facts: JsonObject) -> TradeoffFunction:
    """Return the claim: (epsilon, delta)-DP, which diffprivlib's documentation promises for each object."""
    name = facts["name"]
    if facts["kind"] == "model" and name not in inside.MODELS:
        raise UnknownSubject(
            f"dpaudit does not know what {name} releases; known models are {', '.join(inside.MODELS)}; for "
            "other models, write a mechanism and audit it with dpaudit.audit"
        )
    _refuse_missing(facts)
    return stated_claim(name, facts.get("epsilon"), facts["delta"])


def _refuse_missing(facts: JsonObject) -> None:
    """Refuse an object whose epsilon is no claim, although it can be audited against a claim that somebody states."""
    name, bins = facts["name"], facts.get("bins")
    has_edges = isinstance(bins, list) and (name == "histogram" or all(isinstance(edges, list) for edges in bins))
    missing = " and ".join(
        argument
        for argument in _REQUIRED.get(name, ())
        if facts.get(argument) is None or (argument == "range" and None in facts[argument])
        if not has_edges and not (name == "PCA" and argument == "bounds" and facts.get("centered"))
    )
    if missing:
        raise UnknownSubject(
            f"{name} computes {missing} from the data, which its epsilon does not cover; pass {missing}, or state a "
            "claim and pairs, to audit it as it is"
        )


def pairs_of(facts: JsonObject) -> list[Pair]:
    if facts["kind"] == "mechanism":
        return neighbours.first_pairs(_inputs(facts), "unspecified", most=8)
    _refuse_missing(facts)
    relation: Relation = "add_remove" if facts["name"] in _ADDED else "replace_one"
    return neighbours.first_pairs(_records(facts, relation), relation, most=8)


def _unknown(facts: JsonObject) -> UnknownSubject:
    return UnknownSubject(
        f"dpaudit does not know how to make pairs for diffprivlib's {facts['name']}.  It needs a sensitivity, "
        "categories, bounds, a range or a data_norm, and the bounds of a tool or of a target must be two numbers.  "
        "Pass the pairs: subject(made, pairs=[Pair(d0, d1)])"
    )


def _inputs(facts: JsonObject) -> Iterator[neighbours.Candidate]:
    if "values" in facts:
        values = facts["values"]
        return neighbours.choices(Cells(usual=values, kind=type(values[0]).__name__))
    sensitivity = facts.get("sensitivity")
    if not isinstance(sensitivity, int | float) or facts["name"] == "Bingham":
        raise _unknown(facts)
    if facts["name"] == "Wishart":
        return _second_moments(float(sensitivity))
    if "utility" in facts:
        space = _unbounded([0.0], sensitivity)
        candidates = list(neighbours.vectors(space, len(facts["utility"]), sensitivity, norm=math.inf))
        close = _near(facts, candidates, "LInfDistance", sensitivity)
        one_way = (pair for pair in close if len({a < b for a, b in zip(*pair[:2], strict=True) if a != b}) == 1)
        return one_way if facts["monotonic"] else close
    whole, distance = facts["name"] in _WHOLE, sensitivity
    lower, upper = facts.get("lower", -math.inf), facts.get("upper", math.inf)
    cells = _unbounded([0, 10] if whole else [0.0, 10.0], sensitivity, whole=whole)
    if math.isfinite(lower) and math.isfinite(upper):
        cells = _between(lower, upper, whole=whole)
        distance = min(sensitivity, cells.high - cells.low)
    pairs = [pair for pair in neighbours.numbers(cells, distance) if all(lower <= x <= upper for x in pair[:2])]
    return _near(facts, pairs, "AbsoluteDistance", distance)


def _second_moments(norm: float) -> Iterator[neighbours.Candidate]:
    """Yield second moments of two features, X^T X, for data with and without one record of the largest norm."""
    square, zeros = norm**2, [0.0, 0.0]
    one, two = [[square, 0.0], zeros], [[square, 0.0], [0.0, square]]
    yield one, two, "a record orthogonal to the data"
    yield [zeros, zeros], one, "the only record"
    yield one, [[2 * square, 0.0], zeros], "the same record twice"


def _near(
    facts: JsonObject, candidates: Sequence[neighbours.Candidate], metric: str, distance: float
) -> Iterator[neighbours.Candidate]:
    """Leave out pairs that differ by more than the distance, for example because of rounding errors."""
    close = [pair for pair in candidates if neighbours.within(metric, pair[0], pair[1], distance)]
    largest = max((neighbours.DISTANCES[metric](d0, d1) for d0, d1, _ in close), default=Fraction(0))
    if largest == 0 or 2 * largest < Fraction(distance):
        raise UnknownSubject(
            f"dpaudit finds no inputs of {facts['name']} that differ by about {distance!r}, the largest difference "
            "that its sensitivity and bounds allow; pass the pairs: subject(made, pairs=[Pair(d0, d1)])"
        )
    return iter(close)


def _unbounded(usual: Sequence[float], sensitivity: float, *, whole: bool = False) -> Cells:
    """Return numbers in a range that is at least eight times the sensitivity."""
    limits: tuple[float, float] = INTEGERS["i32"] if whole else (-1e12, 1e12)
    if 4 * sensitivity > limits[1]:
        reach = 4 * sensitivity if whole else min(4 * sensitivity, FLOATS["f64"][1])
        limits = (-reach, reach)
    return Cells(usual=usual, kind="i32" if whole else "f64", limits=limits)


def _between(low: float, high: float, *, whole: bool = False, unusual: Sequence[tuple[str, float]] = ()) -> Cells:
    middle = (low + high) / 2
    usual = [math.ceil(low), math.floor(middle), math.floor(high)] if whole else [float(low), middle, float(high)]
    low, high = usual[0], usual[-1]
    return Cells(usual=usual, unusual=unusual, kind="i64" if whole else "f64", limits=(low, high))


def _records(facts: JsonObject, relation: Relation) -> Iterator[neighbours.Candidate]:
    if facts["name"] == "KMeans" and facts.get("n_clusters") != 1:
        raise UnknownSubject(
            "dpaudit makes pairs for KMeans with n_clusters=1 only; pass the pairs: subject(made, pairs=[Pair(d0, d1)])"
        )
    if facts["name"] in _CLASSIFIERS:
        return _classified(_rows(facts), same_class=facts["name"] == "GaussianNB")
    wide = facts["kind"] == "model" or facts["name"] in ("histogram2d", "histogramdd")
    cells = _rows(facts) if wide else _column(facts)
    if relation == "add_remove":
        return neighbours.added(cells, 1)
    if facts["name"] == "LinearRegression":  # one of two records has much influence on the coefficients
        return chain(neighbours.replaced(cells, 2, 1), neighbours.replaced(cells, None, 1))
    return neighbours.replaced(cells, None, 1)


def _classified(features: Cells, *, same_class: bool) -> Iterator[neighbours.Candidate]:
    """Yield pairs of datasets that differ in one row.  Rows end with a class, and all datasets have both classes."""
    low, high = features.low, features.high
    mixed = [[*low, 0.0], [*high, 1.0], [*low, 1.0], [*high, 0.0]] * 2
    apart = [[*low, 0.0], [*high, 1.0]] * 4
    moves = [([*low, 0.0], [*high, 0.0], "one above"), ([*high, 1.0], [*low, 1.0], "one below")]
    if not same_class:
        moves += [([*low, 0.0], [*low, 1.0], "another class"), ([*low, 0.0], [*high, 1.0], "another row")]
    for rest, words in ((apart, "two separate classes"), (mixed, "two equal classes")):
        for old, new, label in moves:
            yield [*rest, old], [*rest, new], f"{label}, {words}"


def _column(facts: JsonObject) -> Cells:
    if facts["name"] == "count_nonzero":
        return Cells(usual=[0.0, 1.0], kind="f64")
    bounds = facts.get("bounds") or facts.get("range")
    if bounds is None or isinstance(bounds[0], list):  # bounds of each column, for a tool with an axis
        raise _unknown(facts)
    low, high = bounds
    far = 1000 * (high - low)
    unusual = [("a value above the bounds", high + far), ("a value below the bounds", low - far)]
    if facts["name"].startswith("nan"):
        unusual.insert(0, ("NaN", math.nan))
    return _between(low, high, unusual=unusual)


def _rows(facts: JsonObject) -> Cells:
    """Return rows in which all features are low, in the middle, or high; the last value is the target of a model."""
    bounds = facts.get("bounds_X") or facts.get("bounds") or facts.get("range")
    if bounds is None and facts.get("data_norm"):
        reach = facts["data_norm"] / math.sqrt(_FEATURES)
        bounds = (-reach, reach)
    if bounds is None:
        raise _unknown(facts)
    if facts["kind"] == "tool":
        low, high = map(list, zip(*bounds, strict=True))
    else:
        low, high = (list(bound) if isinstance(bound, list) else [bound] * _FEATURES for bound in bounds)
    middle = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
    if facts["name"] == "LinearRegression":
        targets = np.ravel(facts.get("bounds_y") or ())
        if len(targets) != 2:
            raise _unknown(facts)
        low, middle, high = [*low, targets[0]], [*middle, targets[1]], [*high, targets[1]]
    return Cells(usual=[[float(x) for x in row] for row in (low, middle, high)], kind="row")
