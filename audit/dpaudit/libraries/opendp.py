"""Reads subjects from measurements of OpenDP.

The claim is the privacy map of the measurement at the distance `d_in`, in the terms of its output measure.  The pairs
are datasets of its input domain whose distance in its input metric is at most `d_in`; see `opendp_domains`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from dpaudit.claims import ApproxDP, PrivacyLoss, PureDP, RenyiDP, TradeoffFunction, ZeroConcentratedDP, compose
from dpaudit.libraries.cells import Node, parsed
from dpaudit.libraries.inside import opendp as inside
from dpaudit.libraries.opendp_domains import pairs_of
from dpaudit.libraries.subject import LibraryObject, Subject, UnknownSubject
from dpaudit.pairs.pair import Pair
from dpaudit.text.printable import shortened
from dpaudit.values import Dataset, Foreign, JsonObject, RawOutputs

__all__ = ["Measured", "claim_of", "pairs_of", "subject"]


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
        name=name or f"{found['name']} {found['domain']}",
        source=f"OpenDP {found['version']}, {found['name']}: map({found['d_in']!r}) under {found['measure']}",
    )


@dataclass(frozen=True, slots=True)
class Measured(LibraryObject, inside=inside):
    """A measurement of OpenDP as a mechanism.

    Another process gets the measurement in OpenDP's own serialised form.
    """

    release: Callable[[Foreign], Foreign] | None = None

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        """Return n releases."""
        return inside.sample(self.made, dataset, n, self.release)

    def __reduce__(self) -> tuple[Callable[..., Measured], tuple[object, ...]]:
        try:
            text = import_module("opendp.mod").serialize(self.made)
        except Exception as error:  # such as an argument that is a function, or an early release of OpenDP
            raise TypeError(f"OpenDP cannot serialise this measurement: {error}") from error
        return _restored, (text, self.release)


def _restored(text: str, release: Callable[[Foreign], Foreign] | None) -> Measured:
    inside.enable()
    return Measured(import_module("opendp.mod").deserialize(text), release)


def claim_of(facts: JsonObject) -> TradeoffFunction:
    """Convert a privacy loss of OpenDP to a claim.  Each conversion states its theorem."""
    # Objects of early releases do not tell how they were made, but the config of a call does.
    if facts.get("of_population") or _AMPLIFIED in facts.get("config", ""):
        raise UnknownSubject(_OF_POPULATION)
    measure = parsed(facts["measure"])
    convert = _CLAIMS.get(measure.name)
    if convert is None:
        raise UnknownSubject(_unknown_measure(facts["measure"]))
    try:
        return convert(measure, facts["d_out"])
    except UnknownSubject:
        raise
    except (ValueError, TypeError) as error:
        raise UnknownSubject(
            f"map({facts['d_in']!r}) is {shortened(repr(facts['d_out']), 80)} under {facts['measure']}, which is no "
            f"claim that could be refuted: {error}"
        ) from None


_AMPLIFIED = "make_population_amplification"
_OF_POPULATION = (
    f"{_AMPLIFIED} does not sample: its privacy map is about two neighbouring populations, of which "
    "each dataset is a random sample, and is no claim about two given datasets.  Audit the measurement that it "
    "amplifies, or write a function that samples from a population and then calls the measurement"
)


def _unknown_measure(measure: str) -> str:
    return (
        f"the output measure {measure} is unknown; known are {', '.join(sorted(_CLAIMS))}.  Pass the claim: "
        "subject(measurement, claim=...)"
    )


def _pure(measure: Node, d_out: Foreign) -> TradeoffFunction:
    """Max divergence: D_inf(P || Q) <= epsilon for both orders of the pair is epsilon-DP by definition."""
    return PureDP(d_out)


def _concentrated(measure: Node, d_out: Foreign) -> TradeoffFunction:
    """Zero-concentrated divergence.  The curve of `ZeroConcentratedDP` is the largest that rho-zCDP implies pointwise.

    Theorem:
        Let D_a(P || Q) <= rho a for every a > 1 and both orders.  Then every test with type I error alpha has a type II
        error beta for which D_a(Ber(1 - beta) || Ber(alpha)) <= rho a for every a > 1 and both orders, by data
        processing.  For each alpha, the two Bernoulli laws attain the least such beta.  See Bun & Steinke 2016, Def.
        1.1, and `claims.divergences`.
    """
    return ZeroConcentratedDP(d_out)


def _renyi(measure: Node, d_out: Foreign) -> TradeoffFunction:
    """Renyi divergence: a curve epsilon(order), read at finitely many orders.

    Theorem:
        A bound for all orders implies the bounds for some orders.  So the curve of `RenyiDP` for these orders lies
        below the curve that OpenDP promises, and a refutation of the former refutes the latter.  Mironov 2017, Def. 4.
    """
    points = [(order, epsilon) for order, epsilon in d_out if math.isfinite(epsilon)]
    return RenyiDP(order=[order for order, _ in points], epsilon=[epsilon for _, epsilon in points])


def _profile(measure: Node, d_out: Foreign) -> TradeoffFunction:
    """Smoothed max divergence: a privacy profile delta(epsilon), read at finitely many epsilons.

    Theorem:
        (epsilon_i, delta_i)-DP for every i holds exactly if the trade-off curve is at least the maximum of the curves
        f_{epsilon_i, delta_i}; Dong, Roth & Su 2022, Prop. 6.  Fewer epsilons give a smaller maximum, so a refutation
        of this claim refutes the complete profile.

    A pair (epsilon, delta) is accepted too; releases before 0.7 have such distances.
    """
    if len(d_out) == 2 and not isinstance(d_out[0], list):
        return ApproxDP(epsilon=d_out[0], delta=d_out[1])
    least: dict[float, float] = {}
    delta = 1.0
    for epsilon, at_epsilon in d_out:
        delta = min(delta, at_epsilon)
        least[epsilon] = delta
    return PrivacyLoss(epsilon=list(least), delta=list(least.values()))


def _approximate(measure: Node, d_out: Foreign) -> TradeoffFunction:
    """Approximate divergences: a bound (d, delta) of an inner measure that holds outside events of probability delta.

    Theorem:
        Let P = (1 - delta) P' + delta R and Q = (1 - delta) Q' + delta S, where every test of P' against Q' with type I
        error alpha has a type II error of at least f(alpha).  A test of P against Q with type I error alpha has a type
        I error of at most alpha / (1 - delta) on P'.  So its type II error is at least (1 - delta) f(alpha / (1 -
        delta)) for alpha <= 1 - delta, and at least 0 otherwise.  This curve is f composed with (0, delta)-DP.  It is
        attained if R and S are singular to each other and to P' and Q'.  Bun & Steinke 2016, Def. 8.1, define
        approximate zCDP by such events.  For the max divergence, the curve is that of (epsilon, delta)-DP; Dong, Roth &
        Su 2022, section 3.
    """
    loss, delta = d_out
    inner = measure.parts[0] if measure.name == "Approximate" else Node("MaxDivergence")
    if not isinstance(inner, Node):
        inner = Node(str(inner))
    if inner.name == "MaxDivergence":
        return ApproxDP(epsilon=loss, delta=delta)
    if inner.name not in _CLAIMS:
        raise UnknownSubject(_unknown_measure(inner.name))
    claim = _CLAIMS[inner.name](inner, loss)
    return claim if delta == 0 else compose(claim, ApproxDP(epsilon=0.0, delta=delta))


_CLAIMS: Mapping[str, Callable[[Node, Foreign], TradeoffFunction]] = {
    "MaxDivergence": _pure,
    "ZeroConcentratedDivergence": _concentrated,
    "RenyiDivergence": _renyi,
    "SmoothedMaxDivergence": _profile,
    "FixedSmoothedMaxDivergence": _approximate,
    "Approximate": _approximate,
}
