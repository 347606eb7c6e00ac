"""Generates pairs of neighbouring datasets from OpenDP's input domains and input metrics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from dpaudit.libraries import distances, neighbours
from dpaudit.libraries.cells import Cells, Node, cells_of, node, parsed
from dpaudit.libraries.subject import UnknownSubject
from dpaudit.pairs.pair import Pair, Relation
from dpaudit.values import Dataset, Foreign, JsonObject

_MAX_VALUES = 100_000  # of a vector, as in a `search` of a config; a larger one would fill the memory
_MAX_ROWS = 1000  # of one user, or of a group that reaches a threshold


def pairs_of(facts: JsonObject, groups: int | None = None) -> list[Pair]:
    """Generate the most promising pairs of neighbouring datasets; exact arithmetic checks their distances."""
    _check_groups(groups, facts)
    domain, metric = parsed(facts["domain"]), parsed(facts["metric"])
    _check_size(domain, facts["d_in"])
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


def _check_size(domain: Node, d_in: Foreign) -> None:
    """Refuse vectors that would fill the memory, before they are made.

    If the domain fixes no size, `d_in` is checked instead, because one dataset gets `d_in` additional records.
    """
    if domain.name != "VectorDomain":
        return
    size = domain.named.get("size", d_in)
    if isinstance(size, int | float) and size > _MAX_VALUES:
        raise UnknownSubject(
            f"dpaudit makes no vectors with {size:,} values: the maximum is {_MAX_VALUES:,}.  Pass smaller pairs: "
            "subject(measurement, pairs=[Pair(d0, d1)])"
        )


def _are_neighbours(d0: Dataset, d1: Dataset, metric: Node, d_in: Foreign) -> bool:
    if metric.name in _OF_MAPS:
        return _within_map(metric.name, d0, d1, d_in)
    if metric.name not in distances.BY_METRIC or isinstance(d0, dict):
        return True
    if not distances.within(metric.name, d0, d1, d_in):
        return False
    return "monotonic" not in metric.parts or len({a < b for a, b in zip(d0, d1, strict=True) if a != b}) <= 1


_OF_MAPS = ("L01InfDistance", "L02InfDistance")


def _within_map(metric: str, d0: Dataset, d1: Dataset, d_in: Sequence[float]) -> bool:
    """Return whether two mappings differ in few keys, by a small norm, and by little in each key."""
    changed, total, largest = d_in
    keys, l1, l2, most = distances.maps(d0, d1)
    norm, limit = (l1, Fraction(total)) if metric == "L01InfDistance" else (l2, Fraction(total) ** 2)
    return keys <= changed and norm <= limit and most <= Fraction(largest)


def _relation(metric: str, domain: Node, d_in: Foreign) -> Relation:
    """Return the neighbouring relation if one record differs."""
    if metric in ("SymmetricDistance", "InsertDeleteDistance") and domain.name == "VectorDomain":
        if domain.named.get("size"):
            return "replace_one" if d_in < 4 else "unspecified"
        return "add_remove" if d_in < 2 else "unspecified"
    return "replace_one" if metric in ("ChangeOneDistance", "HammingDistance") and d_in < 2 else "unspecified"


_NORMS = {"L1Distance": 1.0, "L2Distance": 2.0, "LInfDistance": math.inf}


def _check_groups(groups: Foreign, facts: JsonObject) -> None:
    """Refuse a number of groups that is no number, or that the measurement has no use for."""
    if groups is None:
        return
    if isinstance(groups, bool) or not isinstance(groups, int) or not 1 <= groups <= _MAX_ROWS:
        raise UnknownSubject(f"groups must be a whole number from 1 to {_MAX_ROWS:,}, got {groups!r:.60}")
    if "SymmetricIdDistance" not in facts["metric"]:
        raise UnknownSubject(
            f"groups={groups} is only for data frames whose metric counts users, such as "
            f"dp.symmetric_id_distance(...); the metric is {facts['metric']}, so leave groups out"
        )


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
        return _of_vectors(domain, metric, cells_of(node(domain.parts[0]), hints), d_in)
    if domain.name == "BitVectorDomain" and metric.name == "DiscreteDistance":
        weight = domain.named.get("weight", domain.named.get("max_weight"))
        return neighbours.bits(weight if isinstance(weight, int) else None)
    if domain.name == "MapDomain" and metric.name in _OF_MAPS:
        return _of_maps(domain, facts)
    if "columns" in facts:
        return _of_frames(node(metric.parts[0]) if metric.name == "FrameDistance" else metric, facts, groups)
    raise LookupError(domain.name)


def _of_vectors(domain: Node, metric: Node, cells: Cells, d_in: Foreign) -> Iterator[neighbours.Candidate]:
    size = domain.named.get("size")
    length = size if isinstance(size, int) else None
    if metric.name in _NORMS and cells.limits is not None:
        return neighbours.vectors(cells, length, d_in, norm=_NORMS[metric.name])
    if metric.name in ("SymmetricDistance", "InsertDeleteDistance"):
        return neighbours.added(cells, d_in) if length is None else neighbours.replaced(cells, length, d_in // 2)
    if metric.name in ("ChangeOneDistance", "HammingDistance"):
        return neighbours.replaced(cells, length, d_in)
    raise LookupError(metric.name)


def _of_maps(domain: Node, facts: JsonObject) -> Iterator[neighbours.Candidate]:
    names, numbers = (cells_of(node(domain.named[part])) for part in ("key_domain", "value_domain"))
    if numbers.limits is None:
        raise LookupError(numbers.kind)
    changed, total, largest = facts["d_in"]
    hints = [hint for hint in facts["hints"] if isinstance(hint, int | float)]
    return neighbours.counts(names, numbers, changed, total, largest, hints)


def _of_frames(metric: Node, facts: JsonObject, groups: int | None) -> Iterator[neighbours.Candidate]:
    """Return tables with one additional row, or with one additional user who has many rows."""
    if metric.name not in ("SymmetricDistance", "SymmetricIdDistance"):
        raise LookupError(metric.name)
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
    groups0, groups1 = (Counter(zip(*(table[name] for name in margin["by"]), strict=True)) for table in (d0, d1))
    if not margin["by"]:
        groups0, groups1 = (Counter({(): len(next(iter(table.values())))}) for table in (d0, d1))
    for groups in (groups0, groups1):
        if margin["max_length"] is not None and max(groups.values(), default=0) > margin["max_length"]:
            return False
        if margin["max_groups"] is not None and len(groups) > margin["max_groups"]:
            return False
    if margin["fixed_lengths"]:
        return groups0 == groups1
    return groups0.keys() == groups1.keys() if margin["public"] and margin["by"] else True
