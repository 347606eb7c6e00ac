"""Arbitrarily dependent canaries: the smallest p-value that the number of right guesses allows.

The setting and the pair of laws A, B are those of `inference.one_run`: m canaries, r guesses and V right guesses.  The
bounds of that module are quick to compute, but not tight for curved claims such as mu-GDP.

**Theorem.**  Let e_1, ..., e_J be epsilons >= 0, delta_j the claim's profile there, Y_j(1), ..., Y_j(r) >= 0 any
numbers, Y_j(0) = Y_j(r + 1) = 0, and

    b = max over k of 1[k >= v] - sum_j (k Y_j(k) - e^{e_j} (r - k) Y_j(k + 1)),    0 <= k <= r.

Then P[V >= v] <= b + m sum_j delta_j max_k Y_j(k) under the claim.

*Proof.*  By the choice of b, P[V >= v] <= b + sum_j E[V Y_j(V) - e^{e_j} (r - V) Y_j(V + 1)].  The expectation is
m sum_k Y_j(k) (A_k - e^{e_j} B_k), which is at most m max Y_j times the sum of the positive brackets.  That sum is at
most delta_j by (1) of `inference.one_run`.

A linear program finds the best Y.  Validity does not depend on the program's solution, since the bound is recomputed
from the Y.  If the program is solved and the epsilons are dense, the bound is the maximum of P[V >= v], unless the
second inequality of (1), which the theorem does not use, lowers this maximum.  The test suite compares the bound with
this maximum.  If both agree, no valid bound that depends on v alone is better.

**Corollary.**  Let f_t be a nested family.  The largest t with a bound <= s exceeds the true parameter with probability
at most s.  *Proof.*  The maximum probability of V >= v under f_t rises with t and falls with v.  Suppose that t is
above the true parameter and its bound is at most s.  Then V is one of the v whose maximum probability under the true
member is at most s.
"""

from __future__ import annotations

import math

import numpy as np

from dpaudit.claims import ApproxDP, GaussianDP, PureDP, TradeoffFunction
from dpaudit.inference import one_run
from dpaudit.inference.one_run import check_counts
from dpaudit.inference.scores.families import largest_refuted
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.caches import kept, read_only
from dpaudit.values import Foreign

MAX_GUESSES = 1500
"""Number of guesses beyond which the quick bound replaces the linear program, which would take over ten seconds."""

PRECISION = 1e-3
"""Precision of bounds that need a linear program for each member of a family; see `families.largest_refuted`."""

_POINTS = 16  # number of epsilons
_FAINT = 1e-6  # ratio of the profile at the last epsilon to the profile at the first
HOPELESS = 0.5
"""Quick bounds above this value are returned, since no sharper bound is likely to be significant."""


def p_value(claim: TradeoffFunction, m: int, r: int, v: int, *, enough: float = 0.0) -> float:
    """Bound the probability of v or more right guesses under a claim, at least as tightly as `one_run.p_value`.

    Approximate claims need no linear program, since the maximum probability is known; see `is_approximate`.

    Returns:
        A p-value; see the theorem of this module.
    """
    check_counts(m, r, v)
    f = claim.symmetrized()
    quick = _quick(f, m, r, v)
    if quick <= enough or quick > HOPELESS or v == 0 or r > MAX_GUESSES or is_approximate(f):
        return quick
    return min(quick, _sharp(f, m, r, v))


_quick = kept(256)(one_run.p_value)


@kept(256)  # the verdict, the detection limit and the report need the same p-values
def _sharp(claim: TradeoffFunction, m: int, r: int, v: int) -> float:
    epsilon = epsilons(claim)
    return bound(epsilon, np.asarray(claim.delta(epsilon)), m, r, v)


def is_approximate(claim: TradeoffFunction) -> bool:
    """Return whether a claim is (epsilon, delta)-DP, for which `one_run.p_value_exact` is the maximum probability.

    The proof of that maximum gives a mechanism that attains it, so the bound of this module is not smaller.
    """
    return isinstance(claim, PureDP | ApproxDP)


def bound(epsilon: Array, delta: Array, m: int, r: int, v: int) -> float:
    """Return the bound of the theorem of this module for nearly optimal Y.

    The proof needs only A(K) <= e^epsilon[j] B(K) + delta[j] for every set K, so epsilons may also be negative.
    """
    return _certified(_best(epsilon, delta, m, r, v), epsilon, delta, m, r, v)


def mu_lower(m: int, r: int, v: int, *, significance: float) -> float:
    """Compute a lower confidence bound of mu.

    Theorem:
        If the mechanism is mu-GDP, P[mu_lower > mu] <= significance.

    Args:
        m: Number of canaries.
        r: Number of guesses, chosen before the scores are seen.
        v: Number of right guesses.
        significance: In (0, 1).

    Returns:
        The largest mu refuted, rounded down; 0 if none is refuted.

    Raises:
        ValueError: If the counts are impossible or the significance is out of its range.
    """
    quick = one_run.mu_lower_one_run(m, r, v, significance=significance)
    if quick == 0 or r > MAX_GUESSES:
        return quick
    found = largest_refuted(
        GaussianDP,
        lambda claim: p_value(claim, m, r, v),
        significance=significance,
        precision=PRECISION,
        guess=1.05 * quick,
        step=0.05,
    )
    return max(quick, found)


@kept(64)  # the epsilons do not depend on the counts
def epsilons(claim: TradeoffFunction) -> Array:
    """Return epsilons >= 0 at which the profile of a symmetric claim falls by equal factors."""
    top, floor = float(claim.delta(0.0)), float(claim.delta(math.inf))
    levels = floor + (top - floor) * np.geomspace(1.0, _FAINT, _POINTS)
    found = np.append(np.asarray(claim.epsilon(levels)), min(claim.max_privacy_loss(), 700.0))
    chosen = np.unique(found[found < 40.0]) if np.any(found < 40.0) else np.zeros(1)
    return read_only(chosen)


def _best(epsilon: Array, delta: Array, m: int, r: int, v: int) -> Array:
    """Return nearly optimal numbers Y of the theorem, (J, r); zeros if the linear program is not solved."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    solve: Foreign = linprog  # scipy's type stubs lack sparse matrices

    points, k = len(epsilon), np.arange(1, r + 1)
    size = points * r + points + 1  # unknowns: Y, the maximum of each Y_j, and b
    unknown = np.arange(points * r).reshape(points, r)
    odds = np.exp(epsilon)[:, None]
    within = r + 1 + unknown  # rows of Y_j(k) <= maximum of Y_j
    entries = [
        (np.broadcast_to(k, unknown.shape), unknown, np.broadcast_to(-1.0 * k, unknown.shape)),
        (np.broadcast_to(k - 1, unknown.shape), unknown, odds * (r - k + 1)),
        (np.arange(r + 1), np.full(r + 1, size - 1), np.full(r + 1, -1.0)),
        (within, unknown, np.ones(unknown.shape)),
        (within, points * r + np.arange(points)[:, None] + 0 * unknown, np.full(unknown.shape, -1.0)),
    ]
    rows, columns, values = (np.concatenate([np.ravel(entry[i]) for entry in entries]) for i in range(3))
    matrix = coo_array((values, (rows, columns)), shape=(r + 1 + points * r, size)).tocsr()
    limits = np.concatenate([-(np.arange(r + 1) >= v).astype(np.float64), np.zeros(points * r)])
    cost = np.concatenate([np.zeros(points * r), m * delta, [1.0]])
    found = solve(cost, matrix, limits, bounds=[(0, None)] * (size - 1) + [(None, None)], method="highs")
    return np.zeros((points, r)) if found.x is None else np.maximum(found.x[: points * r].reshape(points, r), 0.0)


def _certified(weights: Array, epsilon: Array, delta: Array, m: int, r: int, v: int) -> float:
    """Return the bound of the theorem, where `weights` >= 0 are the numbers Y, (J, r)."""
    k, none = np.arange(r + 1), np.zeros((len(epsilon), 1))
    here, following = np.hstack([none, weights]), np.hstack([weights, none])
    spent = k * here - np.exp(epsilon)[:, None] * (r - k) * following
    b = float(((k >= v) - spent.sum(axis=0)).max())
    rounding = 1e-12 * (1 + float(np.abs(spent).sum(axis=0).max()))
    return min(1.0, max(b + m * float(weights.max(axis=1) @ delta), 0.0) + rounding)
