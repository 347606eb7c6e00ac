"""Reads subjects from measurements of OpenDP.

The claim is the privacy map of the measurement at the distance `d_in`, in the terms of its output measure.  The pairs
are datasets of its input domain whose distance in its input metric is at most `d_in`.  `opendp_measures` says which
measure gives which claim, and `opendp_domains` says which domain and metric give which pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.libraries.inside import opendp as inside
from dpaudit.libraries.opendp_domains import MAX_PAIRS, pairs_of
from dpaudit.libraries.opendp_measures import claim_of
from dpaudit.libraries.subject import Subject, UnknownSubject
from dpaudit.pairs.pair import Pair
from dpaudit.values import Dataset, Foreign, JsonObject, RawOutputs

__all__ = ["MAX_PAIRS", "Measured", "claim_of", "name_of", "pairs_of", "source_of", "subject"]


def subject(
    measurement: Foreign,
    d_in: Foreign = 1,
    *,
    claim: TradeoffFunction | None = None,
    pairs: Iterable[Pair] | None = None,
    release: Callable[[Foreign], Foreign] | None = None,
    groups: int | None = None,
    name: str = "",
) -> Subject:
    """Read the claim and the pairs of a measurement.

    Args:
        measurement: A measurement of OpenDP.
        d_in: Distance of neighbouring datasets in the measurement's input metric.  A domain of vectors with a fixed
            size needs d_in=2 with the symmetric distance, because no two vectors of one size have the distance 1.
        claim: The claim.  If None, the privacy map states it.
        pairs: Pairs of neighbouring datasets.  If None, the pairs are generated from the input domain and metric.
        release: A function that converts the measurement's release to the output.  Measurements that release a
            queryable need a function that queries the queryable.
        groups: For data frames of users, the maximum number of groups in which one user has rows, such as the limit of
            the query's truncation.  One pair then has a user with a row in each of these groups.
        name: The name of the audit; by default, the constructors of the measurement and its input domain.

    Raises:
        UnknownSubject: If the claim or the pairs cannot be read.  The message says what is known and what to give.
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
        name=name or name_of(found),
        source=source_of(found),
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement of OpenDP as a mechanism.

    OpenDP uses the operating system's randomness, so the argument `rng` of `sample` is not used.  Another process gets
    the measurement in OpenDP's own serialised form.
    """

    measurement: Foreign
    release: Callable[[Foreign], Foreign] | None = None

    @property
    def libraries(self) -> tuple[str, ...]:
        """The library that the mechanism calls."""
        return (inside.MODULE,)

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        """Return n releases."""
        return inside.runner(self.measurement, self.release)(dataset, n)

    def __reduce__(self) -> tuple[Callable[..., Measured], tuple[object, ...]]:
        return _restored, (inside.packed(self.measurement), self.release)


def _restored(text: str, release: Callable[[Foreign], Foreign] | None) -> Measured:
    return Measured(inside.unpacked(text), release)


def name_of(facts: JsonObject) -> str:
    """Return the constructors of a measurement and its input domain, such as "make_laplace AtomDomain(T=i32)"."""
    return f"{facts['name']} {facts['domain']}"


def source_of(facts: JsonObject) -> str:
    """Return the origin of the claim."""
    return f"OpenDP {facts['version']}, {facts['name']}: map({facts['d_in']!r}) under {facts['measure']}"
