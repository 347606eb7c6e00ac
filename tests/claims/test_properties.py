"""Properties of every claim: convexity, duality, order, text."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpaudit.claims import (
    CLAIMS,
    ApproxDP,
    GaussianDP,
    LaplaceDP,
    PrivacyLoss,
    PureDP,
    RenyiDP,
    TabulatedTradeoff,
    TradeoffFunction,
    ZeroConcentratedDP,
    compose,
    parse_claim,
)
from dpaudit.numerics import Array

ALPHA: Array = np.unique(np.concatenate([[0.0], np.geomspace(1e-9, 0.1, 40), np.linspace(0.1, 1.0, 181)]))
EPSILON: Array = np.linspace(-30, 30, 2001)

quick = settings(
    derandomize=True,
    deadline=None,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
dear = settings(quick, max_examples=10)  # an example takes tens of milliseconds
slow = settings(quick, max_examples=8)


@st.composite
def tables(draw: st.DrawFn) -> TabulatedTradeoff:
    """Draw a pair of laws on a few outputs.  It may be asymmetric, and one law may lack some outputs of the other."""
    size = draw(st.integers(2, 6))
    masses = st.lists(st.integers(0, 20), min_size=size, max_size=size).filter(any)
    p, q = (np.array(draw(masses), dtype=float) for _ in "pq")
    p, q = p / p.sum(), q / q.sum()
    order = np.argsort(-np.arctan2(q, p), kind="stable")
    alpha, beta = np.concatenate([[0.0], np.cumsum(p[order])]), np.concatenate([[1.0], 1 - np.cumsum(q[order])])
    alpha, beta = np.minimum(alpha, 1.0), np.clip(beta, 0.0, 1 - alpha)
    alpha[-1], beta[-1] = 1.0, 0.0
    last = np.append(np.diff(alpha) > 0, True)  # the lowest point over each alpha
    return TabulatedTradeoff(alpha=alpha[last], beta=np.minimum.accumulate(beta[last]))


sizes = st.floats(0.0, 6.0)
pure = st.builds(PureDP, sizes)
approximate = st.builds(lambda e, d: ApproxDP(epsilon=e, delta=d), sizes, st.floats(0, 0.9))
gaussian = st.builds(GaussianDP, sizes)
laplace = st.builds(LaplaceDP, sizes)
# The curve of zero-concentrated DP takes a third of a second to compute, so all tests share these.
zcdp = st.sampled_from([ZeroConcentratedDP(rho) for rho in (0.0, 1e-12, 0.02, 1.0)])
renyi = st.builds(lambda a, e: RenyiDP(order=a, epsilon=e), st.floats(1.1, 50), st.floats(0, 4))
losses = st.builds(
    lambda e, d: PrivacyLoss(epsilon=sorted(e), delta=sorted(d[: len(e)], reverse=True)),
    st.lists(sizes, min_size=1, max_size=5, unique=True),
    st.lists(st.floats(0, 1), min_size=5, max_size=5),
)
basic = st.one_of(pure, approximate, gaussian, laplace, tables(), losses, zcdp, renyi)
derived = st.one_of(
    st.builds(lambda c, p: c.subsampled(p), basic, st.floats(0, 1)),
    st.builds(lambda c, k: c.group(k), basic, st.integers(1, 6)),
    st.builds(lambda c: c.inverse(), basic),
    st.builds(lambda c: c.symmetrized(), basic),
    st.builds(lambda e, d, n: ApproxDP(epsilon=e, delta=d).repeated(n), sizes, st.floats(0, 0.1), st.integers(1, 30)),
)
claims = st.one_of(basic, derived)


def assert_is_tradeoff(claim: TradeoffFunction) -> None:
    beta = claim.beta(ALPHA)
    assert np.all(beta <= 1 - ALPHA)
    assert np.all(beta >= 0)
    assert np.all(np.diff(beta) <= 1e-13)
    slope = np.diff(beta) / np.diff(ALPHA)
    assert np.all(np.diff(slope) >= -1e-9 * np.abs(slope[1:]) - 1e-15 / np.diff(ALPHA)[:-1])


@dear
@given(claims)
def test_f_is_convex_and_nonincreasing_and_at_most_one_minus_alpha(claim: TradeoffFunction) -> None:
    assert_is_tradeoff(claim)


@dear
@given(claims)
def test_delta_is_a_privacy_profile(claim: TradeoffFunction) -> None:
    delta = claim.delta(EPSILON)
    assert np.all(np.diff(delta) <= 1e-13)
    assert np.all(delta >= np.maximum(0, -np.expm1(EPSILON)))
    x = np.exp(EPSILON)
    assert np.all(np.diff(np.diff(delta) / np.diff(x)) >= -1e-9 / np.diff(x)[1:])  # convex in e^epsilon


@dear
@given(claims)
def test_duality_from_f_to_delta_to_f_is_the_identity(claim: TradeoffFunction) -> None:
    """f(alpha) >= 1 - delta(eps) - e^eps alpha for all eps, with equality for the best eps, up to the grid of eps."""
    grid = np.concatenate([EPSILON, claim.slopes(), -claim.inverse().slopes()])
    inside = ALPHA[1::4]
    steep = np.exp(np.minimum(grid[:, None] + np.log(inside), 1.0))
    back = np.max(1 - claim.delta(grid)[:, None] - steep, axis=0)
    beta = claim.beta(inside)
    assert np.all(np.maximum(back, 0) <= beta + 1e-9)
    assert np.all(np.maximum(back, 0) >= beta - 1e-5)
    delta = claim.delta(EPSILON)
    forth = np.max(1 - beta[:, None] - inside[:, None] * np.exp(EPSILON), axis=0)
    assert np.all(forth <= delta + 1e-9)


@dear
@given(claims)
def test_the_inverse_of_the_inverse_is_f(claim: TradeoffFunction) -> None:
    twice = claim.inverse().inverse()
    assert twice.beta(ALPHA) == pytest.approx(claim.beta(ALPHA), abs=1e-11)
    assert twice.delta(EPSILON) == pytest.approx(claim.delta(EPSILON), abs=1e-11)
    if claim.symmetric:
        assert claim.inverse() is claim


@quick
@given(claims)
def test_the_inverse_undoes_f(claim: TradeoffFunction) -> None:
    beta = claim.beta(ALPHA)
    again = claim.beta(claim.inverse().beta(beta))
    assert np.all(again <= beta + 1e-6)


@dear
@given(claims)
def test_the_symmetrised_claim_is_the_maximum(claim: TradeoffFunction) -> None:
    both = claim.symmetrized()
    assert both.symmetric
    expected = np.maximum(claim.beta(ALPHA), claim.inverse().beta(ALPHA))
    assert both.beta(ALPHA) == pytest.approx(expected, abs=1e-10)
    assert np.all(both.delta(EPSILON) <= claim.delta(EPSILON) + 1e-10)


@quick
@given(claims)
def test_mu_gdp_with_the_least_mu_lies_below_f(claim: TradeoffFunction) -> None:
    mu = claim.mu()
    if mu == math.inf:
        return
    inside = ALPHA[(ALPHA > 0) & (ALPHA < 1)]
    assert np.all(claim.beta(inside) >= GaussianDP(mu).beta(inside) - 1e-6)


@dear
@given(claims, st.floats(0, 1))
def test_epsilon_is_the_least_that_keeps_delta(claim: TradeoffFunction, delta: float) -> None:
    epsilon = claim.epsilon(delta)
    if epsilon == math.inf:
        assert claim.delta(math.inf) > delta or delta == claim.delta(math.inf)
        return
    assert claim.delta(epsilon) <= delta
    if epsilon > 0 and delta > claim.delta(math.inf):
        assert claim.delta(epsilon * (1 - 1e-9)) >= delta - 1e-12


@dear
@given(claims, st.integers(1, 5))
def test_the_promise_for_larger_groups_is_weaker(claim: TradeoffFunction, k: int) -> None:
    smaller, larger = claim.group(k), claim.group(k + 1)
    assert np.all(larger.beta(ALPHA) <= smaller.beta(ALPHA) + 1e-6)
    assert np.all(larger.beta(ALPHA) <= claim.beta(ALPHA) + 1e-6)


@dear
@given(claims, st.floats(0, 1))
def test_the_promise_on_a_sample_is_stronger(claim: TradeoffFunction, rate: float) -> None:
    assert np.all(claim.subsampled(rate).beta(ALPHA) >= claim.beta(ALPHA) - 1e-9)


@quick
@given(tables(), st.lists(st.integers(0, 2), min_size=8, max_size=8))
def test_post_processing_never_lowers_f(claim: TradeoffFunction, merged: list[int]) -> None:
    """Each side of the polygon is an output; post-processing merges some outputs."""
    alpha, beta = (np.array(claim.parameters[name]) for name in ("alpha", "beta"))
    p, q = np.diff(np.append(alpha, 1.0)), -np.diff(np.append(beta, 0.0))
    p, q = np.append(p, 0.0), np.append(q, 1 - beta[0])
    groups = np.resize(merged, len(p))
    p, q = np.bincount(groups, p, minlength=3), np.bincount(groups, q, minlength=3)
    order = np.argsort(-np.arctan2(q, p), kind="stable")
    for level in np.linspace(0, 1, 41):
        left, error = level, 1.0
        for a, b in zip(p[order], q[order], strict=True):
            share = 1.0 if a <= left else max(left, 0.0) / (a or 1.0)
            left, error = left - share * a, error - share * b
        assert error >= claim.beta(float(level)) - 1e-9


@slow
@given(st.lists(st.one_of(pure, approximate, gaussian, laplace, tables()), min_size=2, max_size=3))
def test_composition_commutes(parts: list[TradeoffFunction]) -> None:
    one, other = compose(*parts), compose(*reversed(parts))
    assert one == other
    assert str(one) == str(other)
    assert hash(one) == hash(other)


@settings(slow, max_examples=5)
@given(st.lists(st.one_of(pure, approximate, gaussian, laplace, tables()), min_size=2, max_size=2), st.integers(1, 20))
def test_composed_claims_are_trade_off_functions_below_their_parts(parts: list[TradeoffFunction], n: int) -> None:
    claim = compose(parts[0].repeated(n), parts[1])
    assert_is_tradeoff(claim)
    for part in parts:
        assert np.all(claim.beta(ALPHA) <= part.beta(ALPHA) + 1e-9)
        assert np.all(claim.delta(EPSILON) >= part.delta(EPSILON) - 1e-9)


def sides(claim: TradeoffFunction) -> tuple[Array, Array]:
    """Return laws P and Q, one output for each side of the polygon in order of q/p, whose curve is the polygon."""
    alpha, beta = (np.array(claim.parameters[name]) for name in ("alpha", "beta"))
    return np.append(0.0, np.diff(alpha)), np.append(1 - beta[0], -np.diff(beta))


@pytest.mark.slow
@settings(slow, max_examples=3)
@given(tables(), tables())
def test_composed_tables_are_just_below_the_product_of_the_laws(one: TradeoffFunction, other: TradeoffFunction) -> None:
    (p1, q1), (p2, q2) = sides(one), sides(other)
    p, q = np.outer(p1, p2).ravel(), np.outer(q1, q2).ravel()
    order = np.argsort(-np.arctan2(q, p), kind="stable")
    alpha, beta = np.append(0.0, np.cumsum(p[order])), np.append(1.0, 1 - np.cumsum(q[order]))
    for claim, x, y in ((compose(one, other), alpha, beta), (compose(one, other).inverse(), beta[::-1], alpha[::-1])):
        last = np.append(np.diff(x) > 1e-15, True)
        gap = np.interp(ALPHA[1:], x[last], y[last]) - claim.beta(ALPHA[1:])
        assert gap.min() >= -1e-9
        assert gap.max() <= 1e-3


@dear
@given(claims)
def test_text_is_read_back_and_copies_are_equal(claim: TradeoffFunction) -> None:
    again = parse_claim(str(claim))
    assert again == claim
    assert hash(again) == hash(claim)
    assert again.beta(0.3) == claim.beta(0.3)
    assert pickle.loads(pickle.dumps(claim)) == claim
    assert len(claim.label) <= max(len(str(claim)), 60)


EXAMPLES = [
    PureDP(1.0),
    ApproxDP(epsilon=1.0, delta=0.01),
    GaussianDP(1.0),
    LaplaceDP(1.0),
    ZeroConcentratedDP(0.5),
    RenyiDP(order=4.0, epsilon=0.5),
    TabulatedTradeoff(alpha=[0, 0.2, 1], beta=[0.9, 0.5, 0]),
    PrivacyLoss(epsilon=[0.5, 1.0], delta=[0.1, 0.01]),
    compose(GaussianDP(1.0), LaplaceDP(0.5)),
    GaussianDP(1.0).subsampled(0.1, relation="add_remove").repeated(20),
    PureDP(0.5).group(3),
    TabulatedTradeoff(alpha=[0, 0.2, 1], beta=[0.9, 0.5, 0]).group(2).symmetrized(),
]


def test_every_kind_of_claim_is_among_the_examples() -> None:
    assert {type(claim) for claim in EXAMPLES} >= set(CLAIMS.values())


@pytest.mark.parametrize("claim", EXAMPLES, ids=lambda claim: claim.label)
def test_arrays_of_any_shape_and_scalars_are_treated_alike(claim: TradeoffFunction) -> None:
    grid = np.linspace(0, 1, 6).reshape(3, 1, 2)
    for ask in (claim.beta, claim.delta, claim.epsilon):
        values = ask(grid)
        assert values.shape == grid.shape
        assert values.dtype == np.float64
        assert isinstance(ask(0.25), float)
        assert isinstance(ask([0.25]), np.ndarray)
        assert ask(float(grid[1, 0, 1])) == values[1, 0, 1]
        assert ask(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("claim", EXAMPLES, ids=lambda claim: claim.label)
def test_the_ends_are_what_they_must_be(claim: TradeoffFunction) -> None:
    assert claim.beta(1.0) == 0.0
    assert claim.beta(0.0) == 1 - claim.delta(math.inf)
    assert claim.delta(-math.inf) == 1.0
    assert claim.epsilon(1.0) == 0.0
    assert claim.delta([-700.0, 700.0])[0] == 1.0
    assert math.isfinite(claim.epsilon(1e-300)) or claim.delta(700.0) > 0
    for value in (math.nan, -0.1, 1.1):
        with pytest.raises(ValueError, match=r"alpha must lie in \[0, 1\], got"):
            claim.beta([0.5, value])
        with pytest.raises(ValueError, match=r"delta must lie in \[0, 1\], got"):
            claim.epsilon(value)
    with pytest.raises(ValueError, match="epsilon must be a number, got nan"):
        claim.delta(math.nan)
