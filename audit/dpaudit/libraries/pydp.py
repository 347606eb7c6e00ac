"""Reads subjects from algorithms of PyDP, the Python package of Google's C++ library.

The claim is the epsilon and the delta that the algorithm reports.  Neighbours differ in one additional record, since by
default each user contributes one record.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any

from dpaudit.claims import TradeoffFunction
from dpaudit.libraries import neighbours
from dpaudit.libraries.cells import Cells
from dpaudit.libraries.inside import pydp as inside
from dpaudit.libraries.subject import LibraryObject, Subject, UnknownSubject, stated_claim
from dpaudit.pairs.pair import Pair
from dpaudit.values import JsonObject


def subject(algorithm: Any, *, pairs: Iterable[Pair] | None = None, name: str = "", **arguments: Any) -> Subject:
    """Read the claim and the pairs of an algorithm.

    Args:
        algorithm: A class such as `pydp.algorithms.laplacian.BoundedSum`.
        pairs: Pairs of neighbouring datasets; None generates pairs between the bounds of the algorithm.
        name: The name of the audit; by default, the name of the class.
        **arguments: The arguments of the class, such as epsilon=1.0, lower_bound=0 and upper_bound=10.

    Raises:
        UnknownSubject: If `algorithm` is not a class, or if the algorithm states no claim for one record.
    """
    if not isinstance(algorithm, type):
        raise UnknownSubject(
            f"subject takes a class and its arguments, such as subject(BoundedSum, epsilon=1.0, lower_bound=0, "
            f"upper_bound=10), got {type(algorithm).__name__}"
        )
    made = functools.partial(algorithm, **arguments)
    found = inside.facts(made)
    return Subject(
        mechanism=Algorithm(made),
        claim=claim_of(found),
        pairs=pairs_of(found) if pairs is None else list(pairs),
        name=name or f"PyDP {found['name']}",
        source=f"python-dp {found['version']}, {found['name']}: its epsilon and delta",
    )


class Algorithm(LibraryObject, inside=inside):
    """An algorithm of PyDP as a mechanism."""


def claim_of(facts: JsonObject) -> TradeoffFunction:
    """Return the claim: (epsilon, delta)-DP for one additional record."""
    return stated_claim(facts["name"], facts["epsilon"], facts["delta"])


def pairs_of(facts: JsonObject) -> list[Pair]:
    """Generate pairs of neighbouring datasets: one additional record at, between or beyond the bounds."""
    if facts["name"].startswith("Bounded") and facts.get("lower_bound") is None:
        raise UnknownSubject(
            f"{facts['name']} without lower_bound and upper_bound estimates its bounds, which fails for few records; "
            "pass both bounds, or large datasets: subject(algorithm, pairs=[Pair(d0, d1)])"
        )
    bounds = facts.get("lower_bound"), facts.get("upper_bound")
    low, high = (float(default if bound is None else bound) for bound, default in zip(bounds, (0, 10), strict=True))
    far = 1000 * (high - low)
    numbers = [low, (low + high) / 2, high, high + far, low - far]
    if facts["dtype"].startswith("int"):
        numbers = [math.floor(number) for number in numbers]
    *usual, above, below = numbers
    unusual = [("a value above the bounds", above), ("a value below the bounds", below)]
    cells = Cells(usual=usual, unusual=unusual, kind=facts["dtype"])
    return neighbours.first_pairs(neighbours.added(cells, 1), "add_remove", most=8)
