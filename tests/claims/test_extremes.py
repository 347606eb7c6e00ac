"""Extreme parameters: nothing overflows, warns (pytest turns warnings into errors) or leaves its range."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.claims import (
    ApproxDP,
    GaussianDP,
    LaplaceDP,
    PrivacyLoss,
    PureDP,
    RenyiDP,
    TabulatedTradeoff,
    TradeoffFunction,
    ZeroConcentratedDP,
    accounting,
    compose,
)
from dpaudit.claims.accounting import Part
from dpaudit.claims.compose import repeated
from dpaudit.claims.subsample import subsampled

ALPHA = np.array([0.0, 5e-324, 1e-300, 1e-30, 1e-9, 0.1, 0.5, 1 - 1e-9, math.nextafter(1, 0), 1.0])
EPSILON = np.array([-math.inf, -1e300, -700, -40, -1, -1e-300, 0, 1e-300, 1e-9, 1, 40, 700, 1e300, math.inf])

CLAIMS = [
    *(PureDP(x) for x in (0.0, 1e-300, 700.0, 1e300)),
    *(ApproxDP(epsilon=e, delta=d) for e in (0.0, 700.0) for d in (0.0, 1e-300, 1 - 1e-12)),
    *(GaussianDP(x) for x in (0.0, 1e-300, 1e-9, 40.0, 1e6, 1e300)),
    *(LaplaceDP(x) for x in (0.0, 1e-300, 700.0, 1e300)),
    *(ZeroConcentratedDP(x) for x in (0.0, 1e-300, 1e-9, 800.0, 1e6)),
    *(RenyiDP(order=a, epsilon=e) for a in (1 + 1e-6, 2.0, 1e6) for e in (0.0, 1e-300, 1e-9, 700.0)),
    TabulatedTradeoff(alpha=[0, 1e-300, 1], beta=[1, 1e-300, 0]),
    TabulatedTradeoff(alpha=[0, 1], beta=[0, 0]),
    TabulatedTradeoff(alpha=[0, 1], beta=[1e-300, 0]),
    PrivacyLoss(epsilon=[0.0], delta=[1.0]),
    PrivacyLoss(epsilon=[700.0], delta=[1e-300]),
    *(c.subsampled(p) for c in (GaussianDP(40.0), PureDP(700.0), PureDP(1e-9)) for p in (1e-300, 1e-9, 1 - 1e-9)),
    PureDP(700.0).group(3),
    PureDP(1e-6).group(10_000),
    ApproxDP(epsilon=1, delta=1e-300).group(10_000),
    PureDP(1e-3).repeated(10_000),
    PureDP(700.0).repeated(10_000),
    GaussianDP(0.4).repeated(10_000),
    LaplaceDP(0.01).repeated(10_000),
    ApproxDP(epsilon=0.01, delta=1e-300).repeated(10_000),
    ApproxDP(epsilon=0.01, delta=0.5).repeated(10_000),
    compose(GaussianDP(40.0), PureDP(700.0)),
    compose(GaussianDP(1.0), PureDP(1e300)),
    compose(GaussianDP(1.0), LaplaceDP(1e5)),
    compose(LaplaceDP(1e-9), GaussianDP(1e-9)),
    TabulatedTradeoff(alpha=[0, 1], beta=[0.5, 0]).repeated(10_000),
]


SLOW = [
    *(ZeroConcentratedDP(x) for x in (1e-9, 800.0)),
    LaplaceDP(0.01).repeated(10_000),
    ZeroConcentratedDP(1e6),
    compose(GaussianDP(1.0), LaplaceDP(1e5)),
]


@pytest.mark.parametrize(
    "claim",
    [pytest.param(claim, marks=pytest.mark.slow if claim in SLOW else (), id=claim.label) for claim in CLAIMS],
)
def test_extreme_claims_stay_in_range(claim: TradeoffFunction) -> None:
    for c in dict.fromkeys((claim, claim.inverse(), claim.symmetrized())):  # a symmetric claim is its own inverse
        beta, delta = c.beta(ALPHA), c.delta(EPSILON)
        assert np.all((beta >= 0) & (beta <= 1 - ALPHA))
        assert np.all(np.diff(beta) <= 1e-15)
        assert np.all((delta >= 0) & (delta <= 1))
        assert np.all(np.diff(delta) <= 1e-15)
        assert delta[0] == 1
        epsilon = c.epsilon([0.0, 1e-300, 1e-9, 0.5, 1.0])
        assert np.all(epsilon >= 0)
        assert np.all(epsilon[1:] <= epsilon[:-1])
        assert c.mu() >= 0


def test_tails_keep_their_relative_precision() -> None:
    """Values as small as 1e-300 agree with closed forms and a computation in 350 digits."""
    assert GaussianDP(1.0).delta(37.0) == pytest.approx(_gaussian_tail(37.0), rel=1e-10)
    far = GaussianDP(1.0).epsilon(1e-300)
    assert _gaussian_tail(far * (1 - 1e-11)) > 1e-300 > _gaussian_tail(far * (1 + 1e-11))
    assert ApproxDP(epsilon=1, delta=1e-300).delta(2.0) == 1e-300
    assert ApproxDP(epsilon=1, delta=1e-300).epsilon(1e-300) == 1.0
    assert PureDP(700.0).epsilon(0.0) == 700.0
    assert LaplaceDP(700.0).epsilon(0.0) == 700.0
    assert GaussianDP(40.0).epsilon(0.0) == math.inf
    assert GaussianDP(0.0).epsilon(0.0) == 0.0
    assert PureDP(700.0).beta(math.exp(-701)) == pytest.approx(1 - math.exp(-1))
    assert GaussianDP(40.0).beta(1e-300) == pytest.approx(0.001574, rel=1e-3)


def _gaussian_tail(epsilon: float) -> float:
    from mpmath import exp, mp, mpf, ncdf

    mp.dps = 350
    return float(ncdf(mpf(-epsilon) + mpf("0.5")) - exp(mpf(epsilon)) * ncdf(mpf(-epsilon) - mpf("0.5")))


def test_a_composition_of_too_many_mechanisms_is_refused_before_it_fills_the_memory() -> None:
    """The law of the total loss would have 2 * 10**8 grid points, and its Fourier transform takes gigabytes."""
    with pytest.raises(OverflowError, match=r"composing 1e\+18 mechanisms needs a grid of more than 8,388,608 points"):
        repeated(subsampled(GaussianDP(1.0), rate=0.01), n=10**18).beta(0.5)


def test_the_grid_of_a_composition_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The grid for 10**9 mechanisms had 2.4 * 10**7 points."""
    steps: list[float] = []

    def stop(parts: object, step: float) -> None:
        steps.append(step)
        raise KeyboardInterrupt

    forward, backward = subsampled(GaussianDP(1.0), rate=0.01)._directions()
    part = Part(forward, backward, 10**9)
    monkeypatch.setattr(accounting, "_total", stop)
    with pytest.raises(KeyboardInterrupt):
        accounting.composed([part])
    assert 20 * part.variance**0.5 / steps[0] <= 2**23
