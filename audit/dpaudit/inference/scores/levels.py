"""Independent canaries: tests from wrong guesses, weighted by three levels of confidence.

The setting is that of `confident`.  For m canaries and two numbers r_1 < r_2 < m, the attacker guesses about all
canaries.  The r_1 most confident guesses form the first level, the next r_2 - r_1 guesses the second level, and the
remaining m - r_2 guesses the third level.  The numbers are chosen before the scores are seen.  A wrong guess of these
levels has the weight w_1 = 5, w_2 = 3 or w_3 = 1.  T is the total weight of the wrong guesses.

With the notation of `confident`, a(u) is the share of all guesses that are wrong and among the most confident share u.
a is convex, and e(u) is its slope, with the value of the left side where the sides differ.

**Theorem.**  Let V_1 < V_2 be the (r_1 + 1)-th and the (r_2 + 1)-th smallest of m uniform numbers.  Given these, let
the following variables be independent, each with weight w and probability e of being 1:

- r_1 variables with w_1 and a(V_1) / V_1; one variable with w_2 and e(V_1);
- r_2 - r_1 - 1 variables with w_2 and (a(V_2) - a(V_1)) / (V_2 - V_1); one variable with w_3 and e(V_2);
- m - r_2 - 1 variables with w_3 and (a(1) - a(V_2)) / (1 - V_2).

Let K be their weighted sum.  Under the claim P[T <= t] <= P[K <= t] for every t and every rule of guessing and of
ordering the guesses.  The most distinguishable pair with its confidence attains equality.

*Proof.*  As in the proof of `confident`, each canary has a number from the most distinguishable pair.  Given all these
numbers and all scores, the guesses are wrong independently, each with at least the smaller posterior probability e_i of
the two sides.  No weight is negative, so T is stochastically at least the sum of independent variables w(i)
Bernoulli(e_i), where w(i) is the weight of the guess about canary i.

This sum is stochastically smallest if larger weights belong to smaller e_i.  To see this, let w > w' and e <= e'.
Compare X = w Bernoulli(e) + w' Bernoulli(e') and Y = w Bernoulli(e') + w' Bernoulli(e).  Both are 0 with equal
probability, and w + w' with equal probability.  Otherwise, X is w' with probability e' (1 - e) and Y is w' with
probability e (1 - e'), which is not larger.  So X is stochastically at most Y.  Each such exchange, added to the
independent other variables, preserves this order, and exchanges of pairs sort the weights.

The ranks of confidence of the m numbers are independent uniform numbers, and rank u has the posterior error e(u).
Given V_1 and V_2, the r_1 smaller ranks are independent and uniform on (0, V_1).  The ranks between are independent and
uniform on (V_1, V_2), and the larger ranks on (V_2, 1).  The canaries at V_1 and V_2 belong to the second and to the
third level.  QED

**Corollary (nested families).**  If f_t falls as t grows, the mechanism with the smaller f can simulate the mechanism
with the larger f.  So P_t[K <= k], the maximum of P[T <= k] over all mechanisms that satisfy f_t, grows with t.  This
module computes an upper bound of P_t.  If the bound refutes a member t above the true member t', then P_t' <= P_t <=
significance.  So any refuted member, found by any search, exceeds the true member with probability at most the
significance.

**Direction of errors.**  The probabilities of the theorem do not fall as V_1 or V_2 grows, since chords of a convex
function rise with both ends.  V_1 / V_2 is independent of V_2.  So P[K <= t] does not fall if V_2, and then V_1 given
the smaller V_2, are replaced by the lower ends of their cells.  The slope e(V) is replaced by the slope of a chord that
ends at V.  Every probability is rounded down.

**Which claims.**  For (epsilon, delta)-DP, the most confident guesses alone reveal most if scores are, for example,
Gaussian.  The number of guesses of `confident` then gives larger bounds.  So `suits` is False for these claims.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from scipy.special import ndtr, ndtri

from dpaudit.claims import ApproxDP, GaussianDP, PureDP, TradeoffFunction
from dpaudit.inference.one_run import check_counts
from dpaudit.inference.scores import level_tails
from dpaudit.inference.scores.confident import default_confident, nested_lower
from dpaudit.inference.scores.families import Family
from dpaudit.numerics.arrays import Array

WEIGHTS = (5, 3, 1)
"""Weights of the guesses of the three levels."""

LEAST_CANARIES = 4
"""Minimum number of canaries for which `default_numbers` are three different numbers."""

_PRECISION_OF_ALL = 0.9  # squared ratio of the least standard error of mu and that of three levels, for mu <= 2
_STEP = 0.03  # relative first step of a search for mu
_FIRST = 0.16  # share of the canaries in the first level; docs/measurements.md compares it with others

Numbers = tuple[int, int]
Number = TypeVar("Number", int, Array)


def default_numbers(m: int) -> Numbers:
    """Return the numbers r_1 and r_2 for m canaries, at least `LEAST_CANARIES`: 0.16 m, and that of `confident`."""
    return round(_FIRST * m), default_confident(m)


def suits(claim: TradeoffFunction) -> bool:
    """Return whether three levels suit a claim better than one number of guesses; see the module's last paragraph.

    The answer depends on the claim only, so it may determine the default of an audit.
    """
    return not isinstance(claim.symmetrized(), PureDP | ApproxDP)


def most_points(m: int, numbers: Numbers) -> int:
    """Return the total weight of all guesses."""
    first, second = numbers
    if not 1 <= first < second < m:
        raise ValueError(f"levels must end at two numbers 1 <= r1 < r2 < canaries, got {numbers} of {m}")
    return WEIGHTS[0] * first + WEIGHTS[1] * (second - first) + WEIGHTS[2] * (m - second)


def points(rights: tuple[int, int, int]) -> int:
    """Return the total weight of right guesses."""
    return int(_weighed(*rights))


def _weighed(first: Number, second: Number, every: Number) -> Number:
    return (WEIGHTS[0] - WEIGHTS[1]) * first + (WEIGHTS[1] - WEIGHTS[2]) * second + WEIGHTS[2] * every


def p_value(claim: TradeoffFunction, m: int, numbers: Numbers, right: int, *, enough: float = 0.0) -> float:
    """Return the maximum probability that right guesses have the total weight `right` or more under a claim."""
    most = most_points(m, numbers)
    check_counts(most, most, right)
    if 2 * right <= most:  # even without any leak, T is this small with a probability of at least one half
        return 1.0
    return level_tails.chance(claim.symmetrized(), m, numbers, WEIGHTS, most - right, enough=enough)


def parameter_lower(
    family: Family,
    m: int,
    numbers: Numbers,
    right: int,
    *,
    significance: float,
    precision: float = 1e-4,
    most: float = 64.0,
) -> float:
    """Compute a lower confidence bound of the parameter of a nested family of claims.

    Theorem:
        If every canary satisfies family(t), P[parameter_lower > t] <= significance; see the corollary of this module.

    Args:
        family: As in `confident.parameter_lower`.
        m: Number of canaries.
        numbers: The numbers r_1 and r_2, chosen before the scores are seen.
        right: Total weight of the right guesses.
        significance: Maximum probability that the bound is too large, in (0, 1).
        precision: Relative amount by which the bound may be rounded down.
        most: The largest parameter that is tried.

    Returns:
        The largest parameter refuted, rounded down; 0 if none is refuted.

    Raises:
        ValueError: If the counts are impossible or the significance is out of its range.
    """
    total = most_points(m, numbers)
    check_counts(total, total, right, significance)
    return nested_lower(
        family,
        lambda claim: p_value(claim, m, numbers, right, enough=significance),
        share=numbers[1] / m,
        significance=significance,
        precision=precision,
        most=most,
        guess=_likely_mu(m, numbers, right / total, significance),
        step=_STEP,
    )


def _likely_mu(m: int, numbers: Numbers, share: float, significance: float) -> float:
    """Return the approximate bound of mu, at which the search starts."""
    mu, distance = np.linspace(0.0, 8.0, 65), np.linspace(0.0, 9.0, 181)[:, None]  # of a score from mu / 2
    wrong, right = ndtr(-distance - mu / 2), ndtr(-distance + mu / 2)  # shares of guesses at this distance or more
    first, second = (
        np.array([np.interp(-r / m, -(wrong + right)[:, k], right[:, k]) for k in range(len(mu))]) for r in numbers
    )
    total = _weighed(first * m, second * m, right[0] * m) / most_points(m, numbers)
    found = float(np.interp(share, total, mu))
    return max(found - 2 * float(-ndtri(significance)) / math.sqrt(_PRECISION_OF_ALL * m), 0.02)


def mu_lower(m: int, numbers: Numbers, right: int, *, significance: float) -> float:
    """Compute a lower confidence bound of mu, rounded down; 0 if no mu is refuted.  See `parameter_lower`."""
    return parameter_lower(GaussianDP, m, numbers, right, significance=significance)
