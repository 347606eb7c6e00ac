"""Bets on planned violations: validity, loss under other violations, gain, and a reference implementation."""

import math
import warnings

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction, parse_claim
from dpaudit.claims.subsample import subsampled
from dpaudit.engine.plan import stopping_times
from dpaudit.inference.grid import BINS
from dpaudit.inference.sequential.alternatives import Alternative, pair_laws, scaled
from dpaudit.inference.sequential.betting import Bet
from dpaudit.inference.sequential.planned import Planned, bet_on_learned_scores, planned_laws
from dpaudit.inference.sequential.strategy import Counts, Strategy, log_threshold, strategy

CASES: list[tuple[TradeoffFunction, tuple[TradeoffFunction, ...]]] = [
    (GaussianDP(1.0), (GaussianDP(1.2),)),
    (GaussianDP(0.5), (GaussianDP(1.0),)),
    (GaussianDP(1.0), (PureDP(5.0),)),
    (PureDP(1.0), (PureDP(1.2), LaplaceDP(1.2))),
    (ApproxDP(epsilon=1.0, delta=1e-5), (GaussianDP(0.335),)),
    (GaussianDP(0.3), (subsampled(GaussianDP(3.0), rate=0.3),)),  # the two directions have different laws
]


def planned_bets(claim: TradeoffFunction, planned: Planned) -> list[Bet]:
    return [bet for _, bet in planned_laws(claim, planned)]


def random_counts(seed: int, pairs: int) -> Counts:
    """Return counts of bins, from alike to separated, with equal numbers of outputs of d0 and d1 on each pair."""
    rng = np.random.default_rng(seed)
    counts: Counts = np.zeros((pairs, 2, BINS), dtype=np.int64)
    for pair in counts:
        n, apart = int(rng.integers(1, 2000)), rng.uniform(-1, 2)
        for side, sign in zip(pair, (-1, 1), strict=True):
            center = BINS // 2 + sign * apart * 20
            places = np.clip(np.round(rng.normal(center, rng.uniform(1, 60), size=n)), 0, BINS - 1).astype(int)
            np.add.at(side, places, 1)
    return counts


def plain_log_wealth(claim: TradeoffFunction, planned: Planned, counts: Counts) -> float:
    """Compute the log-wealth of one pair bet by bet, from the definitions in `betting` and `planned`."""
    others = strategy(claim)
    laws = [law for violation in planned.violations for law in pair_laws(violation)]
    bets = [bet_on_learned_scores(Alternative(p=p, q=q, weight=1.0), claim) for p, q in laws]
    share = 1 - (1 - planned.confidence) ** 0.25
    logs = [math.log(1 - share) + others.log_e(claim, counts)]
    for bet in bets:
        budget = bet.safe0 + bet.safe1
        budget += sum(
            stake * (math.exp(slope) + float(claim.delta(slope)))
            for stake, slope in zip(bet.stakes, bet.slopes, strict=True)
        )
        total = math.log(share / len(bets))
        for place in range(BINS):
            a, b = bet.safe0, bet.safe1
            for stake, slope, threshold in zip(bet.stakes, bet.slopes, bet.thresholds, strict=True):
                if place <= threshold:
                    a += stake * math.exp(slope)
                else:
                    b += stake
            x, y = int(counts[0, 0, place]), int(counts[0, 1, place])
            total += x * math.log(max(a, 1e-300) / (budget / 2)) if x else 0.0
            total += y * math.log(max(b, 1e-300) / (budget / 2)) if y else 0.0
        logs.append(total)
    return float(np.logaddexp.reduce(logs))


@pytest.mark.parametrize(("claim", "violations"), CASES[1:], ids=str)
def test_the_wealth_is_that_of_a_plain_second_version(
    claim: TradeoffFunction, violations: tuple[TradeoffFunction, ...]
) -> None:
    planned, counts = Planned(violations=violations, confidence=0.999), random_counts(1, pairs=1)
    found = strategy(claim, planned).log_e(claim, counts)
    assert found == pytest.approx(plain_log_wealth(claim, planned, counts), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("claim", "violations"), CASES[2:4], ids=str)
def test_the_shares_are_those_of_the_theorem(claim: TradeoffFunction, violations: tuple[TradeoffFunction, ...]) -> None:
    others = np.exp(strategy(claim).log_weights)
    for confidence in (0.5, 0.95, 1 - 1e-9):
        planned = Planned(violations=violations, confidence=confidence)
        shares = np.exp(strategy(claim, planned).log_weights)
        assert np.all(shares > 0)
        assert shares.sum() == pytest.approx(1.0)
        assert planned.share == pytest.approx(1 - (1 - confidence) ** 0.25)
        assert shares[: len(others)] == pytest.approx((1 - planned.share) * others)
        assert shares[len(others) :] == pytest.approx(planned.share / (len(shares) - len(others)))


@pytest.mark.parametrize(("claim", "violations"), CASES[1:], ids=str)
def test_no_counts_lose_more_than_a_quarter_of_the_threshold(
    claim: TradeoffFunction, violations: tuple[TradeoffFunction, ...]
) -> None:
    """The theorem holds for all counts, also of several pairs, and for every tested claim."""
    planned, threshold = Planned(violations=violations, confidence=0.999), log_threshold(0.999)
    with_plan, without = strategy(claim, planned), strategy(claim)
    for seed in range(6):
        counts = random_counts(seed, pairs=1 + seed % 3)
        for tested in (claim, GaussianDP(0.2)):
            assert with_plan.log_e(tested, counts) >= without.log_e(tested, counts) - threshold / 4 - 1e-9


@pytest.mark.parametrize(
    ("claim", "truth", "most", "confidence"),
    [
        pytest.param("gaussian(mu=0.8)", "gaussian(mu=1)", 1.35, 0.95, marks=pytest.mark.slow),
        pytest.param("gaussian(mu=1)", "gaussian(mu=1.2)", 1.35, 0.95, marks=pytest.mark.slow),
        pytest.param("pure(epsilon=1)", "laplace(epsilon=1.2)", 1.35, 0.999, marks=pytest.mark.slow),
        ("pure(epsilon=1)", "pure(epsilon=1.1)", 1.3, 0.95),
    ],
)
def test_a_planned_violation_is_detected_near_the_limit(claim: str, truth: str, most: float, confidence: float) -> None:
    """The mean of 300 audits with known scores has a standard error of 3 %.  The seed is fixed."""
    tested, violation = parse_claim(claim), parse_claim(truth)
    law, planned = pair_laws(violation)[0], Planned(violations=(violation,), confidence=confidence)
    alone = Strategy.of(planned_bets(tested, planned), np.ones(1))
    prices = alone.log_prices(tested)
    growth = float((law[0] @ alone.log_payoffs0.T + law[1] @ alone.log_payoffs1.T - prices)[0])
    limit = log_threshold(confidence) / growth
    stops, before = (
        stopping_times(bets, tested, law, log_threshold(confidence), seed=1, first=int(limit / 20)).mean() / limit
        for bets in (strategy(tested, planned), strategy(tested))
    )
    assert stops < min(most, before)


@pytest.mark.parametrize(
    ("claim", "violations", "audits", "steps"),
    [
        *((*CASES[i], 400, 60) for i in (1, 3)),
        *(pytest.param(*case, 1000, 200, marks=pytest.mark.slow) for case in CASES[:5]),
    ],
    ids=str,
)
def test_a_true_claim_is_rarely_refuted_whatever_is_planned(
    claim: TradeoffFunction, violations: tuple[TradeoffFunction, ...], audits: int, steps: int
) -> None:
    """Each audit knows the likelihood ratio of the claim's least-private pair.

    An analysis follows each tenth trial.  Fails by chance < 1 in 10**6 for each claim.
    """
    confidence, rng = 0.95, np.random.default_rng(5)
    bets = strategy(claim, Planned(violations=violations, confidence=confidence))
    prices, laws = bets.log_prices(claim), [np.cumsum(law / law.sum()) for law in scaled(claim, 1.0)]
    payoffs = [np.ascontiguousarray(side.T) for side in (bets.log_payoffs0, bets.log_payoffs1)]
    gains, refuted = np.zeros((audits, len(prices))), np.zeros(audits, dtype=bool)
    for _ in range(steps):
        for law, paid in zip(laws, payoffs, strict=True):
            for outputs in np.minimum(np.searchsorted(law, rng.random((10, audits))), BINS - 1):
                gains += paid[outputs]
        gains -= 10 * prices
        refuted |= np.logaddexp.reduce(bets.log_weights + gains, axis=1) >= log_threshold(confidence)
    assert refuted.sum() <= binom.ppf(1 - 1e-6, audits, 1 - confidence)


def test_the_expected_e_value_of_each_planned_bet_is_at_most_one() -> None:
    """On the claim's least-private pair, at its true bins, the expectation is computed exactly."""
    for claim, violations in CASES[:4]:
        p, q = scaled(claim, 1.0)
        for bet in planned_bets(claim, Planned(violations=violations, confidence=0.95)):
            a, b = bet.log_payoffs()
            budget = bet.safe0 + bet.safe1 + float(bet.stakes @ (np.exp(bet.slopes) + claim.delta(bet.slopes)))
            assert float(p @ np.exp(a)) * float(q @ np.exp(b)) <= (budget / 2) ** 2 * (1 + 1e-6)


def test_a_law_that_satisfies_the_claim_gets_no_share() -> None:
    kept = Planned(violations=(GaussianDP(0.9),), confidence=0.95)
    assert planned_bets(GaussianDP(1.0), kept) == []
    assert len(strategy(GaussianDP(1.0), kept).log_weights) == len(strategy(GaussianDP(1.0)).log_weights)


@pytest.mark.parametrize("mu", [35.0, 38.0, 60.0, 500.0])
def test_laws_that_reveal_almost_everything_are_laws(mu: float) -> None:
    """A quotient of two tiny masses exceeded the range of floats, and numpy warned the user.  Warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        masses = scaled(GaussianDP(mu), 1.0)
        bets = planned_bets(GaussianDP(1.0), Planned(violations=(GaussianDP(mu),), confidence=0.95))
    assert all(np.all(side >= 0) and side.sum() == pytest.approx(1) for side in masses)
    assert np.argmax(masses[0]) < 10
    assert np.argmax(masses[1]) > BINS - 15
    assert len(bets) >= 1


def test_impossible_plans_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one violation, got none"):
        Planned(violations=(), confidence=0.95)
    for confidence in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="must lie between 0 and 1, got"):
            Planned(violations=(GaussianDP(1.0),), confidence=confidence)
