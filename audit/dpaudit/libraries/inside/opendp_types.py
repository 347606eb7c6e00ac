"""Reads measurements of old releases of OpenDP, which have types but neither domain nor metric."""

from __future__ import annotations

from importlib import metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dpaudit.values import Foreign, JsonObject


def facts_from_types(measurement: Foreign, d_in: Foreign) -> JsonObject:
    """Return the facts about a measurement on one bit by a release whose measurements have no domain and no metric.

    Such releases have only types.  For one bit they are unambiguous: its distances are 0 and 1, and a privacy loss that
    is one number is the epsilon of pure differential privacy.
    """
    types = (measurement.input_carrier_type, measurement.input_distance_type, measurement.output_distance_type)
    release = metadata.version("opendp")
    if tuple(map(str, types)) != ("bool", "u32", "f64"):
        raise LookupError(
            f"opendp {release} does not state domain and metric of its measurements, and dpaudit knows them for one "
            "bit only; write a class with the call, the claim and the pairs (see docs/mechanisms.md)"
        )
    return {
        "domain": "AtomDomain(T=bool)",
        "metric": "DiscreteDistance()",
        "measure": "MaxDivergence",
        "d_in": d_in,
        "d_out": measurement.map(d_in) if hasattr(measurement, "map") else _least_accepted(measurement, d_in),
        "hints": [],
        "of_population": False,
        "version": release,
    }


def _least_accepted(measurement: Foreign, d_in: Foreign) -> float:
    """Return the least privacy loss that the measurement accepts at a distance, up to rounding errors upwards."""
    low, high = 0.0, 1.0
    while not measurement.check(d_in, high):
        low, high = high, 2 * high
        if high > 1e6:
            raise LookupError(f"the measurement accepts no privacy loss up to {low:.0f} at distance {d_in}")
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if measurement.check(d_in, middle) else (middle, high)
    return high
