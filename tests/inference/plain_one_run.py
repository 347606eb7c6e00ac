"""Slow reference implementations of the bounds for one run, written from the formulas."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array
from scipy.special import ndtr, ndtri

from dpaudit.claims import GaussianDP, TradeoffFunction
from dpaudit.inference.one_run import check_counts, shape_of
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
    check_counts(m, r, v, significance)
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
