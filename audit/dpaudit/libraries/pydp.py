"""Reads subjects from algorithms of PyDP, the Python package of Google's C++ library.

The claim is the epsilon and the delta that the algorithm reports.  Neighbours differ in one additional record, since
the default bounds on contributions let each user contribute one record.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpaudit.claims import ApproxDP, PureDP, TradeoffFunction
from dpaudit.libraries import neighbours
from dpaudit.libraries.cells import Cells
from dpaudit.libraries.inside import pydp as inside
from dpaudit.libraries.subject import Subject, UnknownSubject
from dpaudit.pairs.pair import Pair
from dpaudit.values import Dataset, Foreign, JsonObject, RawOutputs
from dpaudit.values.content import key

MAX_PAIRS = 8
"""Maximum number of pairs of a subject, because all pairs of an audit share its trials."""

_BOUNDS = (0.0, 10.0)  # bounds of the records if the algorithm needs no bounds


def subject(
    algorithm: Foreign, *, pairs: Iterable[Pair] | None = None, name: str = "", **arguments: Foreign
) -> Subject:
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
        name=name or name_of(found),
        source=source_of(found),
    )


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm of PyDP as a mechanism.

    PyDP uses the operating system's randomness, so the argument `rng` of `sample` is not used.
    """

    made: Foreign

    @property
    def libraries(self) -> tuple[str, ...]:
        """The library that the mechanism calls."""
        return (inside.MODULE,)

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        """Return n results."""
        return inside.runner(self.made)(dataset, n)


def name_of(facts: JsonObject) -> str:
    """Return the name of the algorithm."""
    return f"PyDP {facts['name']}"


def source_of(facts: JsonObject) -> str:
    """Return the origin of the claim."""
    return f"python-dp {facts['version']}, {facts['name']}: its epsilon and delta"


def claim_of(facts: JsonObject) -> TradeoffFunction:
    """Return the claim: (epsilon, delta)-DP for one additional record."""
    epsilon, delta = facts["epsilon"], facts["delta"]
    if not math.isfinite(epsilon):
        raise UnknownSubject(f"{facts['name']} states epsilon={epsilon!r}, which is no claim that could be refuted")
    return ApproxDP(epsilon=epsilon, delta=delta) if delta else PureDP(epsilon)


def pairs_of(facts: JsonObject) -> list[Pair]:
    """Generate pairs of neighbouring datasets: one additional record at, between or beyond the bounds."""
    if facts["name"].startswith("Bounded") and facts.get("lower_bound") is None:
        raise UnknownSubject(
            f"{facts['name']} without lower_bound and upper_bound estimates its bounds, which fails for few records; "
            "pass both bounds, or large datasets: subject(algorithm, pairs=[Pair(d0, d1)])"
        )
    low, high = (
        facts.get(name, default) for name, default in zip(("lower_bound", "upper_bound"), _BOUNDS, strict=True)
    )
    low, high = (float(_BOUNDS[0] if low is None else low), float(_BOUNDS[1] if high is None else high))
    far = 1000 * (high - low)
    numbers = [low, (low + high) / 2, high, high + far, low - far]
    if facts["dtype"].startswith("int"):
        numbers = [math.floor(number) for number in numbers]
    unusual = [("a value above the bounds", numbers[3]), ("a value below the bounds", numbers[4])]
    cells = Cells(usual=numbers[:3], unusual=unusual, kind=facts["dtype"])
    pairs = [Pair(d0, d1, "add_remove", label) for d0, d1, label in neighbours.added(cells, 1)]
    return [pair for pair in pairs if key(pair.d0) != key(pair.d1)][:MAX_PAIRS]
