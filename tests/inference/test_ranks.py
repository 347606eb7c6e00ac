"""Scores in their order: the statistic, its worst-case laws and the bounds, against slow plain versions."""

from functools import cache, partial
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from scipy.special import expit
from scipy.stats import binom

from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction, parse_claim
from dpaudit.inference.scores.rank_bounds import Path, RankTest
from dpaudit.inference.scores.rank_laws import Inclusion, Independent, Observed, simulated, tail
from dpaudit.inference.scores.ranks import Blocks, Statistic, posteriors
from dpaudit.inference.scores.runs import draw_independent, levels

CLAIMS = [ApproxDP(epsilon=1.0, delta=0.1), GaussianDP(1.5), parse_claim("laplace(epsilon=1.2)")]


def statistic(blocks: Blocks, e: float) -> Statistic:
    return Statistic.of(blocks, blocks.prior + e)


@pytest.mark.parametrize(("top", "bottom"), [(1, 1), (3, 3), (5, 2), (40, 60), (500, 500), (1000, 20)])
def test_blocks_count_every_right_guess_once(top: int, bottom: int) -> None:
    rng, blocks = np.random.default_rng(top), Blocks(top, bottom)
    of_d1 = rng.random(top + bottom) < 0.5
    right = blocks.right(of_d1)
    assert blocks.sizes.sum() == top + bottom
    assert np.all((right >= 0) & (right <= blocks.sizes))
    assert right.sum() == of_d1[:top].sum() + (~of_d1[top:]).sum()


@pytest.mark.parametrize("reference", ["epsilon", "mu"])
@pytest.mark.parametrize(("top", "bottom"), [(30, 30), (50, 12), (7, 40)])
def test_the_statistic_does_not_fall_when_guesses_become_better(top: int, bottom: int, reference: str) -> None:
    rng, blocks = np.random.default_rng(top), Blocks(top, bottom)
    used = (
        statistic(blocks, 0.7)
        if reference == "epsilon"
        else Statistic.of(blocks, blocks.prior + posteriors(blocks, 0.7)[0])
    )
    for _ in range(100):
        of_d1 = rng.random(top + bottom) < rng.random()
        for i in np.flatnonzero(~of_d1[:-1] & of_d1[1:]):
            better = of_d1.copy()
            better[[i, i + 1]] = better[[i + 1, i]]
            assert used.log(blocks.right(better)) >= used.log(blocks.right(of_d1)) - 1e-9
        for i in np.flatnonzero(~of_d1[:top]):
            better = of_d1.copy()
            better[i] = True
            assert used.log(blocks.right(better)) >= used.log(blocks.right(of_d1)) - 1e-9


def test_the_statistic_is_the_mixture_of_likelihood_ratios() -> None:
    """Sum products over single ranks, without logarithms."""
    blocks, rng = Blocks(9, 6), np.random.default_rng(0)
    used = statistic(blocks, 0.5)
    of_d1 = rng.random(15) < 0.6
    right_guess = np.concatenate([of_d1[:9], ~of_d1[9:][::-1]])
    block = np.repeat(np.arange(len(blocks.sizes)), blocks.sizes)
    q = expit(blocks.prior + 0.5)[block]
    wrong_constant = np.logaddexp(0, blocks.prior + 0.5) - np.logaddexp(0, blocks.prior + 0.5 + used.gains)
    weights = np.exp(used.constants - wrong_constant @ blocks.sizes)
    total = 0.0
    for weight, gains in zip(weights, used.gains, strict=True):
        p = expit(blocks.prior + 0.5 + gains)[block]
        total += weight * np.prod(np.where(right_guess, p / q, (1 - p) / (1 - q)))
    assert weights.sum() == pytest.approx(1)
    assert np.exp(used.log(blocks.right(of_d1))) == pytest.approx(total)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_the_polygon_of_a_claim_promises_a_little_less(claim: TradeoffFunction) -> None:
    of_d0, of_d1 = levels(claim)
    alpha, power = (np.minimum(np.cumsum(each), 1.0) for each in (of_d0, of_d1))
    assert np.all(np.diff(np.divide(of_d1, of_d0, out=np.full(len(of_d0), np.inf), where=of_d0 > 0)) <= 1e-9)
    assert np.all(1 - power <= claim.beta(alpha) + 1e-12)
    assert np.max(claim.beta(alpha) - (1 - power)) < 1e-3


def sorted_numbers(claim: TradeoffFunction, n0: int, n1: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Draw and sort a number for each run, and return which are of d1: the law of the theorem, run by run."""
    grid = np.linspace(0, 1, 20_001)
    power = 1 - claim.beta(grid)
    u = rng.random((draws, n1))
    of_d1 = np.where(u < power[0], u - 1, np.interp(u, power, grid))  # u - 1 is below every number of d0
    return np.argsort(np.concatenate([rng.random((draws, n0)), of_d1], axis=1), axis=1) >= n0


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(("n0", "n1"), [(20, 20), (30, 8)])
def test_the_law_of_independent_scores_is_that_of_sorted_numbers(claim: TradeoffFunction, n0: int, n1: int) -> None:
    """Compare means of 20,000 draws; one of 22 differs by six standard errors with chance below 1e-6."""
    blocks, rng, draws = Blocks(n1, n0), np.random.default_rng(1), 20_000
    quick = draw_independent(blocks, *levels(claim), draws, rng)
    slow = np.array([blocks.right(of_d1) for of_d1 in sorted_numbers(claim, n0, n1, draws, rng)])
    error = np.sqrt((quick.var(axis=0) + slow.var(axis=0)) / draws)
    assert np.all(np.abs(quick.mean(axis=0) - slow.mean(axis=0)) <= 6 * error + 2e-3)
    used = statistic(blocks, 0.8)
    for level in (0.5, 0.1, 0.02):
        t = np.quantile(used.log(slow), 1 - level)
        assert np.mean(used.log(quick) >= t) == pytest.approx(
            np.mean(used.log(slow) >= t), abs=6 * (level / draws) ** 0.5
        )


def test_the_law_of_pure_claims_is_exact() -> None:
    """Enumerate the numbers of right answers and all orders, for three runs on each dataset."""
    n, epsilon = 3, 1.0
    blocks, q = Blocks(n, n), expit(epsilon)
    used = statistic(blocks, 0.6)
    chances: dict[tuple[bool, ...], float] = {}
    for high1, high0 in product(range(n + 1), repeat=2):
        chance = binom.pmf(high1, n, q) * binom.pmf(high0, n, 1 - q)
        orders = [
            (up, down)
            for up in combinations(range(high1 + high0), high1)
            for down in combinations(range(2 * n - high1 - high0), n - high1)
        ]
        for up, down in orders:
            of_d1 = tuple(i in up for i in range(high1 + high0)) + tuple(
                i in down for i in range(2 * n - high1 - high0)
            )
            chances[of_d1] = chances.get(of_d1, 0.0) + chance / len(orders)
    values = {of_d1: float(used.log(blocks.right(np.array(of_d1)))) for of_d1 in chances}
    drawn = partial(draw_independent, blocks, *levels(ApproxDP(epsilon=epsilon, delta=0.0)))
    parts = partial(simulated, drawn, used)
    for t in sorted(set(values.values()))[::5]:
        exact = sum(chances[of_d1] for of_d1, value in values.items() if value >= t - 1e-9)
        bound = tail(parts, Observed(used, t), level=0.05, enough=0.0, draws=20_000)
        assert exact <= bound <= exact + 0.03


@pytest.mark.parametrize(("m", "epsilon", "delta"), [(2, 0.5, 0.1), (3, 0.5, 0.05), (3, 1.5, 0.02)])
def test_no_mechanism_exceeds_the_bound_for_any_dependence(m: int, epsilon: float, delta: float) -> None:
    """Maximise P[A] over all mechanisms whose output is the order and so the guesses, by linear programming."""
    top = m // 2
    orders = list(permutations(range(m)))
    coins = list(product((False, True), repeat=m))
    blocks = Blocks(top, m - top)
    used = statistic(blocks, 0.4)
    values = np.array([[used.log(blocks.right(np.array(x)[list(order)])) for order in orders] for x in coins])
    for t in np.unique(np.round(values, 9)):
        event = values >= t - 1e-9
        best = _largest(event, coins, len(orders), epsilon, delta)
        q = expit(epsilon)
        law = _coin_law(blocks, used, q, t)
        assert best <= law + m * delta / (1 + np.exp(epsilon)) + 1e-7


def _coin_law(blocks: Blocks, used: Statistic, q: Any, t: float) -> float:
    ranges = [range(size + 1) for size in blocks.sizes]
    total = 0.0
    for right in product(*ranges):
        if used.log(np.array(right)) >= t - 1e-9:
            total += float(np.prod(binom.pmf(right, blocks.sizes, q)))
    return total


@cache
def _private(m: int, outputs: int, epsilon: float) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return the constraints of (epsilon, delta)-DP of every coin: rows for pairs and outputs, then sums for pairs."""
    coins = list(product((False, True), repeat=m))
    place = {x: i for i, x in enumerate(coins)}
    first = sparse.kron(sparse.eye_array(len(coins)), np.ones((m, 1)))  # the pairs of each x with its m neighbours
    others = [place[(*x[:k], not x[k], *x[k + 1 :])] for x in coins for k in range(m)]
    second = sparse.coo_array((np.ones(len(others)), (np.arange(len(others)), others)))
    each, pairs = sparse.eye_array(outputs), sparse.eye_array(len(others))
    excess = sparse.hstack([sparse.kron(first - np.exp(epsilon) * second, each), -sparse.kron(pairs, each)])
    total = np.ones((1, outputs))
    sums = sparse.hstack([sparse.csr_array((len(others), len(coins) * outputs)), sparse.kron(pairs, total)])
    equal = sparse.hstack(
        [sparse.kron(sparse.eye_array(len(coins)), total), sparse.csr_array((len(coins), len(others) * outputs))]
    )
    return sparse.csr_array(sparse.vstack([excess, sums])), sparse.csr_array(equal)


def _largest(
    event: np.ndarray,
    coins: list[tuple[bool, ...]],
    outputs: int,
    epsilon: float,
    delta: float,
    chance: np.ndarray | None = None,
) -> float:
    """Return the largest probability of an event under (epsilon, delta)-DP of every coin.

    The variables are P[output | coins], and for each pair of neighbours and output the positive part of the excess.
    """
    rows, equal = _private(len(coins[0]), outputs, epsilon)
    pairs = len(coins) * len(coins[0])
    bounds = np.repeat([0.0, delta], [pairs * outputs, pairs])
    goal = np.zeros(rows.shape[1])
    weight = np.full(len(coins), 1 / len(coins)) if chance is None else chance
    goal[: event.size] = -(event * weight[:, None]).ravel()
    found = linprog(goal, rows, bounds, equal, np.ones(len(coins)))
    assert found.fun is not None
    return -float(found.fun)


@pytest.mark.parametrize(
    ("m", "included", "epsilon", "delta"), [(3, 1, 0.5, 0.05), (3, 2, 1.0, 0.0), (4, 1, 0.4, 0.02)]
)
def test_no_mechanism_exceeds_the_bound_for_biased_coins(m: int, included: int, epsilon: float, delta: float) -> None:
    """As above, for coins with the probability included / m."""
    coins, orders = list(product((False, True), repeat=m)), list(permutations(range(m)))
    law = Inclusion(Blocks(included, m - included), share=included / m)
    used = statistic(law.blocks, 0.3)
    values = np.array([[used.log(law.blocks.right(np.array(x)[list(order)])) for order in orders] for x in coins])
    share = included / m
    chance = np.array([share ** sum(x) * (1 - share) ** (m - sum(x)) for x in coins])
    q = expit(law.log_odds(epsilon))
    for t in np.unique(np.round(values, 9)):
        best = _largest(values >= t - 1e-9, coins, len(orders), epsilon, delta, chance)
        assert best <= _coin_law(law.blocks, used, q, t) + law.spent(epsilon, delta) + 1e-7


@pytest.mark.parametrize(
    ("m", "included", "epsilon", "delta"), [(3, 1, 0.5, 0.05), (3, 2, 1.0, 0.0), (4, 2, 0.4, 0.02)]
)
def test_no_mechanism_exceeds_the_p_value_of_the_count(m: int, included: int, epsilon: float, delta: float) -> None:
    coins, orders = list(product((False, True), repeat=m)), list(permutations(range(m)))
    law = Inclusion(Blocks(included, m - included), share=included / m)
    counts = np.array([[law.counted(law.blocks.right(np.array(x)[list(order)])) for order in orders] for x in coins])
    share = included / m
    chance = np.array([share ** sum(x) * (1 - share) ** (m - sum(x)) for x in coins])
    for v in range(1, law.guesses + 1):
        best = _largest(counts >= v, coins, len(orders), epsilon, delta, chance)
        assert best <= law.of_count(ApproxDP(epsilon=epsilon, delta=delta).symmetrized(), v) + 1e-7


@pytest.mark.parametrize("share", [0.5, 4 / 7])
def test_the_mean_of_the_statistic_is_that_of_its_law(share: float) -> None:
    law = Inclusion(Blocks(4, 3), share=share)
    used, q = statistic(law.blocks, 0.6), expit(law.log_odds(0.4))
    total = 0.0
    for right in product(*[range(size + 1) for size in law.blocks.sizes]):
        total += float(np.exp(used.log(np.array(right))) * np.prod(binom.pmf(right, law.blocks.sizes, q)))
    assert np.exp(used.log_mean(q)) == pytest.approx(total)
    if share != 0.5:
        assert used.log_mean(expit(law.log_odds(0.6))) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "significance"), [(0.1, 0.2), (0.6, 0.2), (1.0, 0.5)])
def test_a_true_claim_is_refuted_as_rarely_as_stated(epsilon: float, significance: float) -> None:
    """Sum the probabilities of all outcomes of randomised response that refute it, by the bound or by the p-value."""
    law, wrong, found = Inclusion(Blocks(4, 4)), 0.0, 0.0
    for right in product(*[range(size + 1) for size in law.blocks.sizes]):
        chance = float(np.prod(binom.pmf(right, law.blocks.sizes, expit(epsilon))))
        test = RankTest(law, right, Path(0.0), significance)
        wrong += chance * (test.epsilon_lower(0.0, significance=significance) > epsilon)
        found += chance * (test.p_value(ApproxDP(epsilon=epsilon, delta=0.0)) <= significance)
    assert max(wrong, found) <= significance
    assert found > 0


def test_the_bound_is_that_of_exact_probabilities() -> None:
    """Invert exact tails of T instead of simulated bounds, reference by reference."""
    law, significance, rng = Inclusion(Blocks(7, 7)), 0.2, np.random.default_rng(4)
    sizes = law.blocks.sizes
    outcomes = np.array(list(product(*[range(size + 1) for size in sizes])))
    for q in (0.8, 0.95):
        right = rng.binomial(sizes, q)
        test = RankTest(law, tuple(right.tolist()), Path(0.0), significance)
        exact = 0.0
        for x in test.references:
            used = Statistic.of(law.blocks, Path(0.0).log_odds(law.blocks, x))
            reached = used.log(outcomes) >= used.log(right) - 1e-9
            tails = {
                y: float(np.prod(binom.pmf(outcomes[reached], sizes, expit(y)), axis=1).sum())
                for y in np.linspace(exact, x, 17)
            }
            refuted = [y for y, tail_of in tails.items() if tail_of <= test.share * significance]
            exact = max(refuted, default=exact)
            if exact < x:
                break
        assert test._end[0] <= exact
        assert test._end[0] >= 0.8 * exact - 0.05


@pytest.mark.parametrize("law", [Independent, Inclusion])
def test_bounds_reach_what_one_run_allows(law: Any) -> None:
    """N(2, 1) against N(0, 1), 500 each: above 2.4, the bound of ten Clopper-Pearson thresholds."""
    rng = np.random.default_rng(0)
    blocks = Blocks(500, 500)
    of_d1 = np.argsort(-np.concatenate([rng.normal(size=500), rng.normal(2, 1, 500)])) >= 500
    test = RankTest(law(blocks), tuple(blocks.right(of_d1).tolist()), Path(1e-5), 0.05)
    assert 2.9 < test.epsilon_lower(1e-5, significance=0.05) < 4.5
