"""Slow reference implementations of bounds and laws, written from the formulas."""

import itertools
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

import numpy as np
from scipy.optimize import bisect, linprog
from scipy.sparse import coo_array
from scipy.special import comb, ndtr, ndtri, xlogy
from scipy.stats import beta as beta_law

from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TabulatedTradeoff, TradeoffFunction
from dpaudit.inference.fixed.exact_binomial import ALPHA_SHARE
from dpaudit.inference.one_run import shape_of
from dpaudit.numerics import Array


def plain_exact(epsilon: float, delta: float, m: int, r: int, v: int) -> float:
    """Compute `p_value_exact` from its theorem by direct summation."""
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    mass = [math.comb(r, k) * q**k * (1 - q) ** (r - k) for k in range(r + 1)]
    above = sum(mass[v:])
    return min(1.0, above + m * delta * above * sum(mass[:v]) / (v * mass[v]))


def plain_recursion(inverse: Callable[[float], float], m: int, r: int, v: int, significance: float) -> bool:
    """Run the recursion of Mahloujifar, Melis & Chaudhuri 2024 in R and H; it refutes iff R + H > r/m."""
    right, wrong = significance * v / m, significance * (r - v) / m
    for i in range(v - 1, -1, -1):
        more = max(wrong, inverse(right))
        right, wrong = min(1.0, right + i / (r - i) * (more - wrong)), more
    return right + wrong > r / m


def refutes_by_recursion(claim: TradeoffFunction, m: int, r: int, v: int, *, significance: float) -> bool:
    """Test by the recursion of Mahloujifar, Melis & Chaudhuri 2024 only; see `_Shape.refutes`."""
    return shape_of(claim.symmetrized()).refutes(m, r, v, significance)


def inverse_of(claim: TradeoffFunction) -> Callable[[float], float]:
    """Return the inverse of a -> 1 - f(a) in closed form, or as f(1 - x), since a symmetric f is its own inverse."""
    if isinstance(claim, GaussianDP):
        mu = claim.mu()
        return lambda x: float(ndtr(ndtri(x) - mu))
    assert claim.symmetric
    return lambda x: claim.beta(1 - x) if x < 1 else 1.0


def bisected_inverse(claim: TradeoffFunction, x: Array) -> Array:
    """Compute the inverse of a -> 1 - f(a) from below, by bisection of beta."""
    low, high = np.zeros(len(x)), np.ones(len(x))
    for _ in range(40):
        middle = (low + high) / 2
        below = 1 - claim.beta(middle) <= x
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def least_refuted(refuted: Callable[[float], bool]) -> float:
    """Find the smallest significance at which a monotone test refutes, by bisection; 1 if there is none."""
    low, high = -30.0, 0.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(math.exp(middle)) else (middle, high)
    return math.exp(high)


def largest_chance(m: int, r: int, v: int, epsilons: Array, deltas: Array) -> float:
    """Compute the maximum of P[v or more right] over mechanisms that are (epsilon, delta)-DP for all given pairs.

    The maximum is the solution of a linear program.  A mechanism can be averaged over permutations of the canaries, and
    over flips of a coin together with the guess about it.  This preserves its privacy and the number of right guesses.
    So the only unknown is the law of that number.
    """
    return float(largest_law(m, r, v, epsilons, deltas)[v:].sum())


def largest_law(m: int, r: int, v: int, epsilons: Array, deltas: Array) -> Array:
    """Compute the law of the number of right guesses that has the maximum of `largest_chance`, (r + 1,)."""
    counts, k = r + 1, np.arange(1, r + 1)
    size = counts + 2 * r * len(epsilons)  # p_0, ..., p_r, and the positive parts of A - e^s B and of B - e^s A
    rows, columns, values, limits = [], [], [], []
    row = 0
    for j, (slope, gap) in enumerate(zip(np.exp(epsilons), deltas, strict=True)):
        start = counts + 2 * r * j
        for weight_right, weight_wrong, first in ((1.0, -slope, start), (-slope, 1.0, start + r)):
            rows += [row + k - 1] * 3
            columns += [k, k - 1, first + k - 1]
            values += [weight_right * k / m, weight_wrong * (r - k + 1) / m, -np.ones(r)]
            limits.append(np.zeros(r))
            row += r
        rows.append(np.full(2 * r, row))
        columns.append(np.arange(start, start + 2 * r))
        values.append(np.ones(2 * r))
        limits.append(np.array([gap]))
        row += 1
    matrix = coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(row, size))
    total = coo_array((np.ones(counts), (np.zeros(counts, int), np.arange(counts))), shape=(1, size))
    gain = np.zeros(size)
    gain[v:counts] = -1
    upper, equal = cast(Any, matrix.tocsr()), cast(Any, total.tocsr())  # the stubs lack sparse matrices
    found: Any = linprog(gain, upper, np.concatenate(limits), equal, [1.0], bounds=(0, None))
    assert found.success
    law: Array = np.maximum(found.x[:counts], 0.0)
    return law


def largest_chance_of_all(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """Compute the maximum with the probability of every output as an unknown, to check the symmetry argument."""
    inputs = list(itertools.product((-1, 1), repeat=m))
    outputs = [t for t in itertools.product((-1, 0, 1), repeat=m) if sum(map(abs, t)) == r]
    chance = {(u, t): i for i, (u, t) in enumerate(itertools.product(inputs, outputs))}
    gain = np.zeros(len(chance))
    upper, limits = [], []
    for (u, t), i in chance.items():
        gain[i] = -(sum(a == b for a, b in zip(u, t, strict=True)) >= v) / len(inputs)
    neighbours = [(u, (*u[:i], -u[i], *u[i + 1 :])) for u in inputs for i in range(m)]
    size = len(chance) + len(neighbours) * len(outputs)
    for pair, (u, other) in enumerate(neighbours):
        whole = np.zeros(size)
        for j, t in enumerate(outputs):
            excess = len(chance) + pair * len(outputs) + j
            line = np.zeros(size)
            line[chance[u, t]], line[chance[other, t]], line[excess] = 1, -math.exp(epsilon), -1
            upper.append(line)
            limits.append(0.0)
            whole[excess] = 1
        upper.append(whole)
        limits.append(delta)
    equal = np.zeros((len(inputs), size))
    for (u, _), i in chance.items():
        equal[inputs.index(u), i] = 1
    gain = np.concatenate([gain, np.zeros(size - len(chance))])
    found: Any = linprog(gain, np.array(upper), limits, equal, np.ones(len(inputs)), bounds=(0, None))
    assert found.success
    return -float(found.fun)


ASYMMETRIC = TabulatedTradeoff(alpha=[0.0, 0.1, 0.5, 1.0], beta=[0.9, 0.5, 0.1, 0.0])
CLAIMS: list[TradeoffFunction] = [
    PureDP(0.0),
    PureDP(1.0),
    PureDP(3.0),
    GaussianDP(0.0),
    GaussianDP(0.7),
    GaussianDP(2.0),
    ApproxDP(epsilon=0.0, delta=0.3),
    ApproxDP(epsilon=0.5, delta=0.1),
    ApproxDP(epsilon=2.0, delta=0.01),
    LaplaceDP(1.5),
    ASYMMETRIC,
]
ALPHAS: Array = np.unique(np.concatenate([[0.0, 1.0], np.geomspace(1e-6, 0.5, 150), np.linspace(0, 1, 301)]))


def points(claim: TradeoffFunction, n0: int, n1: int) -> tuple[Array, Array]:
    """Return the complete grid along the curve from which evidence is computed."""

    def grid(n: int) -> Array:
        step = 0.1 / (2 * math.sqrt(n))
        angles = np.minimum(step * np.arange(math.ceil(math.pi / 2 / step) + 1), math.pi / 2)
        return np.asarray(np.sin(angles) ** 2)

    alpha, beta = grid(n0), grid(n1)
    return np.concatenate([alpha, claim.beta(beta)]), np.concatenate([claim.beta(alpha), beta])


@lru_cache
def plain_evidence(claim: TradeoffFunction, n0: int, n1: int) -> Array:
    """Return the evidence of every outcome (x, z), (n0 + 1, n1 + 1)."""

    def divergence(n: int, rates: Array) -> Array:
        p = ((np.arange(n + 1) + 0.5) / (n + 1))[:, None]
        with np.errstate(divide="ignore"):
            value = xlogy(p, p) - xlogy(p, rates) + xlogy(1 - p, 1 - p) - xlogy(1 - p, 1 - rates)
        return np.where(p < rates, (n + 1) * value, 0.0)

    alpha, beta = points(claim.symmetrized(), n0, n1)
    return np.asarray((divergence(n0, alpha)[:, None, :] + divergence(n1, beta)[None, :, :]).min(axis=2))


def law(n: int, rates: Array) -> Array:
    """Return the probability of 0, ..., n errors at each rate, (n + 1, rates)."""
    k = np.arange(n + 1)[:, None]
    return np.asarray(comb(n, k) * rates**k * (1 - rates) ** (n - k))


def tail(inside: Array, n0: int, n1: int, alpha: Array, beta: Array) -> Array:
    """Return the probability of a set of outcomes, (n0 + 1, n1 + 1), at each (alpha, beta)."""
    return np.asarray((law(n0, alpha) * (inside @ law(n1, beta))).sum(axis=0))


def dense(x: int, n: int, level: float) -> Array:
    """Return a fine grid over the Clopper-Pearson interval of alpha, as angles."""
    low = beta_law.ppf(ALPHA_SHARE * level / 2, x, n - x + 1) if x > 0 else 0.0
    high = beta_law.isf(ALPHA_SHARE * level / 2, x + 1, n - x) if x < n else 1.0
    return np.asarray(np.linspace(math.asin(math.sqrt(low)), math.asin(math.sqrt(high)), 300))


def plain_p_value(claim: TradeoffFunction, x: int, n0: int, z: int, n1: int) -> float:
    """Compute inf { s : M(s) <= s } by bisection."""
    evidence = plain_evidence(claim, n0, n1)
    if evidence[x, z] <= 1e-9:
        return 1.0
    claim = claim.symmetrized()
    inside = (evidence >= evidence[x, z] * (1 - 1e-9) - 1e-9).astype(float)

    def refuted(level: float) -> bool:
        alpha = np.sin(dense(x, n0, level)) ** 2
        return float(tail(inside, n0, n1, alpha, claim.beta(alpha)).max()) <= (1 - ALPHA_SHARE) * level

    low, high = 0.0, 1.0
    if not refuted(high):
        return 1.0
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return high


def plain_bound(family: Callable[[float], TradeoffFunction], x: int, n0: int, z: int, n1: int) -> float:
    """Compute the bound of Theorem 2 for a significance of 0.05 by a scan from above."""
    cutoff, steps = float(ndtri(0.05)) ** 2 / 2, np.arange(0, 6, 0.02)
    against_none = plain_evidence(family(0.0), n0, n1)
    if against_none[x, z] <= 1e-9:
        return 0.0
    if against_none[x, z] < cutoff:
        inside = against_none >= against_none[x, z] - 1e-9
    else:
        rank = bisect(lambda t: plain_evidence(family(t), n0, n1)[x, z] - cutoff, 0.0, 20.0, xtol=1e-6)
        inside = plain_evidence(family(rank - 2e-6), n0, n1) >= cutoff - 1e-9
    alpha = np.sin(dense(x, n0, 0.05)) ** 2
    for t in steps[::-1]:
        if tail(inside.astype(float), n0, n1, alpha, family(t).beta(alpha)).max() <= (1 - ALPHA_SHARE) * 0.05:
            return float(t)
    return 0.0


def simulated_runs(claim: TradeoffFunction, n0: int, n1: int, r: int, draws: int, rng: np.random.Generator) -> Array:
    """Simulate the number of d1's among the r smallest numbers, if d0 shows U and d1 shows f(U), (draws,)."""
    numbers = np.hstack([rng.random((draws, n0)), claim.beta(rng.random((draws, n1)))])
    return np.asarray((np.argsort(numbers, axis=1)[:, :r] >= n0).sum(axis=1))
