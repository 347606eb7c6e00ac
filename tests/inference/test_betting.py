"""Betting: exact checks of the theorem, comparison of growth with its limit, and a reference implementation."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from dpaudit.claims import ApproxDP, GaussianDP, PureDP, TradeoffFunction
from dpaudit.inference.grid import BINS, CUTS, EDGES, bin_counts, bin_of
from dpaudit.inference.sequential.alternatives import Alternative, alternatives, gaussian_noise, laplace_noise, scaled
from dpaudit.inference.sequential.betting import Bet, best_bet, log_optimal
from dpaudit.inference.sequential.strategy import Strategy, measuring_strategy, p_value_of, strategy
from dpaudit.numerics import Array
from dpaudit.result.evidence import SequentialEvidence

CLAIMS: list[TradeoffFunction] = [
    PureDP(0.0),
    PureDP(1.0),
    PureDP(700.0),
    ApproxDP(epsilon=1.0, delta=1e-5),
    ApproxDP(epsilon=0.0, delta=0.3),
    GaussianDP(0.01),
    GaussianDP(1.0),
    GaussianDP(6.0),
]


def boundary_pairs(claim: TradeoffFunction) -> list[tuple[Array, Array]]:
    """Return laws of the bin under d0 and d1 on the boundary of the claim.

    A pair with T(P, Q) = f is assigned to bins in the order of its likelihood ratio, the worst case for the bets.  It
    is placed at three positions of the grid, in both orders.  The claim's least-private pair is added at its true bins.
    """
    pairs = []
    for cuts in (np.linspace(0.02, 0.98, 25), np.geomspace(1e-6, 0.5, 25), 1 - np.geomspace(0.5, 1e-6, 25)):
        alpha = np.concatenate([[1.0], np.sort(cuts)[::-1], [0.0]])  # P(S) of descending thresholds
        power = 1 - np.asarray(claim.beta(alpha))
        power[-1] = 0.0  # the remaining mass is an event of P-mass 0
        power = np.append(power[:-1], [1 - float(claim.beta(0.0)), 0.0])
        alpha = np.append(alpha, 0.0)
        masses0, masses1 = -np.diff(alpha), -np.diff(power)
        for start in (10, BINS // 2 - len(masses0) // 2, BINS - len(masses0)):
            p, q = np.zeros(BINS), np.zeros(BINS)
            p[start : start + len(masses0)], q[start : start + len(masses1)] = masses0, masses1
            pairs += [(p, q), (q[::-1].copy(), p[::-1].copy())]
    own = own_pair(claim)
    return pairs if own is None else [*pairs, own]


def randomised_response(epsilon: float) -> Alternative:
    """Return randomised response with odds e^epsilon."""
    lie, p, q = 1 / (1 + math.exp(epsilon)), np.zeros(BINS), np.zeros(BINS)
    p[bin_of(np.array([-epsilon, epsilon]))] = 1 - lie, lie
    q[bin_of(np.array([-epsilon, epsilon]))] = lie, 1 - lie
    return Alternative(p=p, q=q, weight=1.0)


def own_pair(claim: TradeoffFunction) -> tuple[Array, Array] | None:
    """Return the claim's least-private pair with its likelihood ratios at their true bins; None if unknown."""
    match claim:
        case GaussianDP() if claim.mu() > 0:
            return gaussian_noise(claim.mu()).p, gaussian_noise(claim.mu()).q
        case PureDP():
            pair = randomised_response(claim.epsilon(0.0))
            return pair.p, pair.q
    return None


def plain_budget(bet: Bet, claim: TradeoffFunction) -> float:
    """Compute the budget of the theorem term by term."""
    total = bet.safe0 + bet.safe1
    for slope, stake in zip(bet.slopes, bet.stakes, strict=True):
        total += stake * (math.exp(slope) + claim.delta(float(slope)))
    return float(total)


@pytest.mark.parametrize("design", [strategy, measuring_strategy])
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_no_bet_gains_in_expectation_from_a_mechanism_exactly_as_private_as_claimed(
    claim: TradeoffFunction, design: Callable[[TradeoffFunction], Strategy]
) -> None:
    placed = design(claim)
    budget = 2 * np.exp(placed.log_prices(claim) / 2)[:, None]
    p, q = (np.transpose(side) for side in zip(*boundary_pairs(claim), strict=True))
    expected0, expected1 = np.exp(placed.log_payoffs0) @ p, np.exp(placed.log_payoffs1) @ q
    assert np.all(expected0 + expected1 <= budget * (1 + 1e-9))
    assert np.all(expected0 * expected1 <= (budget / 2) ** 2 * (1 + 1e-9))


@pytest.mark.parametrize(
    ("claim", "truth"),
    [(PureDP(1.0), PureDP(1.05)), (GaussianDP(1.0), GaussianDP(1.05)), (GaussianDP(0.01), GaussianDP(0.011))],
    ids=str,
)
def test_some_bet_gains_from_a_mechanism_that_is_less_private(claim: TradeoffFunction, truth: TradeoffFunction) -> None:
    """Shows that the test of expected gains can fail."""
    placed, pair = strategy(claim), own_pair(truth)
    expected0, expected1 = np.exp(placed.log_payoffs0) @ pair[0], np.exp(placed.log_payoffs1) @ pair[1]
    gains = np.log(expected0 * expected1) - placed.log_prices(claim)
    assert gains.max() > 1e-8


@pytest.mark.parametrize("design", [strategy, measuring_strategy])
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_stakes_and_weights_are_nonnegative_and_the_start_is_one(
    claim: TradeoffFunction, design: Callable[[TradeoffFunction], Strategy]
) -> None:
    placed = design(claim)
    assert np.all(placed.stakes >= 0)
    assert math.isclose(float(np.exp(placed.log_weights).sum()), 1.0, rel_tol=1e-12)
    assert abs(placed.log_e(claim, np.zeros((1, 2, BINS), dtype=np.int64))) < 1e-12


@pytest.mark.parametrize(
    ("claim", "truth", "limit"),
    [
        # Mean trials that any sequential test needs, ln 20 / KL*, from a fine numerical projection (docs/guarantees.md)
        (GaussianDP(0.5), gaussian_noise(1.0), 54),
        (GaussianDP(0.8), gaussian_noise(1.0), 339),
        (GaussianDP(1.0), gaussian_noise(1.2), 356),
        (GaussianDP(1.0), gaussian_noise(1.05), 5535),
        (PureDP(1.0), laplace_noise(1.2), 605),
        (PureDP(1.0), laplace_noise(1.1), 2323),
        (PureDP(1.0), randomised_response(1.1), 1573),
    ],
    ids=lambda value: str(value) if isinstance(value, TradeoffFunction | int) else "",
)
def test_the_growth_of_the_best_bet_attains_the_limit(
    claim: TradeoffFunction, truth: Alternative, limit: float
) -> None:
    bet = best_bet(truth, claim)
    payoff0, payoff1 = bet.log_payoffs()
    growth = float(truth.p @ payoff0 + truth.q @ payoff1) - 2 * math.log(plain_budget(bet, claim) / 2)
    assert math.log(20) / growth == pytest.approx(limit, rel=0.02)


def test_wealth_equals_the_formula_trial_by_trial() -> None:
    """Computes the theorem's E trial by trial."""
    rng = np.random.default_rng(7)
    claim = ApproxDP(epsilon=0.7, delta=0.01)
    bets = [best_bet(candidate, claim) for candidate in alternatives(claim)[:9:2]]
    weights = np.arange(1.0, 6.0) / 15
    bins0, bins1 = bin_of(rng.normal(-0.5, 1, 20)), bin_of(rng.normal(0.5, 1, 20))
    wealth = 0.0
    for bet, weight in zip(bets, weights, strict=True):
        terms = list(zip(bet.stakes, bet.slopes, bet.thresholds, strict=True))
        product = float(weight)
        for x, y in zip(bins0.tolist(), bins1.tolist(), strict=True):
            a = bet.safe0 + sum(w * math.exp(s) for w, s, t in terms if x <= t)
            b = bet.safe1 + sum(w for w, _, t in terms if y > t)
            product *= a * b / (plain_budget(bet, claim) / 2) ** 2
        wealth += product
    counts = np.array([np.bincount(bins, minlength=BINS) for bins in (bins0, bins1)])
    assert Strategy.of(bets, weights).log_e(claim, counts[None]) == pytest.approx(math.log(wealth), abs=1e-9)


def test_an_audit_that_measures_also_bets_on_single_events() -> None:
    """Computes each bet on a single event from its definition in `measuring_strategy`."""
    rng = np.random.default_rng(5)
    claim, tested = GaussianDP(1.0), ApproxDP(epsilon=0.5, delta=1e-3).symmetrized()
    scores0, scores1 = rng.normal(-0.5, 1, 60), rng.normal(0.5, 1, 60)
    counts = np.array([[bin_counts(scores0), bin_counts(scores1)]])
    logs = []
    for slope in -2 * np.log1p(-np.arange(1, 197) / 200):
        edge = EDGES[slope >= EDGES].max()
        for stake in (0.4, 0.16, 0.064, 0.026, 0.01, 0.004):
            low = stake / (1 + math.exp(slope))
            up0, up1, down0, down1 = (
                side * low for side in (scores0 > edge, scores1 > edge, scores0 <= -edge, scores1 <= -edge)
            )
            high, price = math.exp(slope), 1 + low * float(tested.delta(slope)) / 2
            for up, down in ((1, 1), (1, 0), (0, 1)):
                a, b = 1 - high * up * up0 + down * down0, 1 + up * up1 - high * down * down1
                logs.append(float(np.log(a).sum() + np.log(b).sum()) - 120 * math.log(1 + (up + down) * (price - 1)))
    events = float(np.logaddexp.reduce(logs)) - math.log(len(logs))
    usual = strategy(claim).log_e(tested, counts)
    expected = np.logaddexp(math.log(0.9) + usual, math.log(0.1) + events)
    assert measuring_strategy(claim).log_e(tested, counts) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("claim", [PureDP(1.0), PureDP(2.0)], ids=str)
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_a_measured_bound_approaches_the_truth(claim: TradeoffFunction, share: float) -> None:
    """Only a share of the outputs is informative, as of a local report that supports neither of two candidates.

    The usual bets do not certify more than 1.82 from any number of such trials.
    """
    informative = randomised_response(2.0)
    p, q = share * informative.p, share * informative.q
    p[bin_of(np.zeros(1))] += 1 - share
    q[bin_of(np.zeros(1))] += 1 - share
    counts = np.round(4_000_000 * np.array([[p, q]])).astype(np.int64)
    evidence = SequentialEvidence(target=claim, counts=counts, measures=True)
    assert 1.95 <= evidence.lower(0.0, confidence=0.99) <= 2.0


def test_evidence_falls_along_nested_claims() -> None:
    """Certified bounds rely on this: if a weaker claim is refuted, every stronger claim is refuted, too."""
    rng = np.random.default_rng(3)
    counts = np.array([bin_counts(rng.normal(-0.5, 1, 4000)), bin_counts(rng.normal(0.5, 1, 4000))])
    for family in (
        [GaussianDP(mu) for mu in np.linspace(0, 3, 40)],
        [PureDP(epsilon) for epsilon in np.linspace(0, 4, 40)],
        [ApproxDP(epsilon=epsilon, delta=1e-3) for epsilon in np.linspace(0, 4, 40)],
        [ApproxDP(epsilon=0.3, delta=delta) for delta in np.linspace(0, 0.9, 40)],
    ):
        evidence = [strategy(PureDP(1.0)).log_e(claim, counts[None]) for claim in family]
        assert np.all(np.diff(evidence) <= 1e-9)


def test_perfect_attacks_win_and_perfectly_wrong_ones_lose() -> None:
    """A bin may end a bet, but the wealth is never NaN."""
    counts = np.zeros((2, BINS), np.int64)
    counts[0, 0], counts[1, -1] = 50, 50
    assert strategy(PureDP(0.1)).log_e(PureDP(0.1), counts[None]) > math.log(20)
    assert strategy(PureDP(0.1)).log_e(PureDP(0.1), counts[None, ::-1]) < 0


def test_a_hundred_million_trials_stay_exact() -> None:
    """On the boundary of the claim the expected log-wealth falls; rounding must not make it rise."""
    pair = own_pair(GaussianDP(1.0))
    assert pair is not None
    counts = np.array([np.round(law * 1e8) for law in pair]).astype(np.int64)
    counts[:, BINS // 2] += 10**8 - counts.sum(axis=1)
    placed = strategy(GaussianDP(1.0))
    assert placed.log_e(GaussianDP(1.0), counts[None]) < math.log(20)
    assert placed.log_e(GaussianDP(0.99), counts[None]) > math.log(20)


def test_the_portfolio_is_optimal() -> None:
    rng = np.random.default_rng(11)
    for _ in range(5):
        returns, weights = rng.uniform(0, 2, (6, 15)), rng.uniform(0, 1, 15)
        found = log_optimal(returns, weights)

        def loss(x: Array, returns: Array = returns, weights: Array = weights) -> float:
            return -float(weights @ np.log(x @ returns))

        minimized: Any = minimize  # the stubs reject functions with default arguments
        slow = minimized(
            loss,
            np.full(6, 1 / 6),
            bounds=[(0, 1)] * 6,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
            options={"ftol": 1e-13, "maxiter": 500},
        )
        assert np.all(found >= 0)
        assert found.sum() == pytest.approx(1.0)
        assert loss(found) <= slow.fun + 1e-7


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_alternatives_are_probability_laws(claim: TradeoffFunction) -> None:
    candidates = alternatives(claim)
    assert sum(candidate.weight for candidate in candidates) == pytest.approx(1.0)
    for candidate in candidates:
        assert candidate.weight > 0
        for law in (candidate.p, candidate.q):
            assert law.shape == (BINS,)
            assert np.all(law >= 0)
            assert law.sum() == pytest.approx(1.0)


def test_tilting_a_gaussian_pair_gives_a_gaussian_pair() -> None:
    """The polygon on the curve moves masses by less than its spacing."""
    p, q = scaled(GaussianDP(1.0), 1.5)
    expected = gaussian_noise(1.5)
    assert np.max(np.abs(np.cumsum(p) - np.cumsum(expected.p))) < 0.01
    assert np.max(np.abs(np.cumsum(q) - np.cumsum(expected.q))) < 0.01


def test_bins_accept_infinite_ratios_and_reject_nan() -> None:
    assert bin_of(np.array([-np.inf, -1e9, 0.0, 1e9, np.inf])).tolist() == [0, 0, len(EDGES) // 2, BINS - 1, BINS - 1]
    with pytest.raises(ValueError, match="got nan"):
        bin_of(np.array([0.0, np.nan]))


def test_bin_of_agrees_with_searchsorted() -> None:
    """Compares them at all cuts, at all floats at which the table changes its row, and at random numbers."""
    patterns = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
    ends = np.concatenate([(patterns | np.uint64(low)).view(np.float64) for low in (0, 1, 2**47, 2**48 - 1)])
    near = [np.nextafter(CUTS, -np.inf), CUTS, np.nextafter(CUTS, np.inf)]
    others = np.random.default_rng(0).normal(size=10_000)
    values = np.concatenate([*near, ends[~np.isnan(ends)], others, [-np.inf, -0.0, 0.0, 5e-324, np.inf]])
    assert np.array_equal(bin_of(values), np.searchsorted(CUTS, values, side="left"))
    assert np.array_equal(bin_of(values[::-2]), np.searchsorted(CUTS, values[::-2], side="left"))
    with pytest.raises(ValueError, match="got nan"):
        bin_of(np.array([1.0, np.nan]))


def test_no_score_is_within_a_rounding_error_of_a_cut() -> None:
    """Scores are multiples of 10^-9, and a bin ends at the last of them up to its edge."""
    near = np.round(np.concatenate([EDGES + step * 1e-9 for step in range(-3, 4)]), 9)
    assert np.abs(near[:, None] - CUTS).min() > 4e-10
    assert np.array_equal(bin_of(near), bin_of(near + 4e-10))
    assert np.array_equal(bin_of(near), bin_of(near - 4e-10))
    apart = near[np.abs(near[:, None] - EDGES).min(axis=1) > 1e-15]  # the float of an edge may be just beside it
    assert np.array_equal(bin_of(apart), np.searchsorted(EDGES, apart))


def test_scores_of_several_attacks_are_counted_separately() -> None:
    scores = np.random.default_rng(0).normal(scale=3, size=(4, 100))
    scores[1, :10], scores[2, :10] = np.inf, -np.inf
    assert bin_counts(scores).tolist() == [bin_counts(row).tolist() for row in scores]
    with pytest.raises(ValueError, match="nan"):
        bin_counts(np.array([[0.0], [np.nan]]))


def test_p_values_are_never_zero() -> None:
    assert p_value_of(60_000.0) == math.exp(-700) > 0
    assert p_value_of(math.log(50)) == pytest.approx(1 / 50)
    assert p_value_of(-3.0) == 1.0
