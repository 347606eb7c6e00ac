"""Reads subjects from measurements of Tumult Core.

The claim is the privacy function at the distance `d_in`, in the terms of the output measure, rounded up to a float.
The pairs are datasets of the input domain whose distance in the input metric is at most `d_in`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpaudit.claims import ApproxDP, PureDP, TradeoffFunction, ZeroConcentratedDP
from dpaudit.libraries import neighbours
from dpaudit.libraries.cells import Cells, Node, cells_of
from dpaudit.libraries.inside import tumult as inside
from dpaudit.libraries.subject import LibraryObject, Subject, UnknownSubject
from dpaudit.pairs.pair import Pair, Relation
from dpaudit.values import JsonObject, Record, key

_KINDS = {"integer": "i64", "float": "f64", "string": "String"}


def subject(
    measurement: Any,
    d_in: Any = 1,
    *,
    claim: TradeoffFunction | None = None,
    pairs: Iterable[Pair] | None = None,
    groups: int | None = None,
    name: str = "",
) -> Subject:
    """Read the claim and the pairs of a measurement of `tmlt.core.measurements`.

    Args:
        d_in: Distance of neighbouring datasets in the measurement's input metric.
        claim: The claim; None for that of the privacy function.
        pairs: Pairs of neighbouring datasets; None generates them from the input domain and metric.
        groups: For data frames of users, the maximum number of groups in which one user has rows.
        name: The name of the audit; by default, the class of the measurement and its input domain.

    Raises:
        UnknownSubject: If the claim or the pairs cannot be read; the message says what is known and what to give.
    """
    if not (hasattr(measurement, "privacy_function") and hasattr(measurement, "output_measure")):
        raise UnknownSubject(
            f"subject takes a measurement of Tumult Core, such as AddGeometricNoise(alpha=2), got "
            f"{type(measurement).__name__}"
        )
    if getattr(measurement, "is_interactive", False):
        raise UnknownSubject("an interactive measurement releases a queryable; pass the measurement of one query")
    found = inside.facts(measurement, d_in)
    return Subject(
        mechanism=Measured(measurement),
        claim=claim_of(found) if claim is None else claim,
        pairs=pairs_of(found, groups) if pairs is None else list(pairs),
        name=name or f"{found['name']} {found['domain']['text']}"[:200],
        source=f"tmlt.core {found['version']}, {found['name']}: privacy_function({found['d_in']}) under "
        f"{found['measure']}",
    )


class Measured(LibraryObject, inside=inside):
    """A measurement of Tumult Core as a mechanism."""


def claim_of(facts: JsonObject) -> TradeoffFunction:
    measure, loss = facts["measure"], facts["d_out"]
    if measure not in ("PureDP", "ApproxDP", "RhoZCDP"):
        raise UnknownSubject(
            f"the output measure {measure} is unknown; dpaudit knows PureDP, ApproxDP and RhoZCDP.  Pass the claim: "
            "subject(measurement, claim=PureDP(1.0))"
        )
    epsilon, delta = loss if isinstance(loss, Sequence) else (loss, 0.0)
    if not math.isfinite(epsilon) or not 0 <= delta < 1:
        raise UnknownSubject(f"{facts['name']}: the loss {loss!r} is no claim that could be refuted; pass another d_in")
    if measure == "RhoZCDP":
        return ZeroConcentratedDP(epsilon)
    return ApproxDP(epsilon=epsilon, delta=delta) if delta else PureDP(epsilon)


def pairs_of(facts: JsonObject, groups: int | None = None) -> list[Pair]:
    try:
        found = _candidates(facts, groups)
    except LookupError:
        raise UnknownSubject(
            f"dpaudit does not know how to make pairs for the domain {facts['domain']['text']} with the metric "
            f"{facts['metric']['text']}.  It knows NumpyIntegerDomain and NumpyFloatDomain with AbsoluteDifference, "
            "PandasSeriesDomain and SparkDataFrameDomain of integers, floats and strings with SymmetricDifference and "
            "HammingDistance, and SparkDataFrameDomain with IfGroupedBy of one column.  For other domains pass the "
            "pairs: subject(measurement, pairs=[Pair(d0, d1)])"
        ) from None
    known: dict[str, Relation] = {"SymmetricDifference": "add_remove", "HammingDistance": "replace_one"}
    relation = known.get(facts["metric"]["kind"], "unspecified") if facts["d_in"] == 1 else "unspecified"
    most = 4 if facts["domain"]["kind"] == "frame" else 10  # each run of Spark takes a large part of a second
    pairs: dict[object, Pair] = {}  # unlike in `first_pairs`, both orders of two datasets count
    for d0, d1, label in found:
        if key(d0) != key(d1) and len(pairs) < most:
            pairs.setdefault((key(d0), key(d1)), Pair(d0, d1, relation, label))
    if not pairs:
        raise UnknownSubject(
            f"no two datasets of {facts['domain']['text']} have a distance of at most {facts['d_in']} in "
            f"{facts['metric']['text']}; pass a larger d_in"
        )
    return list(pairs.values())


def _candidates(facts: JsonObject, groups: int | None) -> Iterator[neighbours.Candidate]:
    """Return candidate pairs for a domain and a metric; an unknown combination raises LookupError."""
    domain, metric = facts["domain"], facts["metric"]["kind"]
    try:
        distance = Fraction(str(facts["d_in"]))
    except (ValueError, ZeroDivisionError):
        raise UnknownSubject(f"d_in must be a number or a text such as '1/2', got {facts['d_in']!r}") from None
    if domain["kind"] in ("integer", "float") and metric == "AbsoluteDifference":
        candidates = neighbours.numbers(_cells(domain, facts["hints"]), float(distance))
        return (pair for pair in candidates if neighbours.absolute(pair[0], pair[1]) <= distance)
    if domain["kind"] not in ("series", "frame"):
        raise LookupError(domain["kind"])
    if (records := math.floor(distance)) < 1:
        return iter(())
    if domain["kind"] == "frame":
        return _of_frames(facts, groups)
    cells = _cells(domain["element"], facts["hints"])
    if metric == "SymmetricDifference":
        return neighbours.added(cells, records)
    if metric == "HammingDistance":
        return neighbours.replaced(cells, None, records)
    raise LookupError(metric)


def _of_frames(facts: JsonObject, groups: int | None) -> Iterator[neighbours.Candidate]:
    metric = facts["metric"]
    columns = {name: _cells(described, facts["hints"]) for name, described in facts["domain"]["columns"].items()}
    if not columns:
        raise LookupError("no columns")
    if metric["kind"] == "IfGroupedBy":
        if len(metric["columns"]) != 1 or metric["columns"][0] not in columns:
            raise LookupError(metric["columns"])
        if metric["inner"] == "SymmetricDifference":  # the number of users who differ, each with any rows
            return neighbours.tables(columns, metric["columns"][0], keys_are_public=False, groups=groups)
    if metric["kind"] in ("SymmetricDifference", "IfGroupedBy"):  # the number, or the norm of the numbers, of rows
        return neighbours.tables(columns, None, keys_are_public=False)
    if metric["kind"] == "HammingDistance":
        return (  # the last row of the first table is replaced by the additional row of the second
            (d0, {name: [*d0[name][:-1], d1[name][-1]] for name in d0}, f"{label}, in place of another")
            for d0, d1, label in neighbours.tables(columns, None, keys_are_public=False)
            if next(iter(d0.values()))
        )
    raise LookupError(metric["kind"])


def _cells(described: JsonObject, hints: Sequence[float]) -> Cells:
    kind = _KINDS[described["kind"]]
    cells = cells_of(Node("AtomDomain", (), {"T": kind, "nan": "true" if described["nan"] else "false"}), hints)
    nulls: list[tuple[str, Record]] = [("a null", None)] if described["null"] else []
    infinite = (math.inf, -math.inf)
    return replace(
        cells, unusual=nulls + [case for case in cells.unusual if described["inf"] or case[1] not in infinite]
    )
