"""All sizes at once, by enumeration of all outcomes, and a slow reference implementation.

Theorem 3 of `exact_binomial`: curves that the mechanism satisfies are refuted with probability at most s, all together.
An outcome excludes a point (alpha, beta) if alpha is outside its interval, or if its region has probability at most
s - cs there.  Outcomes that exclude the true point have probability at most s, and only these can refute a satisfied
curve.  All tests are deterministic.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import bisect
from scipy.special import ndtri
from scipy.stats import beta as beta_law

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, TradeoffFunction
from dpaudit.inference.fixed.evidence import slack
from dpaudit.inference.fixed.exact_binomial import ALPHA_SHARE, Sizes, parameter_lower
from dpaudit.numerics import Array
from dpaudit.result.confirmation import band_of

from .plain import law, plain_evidence, points, tail

Family = Callable[[float], TradeoffFunction]
DELTAS = (0.0, 0.2)


def with_delta(delta: float) -> Family:
    return lambda t: ApproxDP(epsilon=t, delta=delta)


MU, PURE, APPROX = GaussianDP, with_delta(0.0), with_delta(0.05)
ALPHA, BETA = (
    side.ravel() for side in np.meshgrid(np.sin(np.linspace(0, math.pi / 2, 37)) ** 2, np.linspace(0, 1, 31))
)
RIGHT = ALPHA + BETA <= 1  # the errors of some curve
ALPHA, BETA = ALPHA[RIGHT], BETA[RIGHT]


@lru_cache
def sizes(family: Family, n: int, significance: float) -> dict[tuple[int, int], Sizes]:
    """Return the sizes of every outcome (x, z)."""
    return {
        (x, z): Sizes.of(family, x, n, n - z, n, significance=significance) for x in range(n + 1) for z in range(n + 1)
    }


@lru_cache
def exclusions(family: Family, n: int, significance: float) -> dict[tuple[int, int], Any]:
    """Return which points (ALPHA, BETA) each outcome excludes."""
    found = {}
    for place, one in sizes(family, n, significance).items():
        within = (one.low <= ALPHA) & (one.high >= ALPHA)
        found[place] = ~within
        if one.outcomes is not None and within.any():
            found[place][within] = one.outcomes.probability(ALPHA[within], BETA[within]) <= one.allowed
    return found


def probability(events: dict[tuple[int, int], Any], n: int) -> Array:
    """Return the probability, at each point, of the outcomes whose event holds there."""
    of_x, of_z = law(n, ALPHA), law(n, BETA)
    return np.asarray(sum(of_x[x] * of_z[z] * event for (x, z), event in events.items()))


@pytest.mark.parametrize(
    ("family", "n", "significance"),
    [
        pytest.param(MU, 7, 0.05, marks=pytest.mark.slow),
        (APPROX, 5, 0.1),
        pytest.param(PURE, 8, 0.01, marks=pytest.mark.slow),
        pytest.param(LaplaceDP, 7, 0.1, marks=pytest.mark.slow),
        pytest.param(MU, 12, 0.05, marks=pytest.mark.slow),
        pytest.param(APPROX, 12, 0.2, marks=pytest.mark.slow),
        pytest.param(APPROX, 25, 0.05, marks=pytest.mark.slow),
    ],
)
def test_the_true_point_is_excluded_with_probability_at_most_s(family: Family, n: int, significance: float) -> None:
    found = probability(exclusions(family, n, significance), n)
    assert found.max() <= significance
    assert found.max() > 0.7 * significance  # as sharp as the small number of outcomes allows


def test_the_enumeration_detects_a_level_that_is_too_small() -> None:
    found = probability(exclusions(APPROX, 5, 0.1), 5)
    assert np.mean(found > 0.1 / 2) > 0.05


# --- the bounds, jointly


def least_epsilon(delta: float) -> Array:
    """Return the least epsilon at `delta` of the mechanisms with two outputs whose errors are (ALPHA, BETA)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        both = [np.log((1 - b - delta) / a) for a, b in ((ALPHA, BETA), (BETA, ALPHA))]
    return np.asarray(np.maximum(np.nan_to_num(both, nan=0.0, posinf=math.inf, neginf=0.0), 0.0).max(axis=0))


def test_all_bounds_together_are_wrong_with_probability_at_most_s() -> None:
    """The truth is the polygon through (0, 1), (alpha, beta) and (1, 0), the largest curve of these errors."""
    family, n, significance = APPROX, 5, 0.1
    truths = {delta: least_epsilon(delta) for delta in DELTAS}
    with np.errstate(invalid="ignore"):
        least_mu = np.maximum(np.nan_to_num(-ndtri(ALPHA) - ndtri(BETA), nan=0.0, posinf=math.inf), 0.0)
    excluded, wrong = exclusions(family, n, significance), {}
    for place, one in sizes(family, n, significance).items():
        event = one.parameter(GaussianDP) > least_mu + 1e-9
        for delta, truth in truths.items():
            event |= one.parameter(with_delta(delta)) > truth + 1e-9
        event |= band_of(one, ALPHA) < BETA - 1e-9  # the polygon's corner exceeds the band first
        assert not np.any(event & ~excluded[place]), place
        wrong[place] = event
    found = probability(wrong, n).max()
    assert 0.4 * significance < found <= significance


@pytest.mark.parametrize("place", [(0, 3), (7, 0), (25, 0), (12, 12)])
def test_the_band_lies_above_every_curve_that_is_not_refuted(place: tuple[int, int]) -> None:
    """Beyond the interval of alpha, it is their largest value, up to the width of a cell of the staircase."""
    x, z = place
    one = Sizes.of(MU, x, 25, 25 - z, 25, significance=0.05)
    at = np.array([0.0, 1e-3, 0.05, 0.3, 0.6, 0.9, 1.0])
    band = band_of(one, at)
    angle = np.linspace(math.asin(math.sqrt(one.low)), math.asin(math.sqrt(one.high)), 256)[:-1]
    alpha = np.sin(angle) ** 2
    beta = refuted = 1 - alpha  # the largest possible, if nothing is refuted
    if one.outcomes is not None:
        beta = np.zeros(len(alpha))
        for _ in range(30):
            middle = (beta + refuted) / 2
            kept = one.outcomes.probability(alpha, middle) > one.allowed
            beta, refuted = np.where(kept, middle, beta), np.where(kept, refuted, middle)
    largest = np.zeros(len(at))
    for a, b in zip(alpha[beta > 0], beta[beta > 0], strict=True):
        largest = np.maximum(largest, np.interp(at, [0.0, a, 1.0], [1.0, b, 0.0]))
    assert np.all(band >= largest - 1e-9)
    beyond = (at > one.high) & (at < 1)
    if x + z < 10:
        assert np.all(band[beyond] <= largest[beyond] + 0.05)
        assert np.all(band[beyond] < 0.9 * (1 - at[beyond]))


# --- comparison with a slow reference implementation


def against(claim: TradeoffFunction, x: int, z: int, n: int) -> float:
    """Return the evidence of one outcome, from all points of the grid."""
    p, q = (x + 0.5) / (n + 1), (z + 0.5) / (n + 1)
    alpha, beta = points(claim.symmetrized(), n, n)

    def divergence(rate: float, others: Array) -> Array:
        with np.errstate(divide="ignore"):
            value = rate * np.log(rate / others) + (1 - rate) * np.log((1 - rate) / (1 - others))
        return np.where(rate < others, value, 0.0)

    return float((n + 1) * (divergence(p, alpha) + divergence(q, beta)).min())


def at_least(family: Family, x: int, z: int, n: int, significance: float, lower: float) -> Array | None:
    """Return the outcomes whose approximate bound is at least that of (x, z), less `lower`; None if there is none."""
    cutoff, none = float(ndtri(significance)) ** 2 / 2, against(family(0.0), x, z, n)
    if none <= 1e-9:
        return None
    if none < cutoff:
        return np.asarray(plain_evidence(family(0.0), n, n) >= none - 1e-9, dtype=float)
    t = bisect(lambda t: against(family(t), x, z, n) - cutoff, 0.0, 30.0, xtol=1e-9)
    return np.asarray(plain_evidence(family(max(t - lower - 2e-9, 0.0)), n, n) >= cutoff - 1e-9, dtype=float)


def interval(x: int, n: int, significance: float) -> tuple[float, float]:
    level = ALPHA_SHARE * significance / 2
    low = beta_law.ppf(level, x, n - x + 1) if x > 0 else 0.0
    return float(low), float(beta_law.isf(level, x + 1, n - x)) if x < n else 1.0


def chosen(n: int) -> Iterator[tuple[int, int]]:
    """Yield outcomes with much, some and little evidence, also the most extreme ones."""
    yield from ((x, z) for x in range(0, n, n // 4) for z in range(0, n, n // 4) if x + z < n)
    yield from ((0, 1), (1, 0), (n, 0), (0, n), (n, n))


@pytest.mark.parametrize(
    ("family", "n", "significance", "every"),
    [(MU, 12, 0.05, 2), (APPROX, 25, 0.2, 3), pytest.param(PURE, 25, 0.05, 1, marks=pytest.mark.slow)],
)
def test_regions_agree_with_the_reference_implementation(
    family: Family, n: int, significance: float, every: int
) -> None:
    """The approximate bound is rounded down by at most 0.003 / sqrt(n), so a region may have a few outcomes more."""
    more = 0.003 / math.sqrt(n)
    for x, z in list(chosen(n))[::every]:
        one = Sizes.of(family, x, n, n - z, n, significance=significance)
        region = at_least(family, x, z, n, significance, 0.0)
        assert (one.outcomes is None) == (region is None), (x, z)
        if one.outcomes is None or region is None:
            continue
        wider = at_least(family, x, z, n, significance, more)
        assert wider is not None
        low, high = interval(x, n, significance)
        assert (one.low, one.high) == pytest.approx((low, high), rel=1e-9)
        assert one.allowed == pytest.approx(significance * (1 - ALPHA_SHARE), rel=1e-12)
        within = (low <= ALPHA) & (high >= ALPHA)
        found = one.outcomes.probability(ALPHA[within], BETA[within])
        least, most = (tail(some, n, n, ALPHA[within], BETA[within]) for some in (region, wider))
        assert np.all(found >= least * (1 - 1e-9)), (x, z)
        assert np.all(found <= most * (1 + 1e-6) + 4 * math.exp(-one.outcomes.budget)), (x, z)


def largest_refuted(family: Family, inside: Array, x: int, n: int, significance: float) -> float:
    """Return the largest parameter whose curve is refuted, by bisection; 0 if there is none."""
    low, high = interval(x, n, significance)
    alpha = np.sin(np.linspace(math.asin(math.sqrt(low)), math.asin(math.sqrt(high)), 400)) ** 2

    def margin(t: float) -> float:
        return (1 - ALPHA_SHARE) * significance - float(tail(inside, n, n, alpha, family(t).beta(alpha)).max())

    return 0.0 if margin(0.0) < 0 else float(bisect(margin, 0.0, 30.0, xtol=1e-6))


@pytest.mark.parametrize(
    ("family", "n", "significance", "every"),
    [(APPROX, 8, 0.2, 3), *(pytest.param(f, 12, s, 1, marks=pytest.mark.slow) for f, s in ((MU, 0.05), (APPROX, 0.2)))],
)
def test_every_parameter_agrees_with_the_reference_implementation(
    family: Family, n: int, significance: float, every: int
) -> None:
    """Bounds of the family that ranks the outcomes are those of Theorem 2, and bounds of others use the same region."""
    some = 0
    for x, z in list(chosen(n))[::every]:
        one = Sizes.of(family, x, n, n - z, n, significance=significance)
        own = parameter_lower(family, x, n, n - z, n, significance=significance)
        assert one.parameter(family) == own
        inside, wider = (at_least(family, x, z, n, significance, more) for more in (0.0, 0.003 / math.sqrt(n)))
        for other in (family, with_delta(0.1)):
            found = one.parameter(other)
            if inside is None or wider is None:
                assert found == 0
                continue
            most, least = (largest_refuted(other, region, x, n, significance) for region in (inside, wider))
            assert least - 0.02 <= found <= most + 2e-6, (x, z)
            some += found > 0.1
    assert some > 6 / every


@pytest.mark.parametrize("place", [(0, 0), (1, 2), (3, 1)])
def test_a_curve_is_refuted_if_and_only_if_its_parameter_is_below_the_bound(place: tuple[int, int]) -> None:
    x, z = place
    one = Sizes.of(APPROX, x, 25, 25 - z, 25, significance=0.05)
    for family in (APPROX, MU, LaplaceDP):
        bound = one.parameter(family)
        assert bound > 0
        assert one.refutes(family(bound))
        assert one.refutes(family(0.7 * bound))
        assert not one.refutes(family(bound + one.precision + 10 * slack(one.allowed)))
