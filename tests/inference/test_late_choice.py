"""Late bets: the choice of a bet, and the expected wealth over all outcomes of a small audit."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction
from dpaudit.engine.sequential import LateBetting
from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.inference.power import growths, power_margin
from dpaudit.inference.sequential.alternatives import (
    Alternative,
    alternatives,
    blurred,
    laplace_noise,
    pair_laws,
    scaled,
)
from dpaudit.inference.sequential.betting import best_bet
from dpaudit.inference.sequential.late_bets import LATE_LOG_E, forecast
from dpaudit.inference.sequential.planned import Planned, growth_rate
from dpaudit.inference.sequential.strategy import Counts, log_threshold, strategy
from dpaudit.numerics import Array

CONFIDENCE = 0.9


def normal_tail(mean: float, variance: float, needed: float) -> float:
    return 0.5 * math.erfc((needed - mean) / math.sqrt(2 * variance))


def moments(log_payoffs: list[tuple[float, float]]) -> tuple[float, float]:
    """Return mean and variance of values that are given with their probabilities."""
    mean = sum(chance * max(value, -60.0) for chance, value in log_payoffs if chance)
    square = sum(chance * max(value, -60.0) ** 2 for chance, value in log_payoffs if chance)
    return mean, square - mean**2


@pytest.mark.parametrize("coins", [False, True])
def test_the_chances_are_those_of_a_plain_second_version(coins: bool) -> None:
    claim, planned = GaussianDP(1.0), Planned(violations=(GaussianDP(1.3),), confidence=0.95)
    bets, plan = strategy(claim, planned), forecast(GaussianDP(1.0), planned, coin_selected=coins)
    rng = np.random.default_rng(3)
    counts: Counts = np.array([[bin_counts(rng.normal(m, 1, 40)) for m in (-0.5, 0.8)] for _ in range(2)])
    prices = bets.log_prices(claim)
    gains = bets.gains(prices, counts, coin_selected=coins)
    left, needed = 100, 2.0
    found = plan.chances(counts, gains, needed=needed, left=left)

    laws = [(one.p, one.q) for one in alternatives(claim)] + list(pair_laws(GaussianDP(1.3)))
    own = [*range(len(laws) - 1), len(prices) - 1]
    weights = {
        (i, a): math.exp(bets.log_weights[own[a]] + gains[i, own[a]]) for i in range(2) for a in range(len(laws))
    }
    total = sum(weights.values())

    def growth(bet: int, law: tuple[np.ndarray, np.ndarray]) -> tuple[float, float]:
        m0, v0 = moments(list(zip(law[0].tolist(), bets.log_payoffs0[bet].tolist(), strict=True)))
        m1, v1 = moments(list(zip(law[1].tolist(), bets.log_payoffs1[bet].tolist(), strict=True)))
        if coins:
            return (m0 + m1 - prices[bet]) / 2, (v0 + v1 + (m0 - m1) ** 2 / 2) / 2
        return m0 + m1 - prices[bet], v0 + v1

    for pair, bet in itertools.product(range(2), (0, 7, len(prices) - 1)):
        supposed = 0.0
        for a, law in enumerate(laws):
            mean, variance = growth(bet, law)
            supposed += weights[pair, a] / total * normal_tail(left * mean, left * max(variance, 1e-12), needed)
        mean, variance = growth(bet, tuple(counts[pair] / counts[pair].sum(axis=1)[:, None]))
        made = 80 if coins else 40
        share = sum(weights[pair, a] for a in range(len(laws))) / total
        observed = share * normal_tail(left * mean, left * max(variance * (1 + left / made), 1e-12), needed)
        assert found[pair, bet] == pytest.approx((supposed + observed) / 2, rel=1e-6, abs=1e-12)


@dataclass
class Refitted:
    """A learner that is refitted after each trial, and knows an identifying value if d0 has never shown 1."""

    counts: Counts
    fitted_at: int

    def identified(self) -> Counts | None:
        return self.counts if not self.counts[0, BINS // 2 :].any() and self.counts[1, BINS // 2 :].any() else None


class SmallAudit:
    """An audit of one pair whose outputs are -1 or 1, with late bets, one trial at a time."""

    def __init__(self, target: TradeoffFunction, trials: int, *, follows: bool = False) -> None:
        self.target, self.trials, self.follows = target, trials, follows
        self.bets = strategy(target)
        self.prices = self.bets.log_prices(target)

    def run(self, outputs: Sequence[tuple[int, ...]]) -> tuple[Counts, LateBetting, list[float]]:
        """Return the counts, the late bets, and the log-wealth against the target after each trial."""
        late = LateBetting(
            tested=self.target, planned=None, confidence=CONFIDENCE, trials=self.trials, coin_selected=False
        )
        counts: Counts = np.zeros((1, 2, BINS), dtype=np.int64)
        path = [0.0]
        for made, (x, y) in enumerate(outputs):
            gains = self.bets.gains(self.prices, counts)
            if self.follows:
                late.follow(made, counts, gains, path[-1], Refitted(counts[0].copy(), made))
            late.choose(made, counts, gains, path[-1], [0], ())
            counts[0] += [bin_counts(np.array([float(value)])) for value in (x, y)]
            wealth = late.log_e(counts, ())
            path.append(self.bets.log_wealth(self.bets.gains(self.prices, counts)) if wealth is None else wealth)
        return counts, late, path


@pytest.mark.parametrize(
    ("target", "claim", "expected"),
    [(1.0, 1.0, 1.0), (1.0, 1.3, 1.0), (1.4, 0.9, 1.0)],
    ids=["the audited claim", "a weaker claim", "a stronger claim"],
)
def test_the_expected_wealth_of_a_true_claim_is_at_most_1(target: float, claim: float, expected: float) -> None:
    """All outcomes of three trials of randomised response that just keeps `claim`, with their probabilities.

    The bets are chosen for `target`, and the wealth is that against `claim`.
    """
    audit, tested = SmallAudit(PureDP(target), trials=3), PureDP(claim)
    right = math.exp(claim) / (1 + math.exp(claim))
    mean, used = 0.0, 0
    for outputs in itertools.product(itertools.product((-1, 1), repeat=2), repeat=3):
        chance = math.prod((right if x < 0 else 1 - right) * (right if y > 0 else 1 - right) for x, y in outputs)
        counts, late, path = audit.run(outputs)
        evidence = late.evidence(counts)
        if evidence is None:
            log_e = audit.bets.log_e(tested, counts)
        else:
            used += 1
            log_e = evidence.wealth_on(audit.bets, counts, (), coin_selected=False)(tested)
        if target == claim:
            assert log_e == pytest.approx(path[-1], abs=1e-9)
        mean += chance * math.exp(log_e)
    assert used > 12  # late bets were placed in many of the 64 outcomes
    assert mean <= expected + 1e-9
    assert mean > 0.8  # the bets are fair, or nearly so


@pytest.mark.parametrize(("claim", "often"), [(1.1, 0.5), (1.1, 0.2), (1.3, 0.4)])
def test_the_expected_wealth_of_bets_on_identifying_values_is_at_most_1(claim: float, often: float) -> None:
    """All outcomes of five trials; d1 shows the value 1 as much more often than d0 as `claim` allows."""
    audit = SmallAudit(ApproxDP(epsilon=1.1, delta=1e-3), trials=8, follows=True)
    tested = ApproxDP(epsilon=claim, delta=1e-3)
    rare = (often - 1e-3) * math.exp(-claim)
    mean, moved = 0.0, set()
    for outputs in itertools.product(itertools.product((-1, 1), repeat=2), repeat=5):
        chance = math.prod((rare if x > 0 else 1 - rare) * (often if y > 0 else 1 - often) for x, y in outputs)
        counts, late, path = audit.run(outputs)
        evidence = late.evidence(counts)
        log_e = audit.bets.log_e(tested, counts)
        if evidence is not None:
            moved.add(evidence.before.sum() // 2)
            log_e = evidence.wealth_on(audit.bets, counts, (), coin_selected=False)(tested)
        if claim == 1.1:
            assert log_e == pytest.approx(path[-1], abs=1e-9)
        mean += chance * math.exp(log_e)
    assert {2, 3, 4} <= moved  # trials before the first bet on the value
    assert 0.3 < mean <= 1 + 1e-9


def test_without_enough_wealth_no_late_bet_is_placed() -> None:
    audit = SmallAudit(PureDP(1.0), trials=40)
    good, bad = ((-1, 1),) * 40, ((1, -1),) * 40
    assert audit.run(good)[1].pair == 0
    counts, late, path = audit.run(bad)
    assert path[20] < LATE_LOG_E
    assert late.pair is None
    assert late.evidence(counts) is None


@pytest.mark.slow
def test_late_bets_find_more_violations() -> None:
    """Exact scores of Gaussian noise, mu = 1 against the claim mu = 0.8, 700 trials.  The seed decides.

    The fixed test finds 90 %, late bets 93 %, and the usual bets 83 % of the violations.
    """
    claim, n, audits = GaussianDP(0.8), 700, 60
    bets = strategy(claim)
    prices = bets.log_prices(claim)
    rng = np.random.default_rng(5)
    found = {"late": 0, "usual": 0}
    for _ in range(audits):
        late = LateBetting(tested=claim, planned=None, confidence=0.95, trials=n, coin_selected=False)
        sides = rng.normal(-0.5, 1, n), rng.normal(0.5, 1, n)
        counts: Counts = np.zeros((1, 2, BINS), dtype=np.int64)
        now = usual = most = most_usual = 0.0
        for made in range(0, n, 50):
            late.choose(made, counts, bets.gains(prices, counts), now, [0], ())
            counts[0] += [bin_counts(side[made : made + 50]) for side in sides]
            usual = bets.log_wealth(bets.gains(prices, counts))
            wealth = late.log_e(counts, ())
            now = usual if wealth is None else wealth
            most, most_usual = max(most, now), max(most_usual, usual)
        found["late"] += most >= math.log(20)
        found["usual"] += most_usual >= math.log(20)
    assert found["late"] >= found["usual"] + 3


POINT = ApproxDP(epsilon=1.0, delta=1e-5)


def cost_in_nats(claim: TradeoffFunction, p: Array, q: Array) -> float:
    """Return how much of the growth at 95 % confidence is missing: log(1/share), and the growth that a bet loses.

    The bet with the smallest sum is taken; several good bets together cost less.
    """
    law = Alternative(p=p, q=q, weight=1.0)
    best = growth_rate(best_bet(law, claim), claim, law)
    bets = strategy(claim)
    growth = bets.log_payoffs0 @ p + bets.log_payoffs1 @ q - bets.log_prices(claim)
    trials = log_threshold(0.95) / best
    return float(np.min(-bets.log_weights + (best - growth) * trials))


@pytest.mark.parametrize("mu", [0.295, 0.335, 0.4])
def test_gaussian_noise_slightly_above_the_point_of_a_claim_has_a_large_share(mu: float) -> None:
    """Without its own alternatives the cost is above five nats."""
    (law,) = pair_laws(GaussianDP(mu))
    assert cost_in_nats(POINT, *law) < 3.1


def test_laplace_noise_has_a_large_share_against_a_pure_claim_even_if_scores_are_inexact() -> None:
    law = laplace_noise(1.2)
    for deviation in (1e-6, 0.05, 0.1):
        assert cost_in_nats(PureDP(1.0), *blurred(law.p, law.q, deviation)) < 3.2


@pytest.mark.parametrize(
    ("claim", "truth"), [(POINT, POINT), (POINT, GaussianDP(0.268)), (PureDP(1.0), LaplaceDP(1.0))], ids=str
)
def test_true_claims_at_the_boundary_are_rarely_refuted(claim: TradeoffFunction, truth: TradeoffFunction) -> None:
    """Fails by chance < 1 in 10**6.  300 audits with known ratios, each examined 30 times up to 10^5 trials."""
    assert float(np.max(truth.delta(np.linspace(-3, 3, 61)) - claim.delta(np.linspace(-3, 3, 61)))) < 1e-9
    ((p, q),) = pair_laws(truth)
    occupied = np.flatnonzero(p + q > 0)
    bets, rng, audits = strategy(claim), np.random.default_rng(11), 300
    prices, wealth, highest = bets.log_prices(claim), np.zeros((audits, len(bets.log_weights))), np.zeros(audits)
    trials = np.unique(np.geomspace(1, 100_000, 30).astype(int))
    for n in np.diff(trials, prepend=0):
        for law, payoffs in ((p, bets.log_payoffs0), (q, bets.log_payoffs1)):
            wealth += rng.multinomial(n, law[occupied] / law.sum(), audits) @ payoffs[:, occupied].T
        wealth -= n * prices
        highest = np.maximum(highest, np.logaddexp.reduce(bets.log_weights + wealth, axis=1))
    assert np.sum(highest >= log_threshold(0.95)) <= binom.ppf(1 - 1e-6, audits, 0.05)


def test_coins_that_select_the_datasets_add_variance() -> None:
    """Compares with the exact variance of one output whose dataset a fair coin selects."""
    claim, (p, q) = GaussianDP(0.5), scaled(GaussianDP(1.5), 1.0)
    bets = strategy(claim)
    fixed, coins = (growths(bets, claim, (p, q), coin_selected=coin)[1] for coin in (False, True))
    payoffs0, payoffs1 = np.maximum(bets.log_payoffs0, -60.0), np.maximum(bets.log_payoffs1, -60.0)
    mean = (payoffs0 @ p + payoffs1 @ q) / 2
    exact = (payoffs0**2 @ p + payoffs1**2 @ q) / 2 - mean**2
    assert coins == pytest.approx(2 * exact, abs=1e-9)
    assert np.all(coins >= fixed)
    margins = [
        power_margin(bets, claim, (p, q), 200, significance=0.05, power=0.9, coin_selected=coin)
        for coin in (False, True)
    ]
    assert margins[1] < margins[0]
