"""Arbitrarily dependent canaries: several numbers of guesses in one test.

The setting is that of `inference.one_run`: m canaries, each included by an independent fair coin.  Let r_1 < ... < r_B
be several numbers of guesses.  V_i is the number of right guesses about the r_i most extreme canaries.  The test uses
the total T = V_1 + ... + V_B.  A more extreme canary thus has more weight.  The largest weight is B.

The canaries form B blocks.  The first block holds the r_1 most extreme canaries, and every following block holds the
canaries that the next number adds.  Block b has s_b canaries of weight w_b = B - b + 1.  If K_b guesses of block b are
right, T = w_1 K_1 + ... + w_B K_B.

**Theorem.**  Let e_1, ..., e_J be epsilons, and let delta_j be the claim's profile at e_j.  Let Y_j(b, t) >= 0 be any
numbers for all blocks b and all integers t, and

    c = max over k of 1[t(k) >= v] - sum_j sum_b (k_b Y_j(b, t(k)) - e^{e_j} (s_b - k_b) Y_j(b, t(k) + w_b)),

where k_b is in [0, s_b] and t(k) = w_1 k_1 + ... + w_B k_B is an integer.  Under the claim, P[T >= v] is at most
c + m sum_j delta_j max Y_j, where the maximum is over all b and t.

*Proof.*  Choose one canary uniformly at random.  Let p_k be the probability that K = k, and let u_b be the unit vector
of block b.  A_{b,k} = k_b p_k / m is the probability that the canary lies in block b, that its guess is right, and that
K = k.  If the canary's coin is flipped while the output stays the same, its guess is wrong and K = k - u_b.  This event
has probability B_{b,k} = (s_b - k_b + 1) p_{k - u_b} / m, since the flipped coin is as fair as the other coins.  So the
claim implies A(C) <= e^{e_j} B(C) + delta_j for every set C of pairs (b, k).  By the choice of c,

    P[T >= v] - c <= sum_j E[sum_b (K_b Y_j(b, T) - e^{e_j} (s_b - K_b) Y_j(b, T + w_b))]
                   = sum_j m sum_{b,k} Y_j(b, t(k)) (A_{b,k} - e^{e_j} B_{b,k}),

which is at most m sum_j delta_j max Y_j, by the inequality for the set of all pairs with a positive bracket.

The theorem generalizes the theorem of `tight`, which is the case B = 1.  It holds for any weights that are positive
integers.  A linear program finds good Y.  Validity does not depend on the program's solution, since the bound is
recomputed from the Y.

**Claims of pure epsilon-DP.**  Given the output and the other coins, a guess is right with probability at most q =
e^epsilon / (1 + e^epsilon).  So T is stochastically at most a weighted sum of independent Binomial(s_b, q) variables.
Randomised response attains this maximum.

**Corollary.**  Let f_t be a nested family.  The largest t with a bound <= s exceeds the true parameter with probability
at most s; the proof is that of the corollary of `tight`.

**Numbers that depend on the output.**  The numbers r_i must not depend on the output.  An attacker that abstains for
some canaries may give them equal scores between those of the other guesses.  The missing guesses are then random, and
the theorem holds.  If the output chooses one number R of guesses, two bounds are known:

- For delta = 0, P[Binomial(R, q) >= V] given R is a p-value, since the bound above holds given the output.
- For a single pair (epsilon, delta) that is fixed in advance, twice the value of `one_run.p_value_exact` for m, R and V
  is a p-value.  *Proof.*  Let v_r be the smallest v with a value of at most s.  Add up the identities of the proof of
  `p_value_exact` for all r.  So P[V >= v_R] is at most the maximum over r of b, plus the maximum over r of
  m delta b (1 - b) / (v_r w).  Each maximum is at most s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import expit, xlog1py, xlogy

from dpaudit.claims import ApproxDP, GaussianDP, PureDP, TradeoffFunction
from dpaudit.inference import one_run
from dpaudit.inference.one_run import check_counts
from dpaudit.inference.scores import tight
from dpaudit.inference.scores.families import Family, largest_refuted
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.binomials import log_choose
from dpaudit.numerics.caches import kept
from dpaudit.values import Foreign

MOST_NUMBERS = 3
"""Maximum number of numbers of guesses.  A bound from three numbers takes several seconds."""

_BELOW, _ABOVE = 6.0, 2.0  # range of T around v, in standard deviations by chance, where Y varies
_UP = 1 + 1e-8  # factor that bounds the rounding errors of log-factorials, as in `one_run`
_CHOSEN = slice(0, 12)  # the last of the epsilons of `tight.epsilons` rarely matter

Numbers = tuple[int, ...]


def checked_numbers(numbers: Sequence[int], m: int) -> Numbers:
    """Return numbers of guesses in ascending order."""
    found = tuple(sorted(numbers))
    if not 1 <= len(found) <= MOST_NUMBERS or len(set(found)) < len(found) or not 1 <= found[0] <= found[-1] <= m:
        raise ValueError(
            f"guesses must be 1 to {MOST_NUMBERS} different numbers from 1 to the number of canaries ({m:,}), got "
            f"{list(numbers)}"
        )
    return found


def blocks(numbers: Numbers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the sizes s_b and the weights w_b of the blocks for ascending numbers of guesses."""
    return np.diff(np.array((0, *numbers))), np.arange(len(numbers), 0, -1)


def p_value(claim: TradeoffFunction, m: int, numbers: Numbers, right: int) -> float:
    """Bound the probability of `right` or more right guesses, summed over all numbers of guesses, under a claim.

    Returns:
        A p-value; see the theorem of this module.
    """
    checked_numbers(numbers, m)
    check_counts(sum(numbers), sum(numbers), right)
    if 2 * right <= sum(numbers):  # even without any leak, T is this large with a probability of about one half
        return 1.0
    f = claim.symmetrized()
    return pure(f.max_privacy_loss(), numbers, right) if isinstance(f, PureDP) else _sharp(f, m, numbers, right)


@kept(256)  # the verdict, the detection limit and the report need the same p-values
def _sharp(claim: TradeoffFunction, m: int, numbers: Numbers, right: int) -> float:
    if isinstance(claim, ApproxDP):  # the inequality at its epsilon implies the inequalities at all other epsilons
        epsilon = np.atleast_1d(claim.epsilon(claim.delta(math.inf)))
    else:
        epsilon = tight.epsilons(claim)[_CHOSEN]
    return bound(epsilon, np.asarray(claim.delta(epsilon)), m, *blocks(numbers), right)


def pure(epsilon: float, numbers: Numbers, right: int) -> float:
    """Return the maximum probability of `right` or more right guesses under epsilon-DP, rounded up."""
    tail = float(total_law(np.full(len(numbers), expit(epsilon)), numbers)[right:].sum())
    return min(1.0, max(tail, one_run.FAINT) * _UP)  # a smaller tail may underflow to 0


def total_law(rates: Array, numbers: Numbers) -> Array:
    """Return P[T = t] for t = 0, 1, ..., if guesses of block b are independently right with probability rates[b]."""
    law = np.ones(1)
    for size, weight, rate in zip(*blocks(numbers), rates, strict=True):
        spread = np.zeros(size * weight + 1)
        k = np.arange(size + 1)
        spread[::weight] = np.exp(log_choose(size, k) + xlogy(k, rate) + xlog1py(size - k, -rate))
        law = np.convolve(law, spread)
    return law


def mu_lower(m: int, numbers: Numbers, right: int, *, significance: float) -> float:
    """Compute a lower confidence bound of mu, rounded down; 0 if none is refuted.  See the module's corollary."""
    return _parameter_lower(GaussianDP, m, numbers, right, significance)


def epsilon_lower(m: int, numbers: Numbers, right: int, *, delta: float, significance: float) -> float:
    """Compute a lower confidence bound of epsilon at `delta`, rounded down; 0 if no epsilon is refuted."""
    if delta >= 1:
        return 0.0
    if delta == 0:
        return _parameter_lower(PureDP, m, numbers, right, significance)
    return _parameter_lower(lambda t: ApproxDP(epsilon=t, delta=delta), m, numbers, right, significance)


def _parameter_lower(family: Family, m: int, numbers: Numbers, right: int, significance: float) -> float:
    r = numbers[-1]
    near = one_run.mu_lower_one_run(m, r, r * right // sum(numbers), significance=significance)
    return largest_refuted(
        family,
        lambda claim: p_value(claim, m, numbers, right),
        significance=significance,
        precision=tight.PRECISION,
        guess=max(near, 0.02),
        step=0.1,
    )


def bound(
    epsilon: Array, delta: Array, m: int, sizes: npt.NDArray[np.int64], weights: npt.NDArray[np.int64], right: int
) -> float:
    """Return the bound of the theorem of this module for nearly optimal Y."""
    most, chance = int(sizes @ weights), math.sqrt(float(sizes @ weights**2)) / 2
    low = max(1, math.floor(right - _BELOW * chance))
    high = min(most, math.ceil(right + _ABOVE * chance))
    found = _best(epsilon, delta, m, sizes, weights, right, range(low, high + 1))
    return _certified(found, low, epsilon, delta, m, sizes, weights, right)


def _best(
    epsilon: Array,
    delta: Array,
    m: int,
    sizes: npt.NDArray[np.int64],
    weights: npt.NDArray[np.int64],
    right: int,
    window: range,
) -> Array:
    """Return nearly optimal Y_j(b, t), (J, B, t), for t in `window`; zeros if the linear program is not solved.

    The function Y is 0 below the window, and constant above the window.  For each t, the maximum over k in the theorem
    is at most  price t + sum_b s_b excess_b  plus terms without k, for every price and every excess_b >= 0 that is at
    least the coefficient of k_b minus price w_b, by linear programming duality.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    solve: Foreign = linprog  # scipy's type stubs lack sparse matrices
    odds, n = np.exp(epsilon), len(window)
    totals = np.arange(window.start - int(weights.max()), window.stop)  # values of T with a Y that is not zero
    shape, rows = (len(epsilon), len(sizes), n), len(totals)
    y = np.arange(math.prod(shape)).reshape(shape)
    price = y.size + np.arange(rows)
    excess = y.size + rows + np.arange(len(sizes) * rows).reshape(len(sizes), rows)
    top = y.size + rows * (1 + len(sizes)) + np.arange(len(epsilon))
    last = int(top[-1]) + 1
    entries: list[tuple[Array, Array, Array]] = []

    def add(row: npt.ArrayLike, column: npt.ArrayLike, value: npt.ArrayLike) -> None:
        entries.append(tuple(np.ravel(one) for one in np.broadcast_arrays(row, column, value)))  # type: ignore[arg-type]

    main = np.arange(rows)
    add(main, price, totals)
    add(main, last, -1.0)
    for b, (size, weight) in enumerate(zip(sizes, weights, strict=True)):
        own = rows * (1 + b) + main
        here, after = totals >= window.start, totals + weight >= window.start
        following = np.minimum(totals[after] + weight, window[-1]) - window.start
        add(main, excess[b], float(size))
        add(own, excess[b], -1.0)
        add(own, price, -float(weight))
        add(own[here], y[:, b, totals[here] - window.start], -1.0)
        add(own[after], y[:, b, following], -odds[:, None])
        add(main[after], y[:, b, following], size * odds[:, None])
    within = rows * (1 + len(sizes)) + y
    add(within, y, 1.0)
    add(within, top[:, None, None], -1.0)
    row, column, value = (np.concatenate([entry[i] for entry in entries]) for i in range(3))
    limits = np.zeros(rows * (1 + len(sizes)) + y.size)
    limits[:rows] = np.where(totals >= right, -1.0, 0.0)
    cost = np.zeros(last + 1)
    cost[top], cost[last] = m * delta, 1.0
    free = np.zeros((last + 1, 2))
    free[:, 1], free[price, 0] = np.inf, -np.inf
    matrix = coo_array((value, (row, column)), shape=(len(limits), last + 1)).tocsr()
    found = solve(cost, matrix, limits, bounds=free, method="highs")
    return np.zeros(shape) if found.x is None else np.maximum(found.x[: y.size].reshape(shape), 0.0)


def _certified(
    y: Array,
    low: int,
    epsilon: Array,
    delta: Array,
    m: int,
    sizes: npt.NDArray[np.int64],
    weights: npt.NDArray[np.int64],
    right: int,
) -> float:
    """Return the bound of the theorem for given Y, (J, B, n), whose first value of T is `low`.

    For each T, the maximum over k is a fractional knapsack problem: the blocks with the largest value per weight are
    filled first.
    """
    t = np.arange(int(sizes @ weights) + 1)
    padded = np.concatenate([np.zeros((*y.shape[:2], 1)), y], axis=2)

    def value(of: npt.NDArray[np.int64]) -> Array:
        """Return Y at values of T, (J, B, ...)."""
        return padded[:, np.arange(len(sizes))[:, None], np.clip(of - low + 1, 0, y.shape[2])]

    here, after = value(t[None, :]), value(t[None, :] + weights[:, None])
    paid = np.einsum("j,jbt->bt", np.exp(epsilon), after)
    gain = -here.sum(axis=0) - paid  # coefficient of k_b for each T
    order = np.argsort(-gain / weights[:, None], axis=0)
    rest, most = t.astype(np.float64), sizes @ paid
    size = np.abs(here).sum(axis=0) + np.abs(paid)
    for place in order:
        filled = np.minimum(rest, (sizes * weights)[place])
        most = most + filled / weights[place] * gain[place, t]
        rest = rest - filled
    c = float(((t >= right) + most).max())
    rounding = 1e-12 * (1 + float((sizes @ size).max()))
    return min(1.0, max(c + m * float(y.max(axis=(1, 2)) @ delta), 0.0) + rounding)
