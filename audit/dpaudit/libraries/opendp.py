"""Reads subjects from measurements of OpenDP.

The claim is the privacy map at the distance `d_in`, in the terms of the output measure.  The pairs are datasets of the
input domain whose distance in the input metric is at most `d_in`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from dpaudit.claims import ApproxDP, PrivacyLoss, PureDP, RenyiDP, TradeoffFunction, ZeroConcentratedDP, compose
from dpaudit.libraries import neighbours
from dpaudit.libraries.cells import Node, cells_of, parsed
from dpaudit.libraries.inside import opendp as inside
from dpaudit.libraries.subject import LibraryObject, Subject, UnknownSubject
from dpaudit.pairs.pair import Pair, Relation
from dpaudit.text import shortened
from dpaudit.values import Dataset, JsonObject, RawOutputs

_MAX_VALUES = 100_000  # of a vector, as in a `search` of a config; a larger one would fill the memory
_MAX_ROWS = 1000  # of one user, or of a group that reaches a threshold

_ADDED = ("SymmetricDistance", "InsertDeleteDistance")  # metrics that count added and removed records
_REPLACED = ("ChangeOneDistance", "HammingDistance")
_OF_MAPS = ("L01InfDistance", "L02InfDistance")


def subject(
    measurement: Any,
    d_in: Any = 1,
    *,
    claim: TradeoffFunction | None = None,
    pairs: Iterable[Pair] | None = None,
    release: Callable[[Any], Any] | None = None,
    groups: int | None = None,
    name: str = "",
) -> Subject:
    """Read the claim and the pairs of a measurement.

    Args:
        d_in: Distance of neighbouring datasets in the measurement's input metric.  A domain of vectors with a fixed
            size needs d_in=2 with the symmetric distance, because no two vectors of one size have the distance 1.
        claim: The claim; None for that of the privacy map.
        pairs: Pairs of neighbouring datasets; None generates them from the input domain and metric.
        release: A function that converts the release to the output, such as one that queries a queryable.
        groups: For data frames of users, the maximum number of groups in which one user has rows, such as the limit of
            the query's truncation.  One pair then has a user with a row in each of these groups.
        name: The name of the audit; by default, the constructors of the measurement and its input domain.

    Raises:
        UnknownSubject: If the claim or the pairs cannot be read; the message says what is known and what to give.
    """
    if not (hasattr(measurement, "output_measure") and hasattr(measurement, "map") and callable(measurement)):
        raise UnknownSubject(
            f"subject takes a measurement of OpenDP, got {type(measurement).__name__}; a transformation becomes a "
            "measurement with `>> dp.m.then_laplace(scale)`, and an odometer has no fixed claim"
        )
    inside.enable()
    found = inside.facts(measurement, d_in)
    return Subject(
        mechanism=Measured(measurement, release),
        claim=claim_of(found) if claim is None else claim,
        pairs=pairs_of(found, groups) if pairs is None else list(pairs),
        name=name or f"{found['name']} {found['domain']}",
        source=f"OpenDP {found['version']}, {found['name']}: map({found['d_in']!r}) under {found['measure']}",
    )


@dataclass(frozen=True, slots=True)
class Measured(LibraryObject, inside=inside):
    """A measurement of OpenDP as a mechanism."""

    release: Callable[[Any], Any] | None = None

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        return inside.sample(self.made, dataset, n, self.release)

    def __reduce__(self) -> tuple[Callable[..., Measured], tuple[object, ...]]:
        try:
            text = import_module("opendp.mod").serialize(self.made)
        except Exception as error:  # such as an argument that is a function, or an early release of OpenDP
            raise TypeError(f"OpenDP cannot serialise this measurement: {error}") from error
        return _restored, (text, self.release)


def _restored(text: str, release: Callable[[Any], Any] | None) -> Measured:
    inside.enable()
    return Measured(import_module("opendp.mod").deserialize(text), release)


def claim_of(facts: JsonObject) -> TradeoffFunction:
    """Convert a privacy loss of OpenDP to a claim.  Each conversion states its theorem."""
    # Objects of early releases do not tell how they were made, but the config of a call does.
    amplification = "make_population_amplification"
    if facts.get("of_population") or amplification in facts.get("config", ""):
        raise UnknownSubject(
            f"{amplification} does not sample: its privacy map is about two neighbouring populations, of which each "
            "dataset is a random sample, and is no claim about two given datasets.  Audit the measurement that it "
            "amplifies, or write a function that samples from a population and then calls the measurement"
        )
    try:
        return _CLAIMS[(measure := parsed(facts["measure"])).name](measure, facts["d_out"])
    except KeyError as unknown:
        raise UnknownSubject(
            f"the output measure {unknown.args[0]} is unknown; known: {', '.join(sorted(_CLAIMS))}.  Pass the claim: "
            "subject(measurement, claim=...)"
        ) from None
    except (ValueError, TypeError) as error:
        raise UnknownSubject(
            f"map({facts['d_in']!r}) is {shortened(repr(facts['d_out']), 80)} under {facts['measure']}, which is no "
            f"claim that could be refuted: {error}"
        ) from None


def _renyi(measure: Node, d_out: Any) -> TradeoffFunction:
    """Read a curve epsilon(order) at finitely many orders, whose bounds the bound for all orders implies."""
    points = [(order, epsilon) for order, epsilon in d_out if math.isfinite(epsilon)]
    return RenyiDP(order=[order for order, _ in points], epsilon=[epsilon for _, epsilon in points])


def _profile(measure: Node, d_out: Any) -> TradeoffFunction:
    """Read a profile delta(epsilon) at finitely many epsilons (Dong, Roth & Su 2022, Prop. 6), or a pair."""
    if len(d_out) == 2 and not isinstance(d_out[0], list):
        return ApproxDP(epsilon=d_out[0], delta=d_out[1])
    epsilon, delta = np.transpose(d_out)
    return PrivacyLoss(epsilon=epsilon, delta=np.minimum.accumulate(np.minimum(delta, 1.0)))


def _approximate(measure: Node, d_out: Any) -> TradeoffFunction:
    """Compose the bound d of an inner measure with (0, delta)-DP: it holds outside events of probability delta.

    Theorem:
        Let P = (1 - delta) P' + delta R and Q = (1 - delta) Q' + delta S, where tests of P' against Q' have errors of
        at least f.  A test of P against Q with type I error alpha has at most alpha / (1 - delta) on P', so its type II
        error is at least (1 - delta) f(alpha / (1 - delta)) for alpha <= 1 - delta, and else 0.  R and S can attain
        this curve.  Bun & Steinke 2016, Def. 8.1, define approximate zCDP so; for the max divergence, it is (epsilon,
        delta)-DP.
    """
    loss, delta = d_out
    inner = measure.parts[0] if measure.name == "Approximate" else "MaxDivergence"
    if not isinstance(inner, Node):
        inner = Node(str(inner))
    return compose(_CLAIMS[inner.name](inner, loss), ApproxDP(epsilon=0.0, delta=delta))


_CLAIMS: Mapping[str, Callable[[Node, Any], TradeoffFunction]] = {
    "MaxDivergence": lambda _, epsilon: PureDP(epsilon),  # D_inf <= epsilon in both orders, by definition
    "ZeroConcentratedDivergence": lambda _, rho: ZeroConcentratedDP(rho),  # Bun & Steinke 2016, Def. 1.1
    "RenyiDivergence": _renyi,
    "SmoothedMaxDivergence": _profile,
    "FixedSmoothedMaxDivergence": _approximate,
    "Approximate": _approximate,
}


def pairs_of(facts: JsonObject, groups: int | None = None) -> list[Pair]:
    """Generate the most promising pairs of neighbouring datasets; exact arithmetic checks their distances."""
    domain, metric = parsed(facts["domain"]), parsed(facts["metric"])
    if groups is not None and (isinstance(groups, bool) or not isinstance(groups, int) or not 1 <= groups <= _MAX_ROWS):
        raise UnknownSubject(f"groups must be a whole number from 1 to {_MAX_ROWS:,}, got {groups!r:.60}")
    if groups is not None and "SymmetricIdDistance" not in facts["metric"]:
        raise UnknownSubject(
            f"groups={groups} is only for data frames whose metric counts users, such as "
            f"dp.symmetric_id_distance(...); the metric is {facts['metric']}, so leave groups out"
        )
    # a domain without a size has datasets with `d_in` additional records
    size = domain.named.get("size", facts["d_in"]) if domain.name == "VectorDomain" else 0
    if isinstance(size, int | float) and size > _MAX_VALUES:
        raise UnknownSubject(
            f"dpaudit makes no vectors with {size:,} values: the maximum is {_MAX_VALUES:,}.  Pass smaller pairs: "
            "subject(measurement, pairs=[Pair(d0, d1)])"
        )
    try:
        found = _candidates(domain, metric, facts, groups)
    except LookupError:
        raise UnknownSubject(
            f"dpaudit does not know how to make pairs for the domain {facts['domain']} with the metric "
            f"{facts['metric']}.  It knows AtomDomain with AbsoluteDistance or DiscreteDistance, VectorDomain of atoms "
            "or options with L1, L2, LInf, Symmetric, InsertDelete, ChangeOne or HammingDistance, BitVectorDomain with "
            "DiscreteDistance, MapDomain with L01Inf or L02InfDistance, and FrameDomain with SymmetricDistance or "
            "SymmetricIdDistance.  For other domains pass the pairs: subject(measurement, pairs=[Pair(d0, d1)])"
        ) from None
    relation = _relation(metric.name, domain, facts["d_in"])
    close = (pair for pair in found if _are_neighbours(pair[0], pair[1], metric, facts["d_in"]))
    pairs = neighbours.first_pairs(close, relation, most=10)
    if not pairs:
        raise UnknownSubject(
            f"no two datasets of {facts['domain']} have a distance of at most {facts['d_in']!r} in {facts['metric']}"
            + ("; pass d_in=2 for one replaced record" if domain.named.get("size") else "; pass a larger d_in")
        )
    return pairs


def _are_neighbours(d0: Dataset, d1: Dataset, metric: Node, d_in: Any) -> bool:
    if metric.name in _OF_MAPS:  # few keys differ, by a small norm, and by little in each key
        changed, total, largest = d_in
        keys, l1, l2, most = neighbours.map_distances(d0, d1)
        norm, limit = (l1, Fraction(total)) if metric.name == "L01InfDistance" else (l2, Fraction(total) ** 2)
        return keys <= changed and norm <= limit and most <= Fraction(largest)
    if metric.name not in neighbours.DISTANCES or isinstance(d0, dict):
        return True
    if not neighbours.within(metric.name, d0, d1, d_in):
        return False
    return "monotonic" not in metric.parts or len({a < b for a, b in zip(d0, d1, strict=True) if a != b}) <= 1


def _relation(metric: str, domain: Node, d_in: Any) -> Relation:
    """Return the neighbouring relation if one record differs."""
    if metric in _ADDED and domain.name == "VectorDomain":
        if domain.named.get("size"):
            return "replace_one" if d_in < 4 else "unspecified"
        return "add_remove" if d_in < 2 else "unspecified"
    return "replace_one" if metric in _REPLACED and d_in < 2 else "unspecified"


def _candidates(domain: Node, metric: Node, facts: JsonObject, groups: int | None) -> Iterator[neighbours.Candidate]:
    """Return candidate pairs for a domain and a metric; an unknown combination raises LookupError."""
    d_in, hints = facts["d_in"], facts["hints"]
    if domain.name in ("AtomDomain", "OptionDomain", "AllDomain"):
        cells = cells_of(domain, hints)
        if metric.name == "AbsoluteDistance" and cells.limits is not None:
            return neighbours.numbers(cells, d_in)
        if metric.name == "DiscreteDistance":
            return neighbours.choices(cells)
    if domain.name == "VectorDomain":
        cells, size = cells_of(domain.parts[0], hints), domain.named.get("size")
        length = size if isinstance(size, int) else None
        norm = {"L1Distance": 1.0, "L2Distance": 2.0, "LInfDistance": math.inf}.get(metric.name)
        if norm is not None and cells.limits is not None:
            return neighbours.vectors(cells, length, d_in, norm=norm)
        if metric.name in _ADDED:
            return neighbours.added(cells, d_in) if length is None else neighbours.replaced(cells, length, d_in // 2)
        if metric.name in _REPLACED:
            return neighbours.replaced(cells, length, d_in)
    if domain.name == "BitVectorDomain" and metric.name == "DiscreteDistance":
        weight = domain.named.get("weight", domain.named.get("max_weight"))
        return neighbours.bits(weight if isinstance(weight, int) else None)
    if domain.name == "MapDomain" and metric.name in _OF_MAPS:
        names, values = (cells_of(domain.named[part]) for part in ("key_domain", "value_domain"))
        if values.limits is None:
            raise LookupError(values.kind)
        changed, total, largest = d_in
        numbers = [hint for hint in hints if isinstance(hint, int | float)]
        return neighbours.counts(names, values, changed, total, largest, numbers)
    if "columns" in facts:
        return _of_frames(metric.parts[0] if metric.name == "FrameDistance" else metric, facts, groups)
    raise LookupError(domain.name)


def _of_frames(metric: object, facts: JsonObject, groups: int | None) -> Iterator[neighbours.Candidate]:
    if not isinstance(metric, Node) or metric.name not in ("SymmetricDistance", "SymmetricIdDistance"):
        raise LookupError(metric)
    if not isinstance(facts["d_in"], int) or facts["d_in"] < 1:
        raise UnknownSubject(
            "pairs of data frames differ in one user or in one row, which needs an integer d_in >= 1, got "
            f"d_in={facts['d_in']!r}; for other distances pass the pairs: subject(measurement, d_in, pairs=[...])"
        )
    columns = {}
    for name, (text, nullable) in facts["columns"].items():
        column = parsed(text)
        if column.name not in ("AtomDomain", "AllDomain", "OptionDomain"):  # the name of a type
            column = Node("AtomDomain", (), {"T": {"str": "String"}.get(column.name, column.name)})
        cells = cells_of(column)
        columns[name] = replace(cells, unusual=[*([("a null", None)] if nullable else []), *cells.unusual])
    user: str | None = None
    if metric.name == "SymmetricIdDistance":
        identifiers = [part for part in (*metric.named.values(), *metric.parts) if isinstance(part, Node)]
        user = next((str(part) for described in identifiers for part in described.parts if part in columns), None)
        if user is None:
            raise LookupError(metric.name)
    thresholds = [hint for hint in facts["hints"] if isinstance(hint, int) and 0 < hint <= _MAX_ROWS]
    public = any(margin["public"] for margin in facts["margins"])
    found = neighbours.tables(columns, user, keys_are_public=public, thresholds=thresholds[:2], groups=groups)
    return (pair for pair in found if all(_fits(margin, pair[0], pair[1]) for margin in facts["margins"]))


def _fits(margin: JsonObject, d0: Dataset, d1: Dataset) -> bool:
    """Return whether two tables are members of a domain with this margin, and whether they share its public groups."""
    longest, most = (math.inf if margin[name] is None else margin[name] for name in ("max_length", "max_groups"))
    groups = []
    for table in (d0, d1):
        rows = range(len(next(iter(table.values()))))
        groups.append(Counter(tuple(table[name][row] for name in margin["by"]) for row in rows))
        if max(groups[-1].values(), default=0) > longest or len(groups[-1]) > most:
            return False
    if margin["fixed_lengths"]:
        return groups[0] == groups[1]
    return not (margin["public"] and margin["by"]) or groups[0].keys() == groups[1].keys()
