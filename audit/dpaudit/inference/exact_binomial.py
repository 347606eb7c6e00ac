"""The exact test of a claim at a fixed number of trials, from the counts of one frozen rejection region.

A region S is chosen before the trials that are counted.  Of n0 outputs of d0, x fall into S (false positives); of n1
outputs of d1, y do, and z = n1 - y are missed.  Then x ~ Binomial(n0, alpha) and z ~ Binomial(n1, beta), independent,
and the claim says beta >= f(alpha).  One point (alpha, beta) of the attack's curve is tested, and the claim leaves
one of its coordinates free: that is the difficulty.

**Evidence** says which outcomes are how extreme.  It is the likelihood ratio against the claim, the least divergence

    evidence(x, z) = min over points (a, f(a)) of  (n0+1) kl(p, a)+ + (n1+1) kl(q, f(a))+

in nats, with the rates p = (x + 1/2)/(n0 + 1) and q = (z + 1/2)/(n1 + 1), and kl(p, a)+ the divergence of
Bernoulli(p) from Bernoulli(a) if p < a and 0 otherwise: too many mistakes never speak against a claim.  Half an
output added to each cell makes rare and common events comparable; without it an event that d0 never showed counts as
too extreme, and the whole test pays for it.  The points form a fixed grid along the curve, see `Arc`.

**Lemma 1.**  Evidence does not rise with x, nor with z, nor when f is replaced by a lower f.
*Proof.*  So does each term of the minimum, at each point of the grid.

So the outcomes with evidence of at least e are {z <= limit(x)} for a nonincreasing limit (`_Region`).  Their
probability F(alpha, beta) = sum_x Bin(x; n0, alpha) P[Bin(n1, beta) <= limit(x)] falls with alpha and with beta:
under the claim it is at most F(alpha, f(alpha)), and only alpha is unknown.

**Theorem 1 (p-value).**  Let M(s) = max { F(a, f(a)) : a in C(s) } / (1 - c), where F is the probability of all
outcomes with at least the observed evidence, c = 1/200, and C(s) the Clopper-Pearson interval of alpha at confidence
1 - cs.  If the claim is true, P[M(s) <= s] <= s for every s, and these events grow with s: inf { s : M(s) <= s } is a
p-value.  (Berger & Boos 1994, JASA 89, 1012-1016, with the interval's level as a share of the test's.)

*Proof.*  P[alpha not in C(s)] <= cs.  Else M(s) <= s implies F(alpha, beta) <= s - cs.  F at the truth is the tail
probability of the observed evidence, so that has probability at most s - cs.  C(s) shrinks as s grows, so M(s) falls.

**Theorem 2 (bounds).**  Let f_t fall as t grows, and let t* = sup { t : evidence against f_t >= a cutoff }, an
approximate bound.  Rank the outcomes by t* (where there is none, by their evidence against f_0), and let F be the
probability of all outcomes of at least the observed rank.  Then
L = sup { t : max { F(a, f_t(a)) : a in C(s) } <= s - cs } satisfies P[L > t] <= s for every t with f_t true.

*Proof.*  By Lemma 1, {t* >= u} = {evidence against f_u >= cutoff}: a region as above.  The ranks do not depend on t,
so the maximum grows with t, and L > t only if t itself is refuted; this happens with probability at most s, as in
Theorem 1.

For given ranks no bound is larger, up to c (Buehler 1957, JASA 52, 482-493); to rank by an approximate bound of the
same significance is the advice of Kabaila & Lloyd 2002, Technometrics 44, 390-395.  The p-value is not inverted
because its ranks change with the claim: it need not be monotone along a family, and a bisection could certify what is
not certain.

**Which way round.**  The complement of S, with d0 and d1 exchanged, has the counts (z, x).  Claims are made symmetric
here, and so is the evidence: it does not matter which of the two is called the region, up to C(s), which is then an
interval of beta.  But y > x is the only direction that speaks against a claim: S must be the event that says "d1".

**Between grid points** of alpha nothing is missed: `_largest` bounds F over whole cells, see Lemma 2 there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import betaincc, betaincinv, gammaln, ndtr, ndtri, xlogy

from dpaudit.claims import ApproxDP, Array, GaussianDP, TradeoffFunction

Counts = npt.NDArray[np.int64]

_SHARE = 1 / 200  # of the significance, for not knowing alpha: a wider interval costs less than a larger share
_SPACING = 0.1  # standard deviations from one point of the grid along the curve to the next
_TAIL = 18.0  # nats by which outcomes that are not looked at are rarer than those that count
_LONG = 3_000  # outcomes of d1; to sum over more takes longer than the incomplete beta function
_LEAST = 1e-100  # smaller probabilities are not told apart


# --- one proportion


def clopper_pearson_upper(k: int, n: int, *, significance: float) -> float:
    """Clopper-Pearson upper bound.  Clopper & Pearson 1934, Biometrika 26, 404-413.

    If K ~ Binomial(n, p), then P[clopper_pearson_upper(K, n) < p] <= significance, for every n and p.
    """
    _check(k, n, significance)
    if k == n or significance == 0:
        return 1.0
    return 1.0 - float(betaincinv(n - k, k + 1, significance))


def clopper_pearson_lower(k: int, n: int, *, significance: float) -> float:
    """Clopper-Pearson lower bound: P[clopper_pearson_lower(K, n) > p] <= significance.  As the upper one."""
    _check(k, n, significance)
    if k == 0 or significance == 0:
        return 0.0
    return float(betaincinv(k, n - k + 1, significance))


# --- one claim


def p_value(claim: TradeoffFunction, x: int, n0: int, y: int, n1: int) -> float:
    """Exact p-value of `claim`, for x of n0 outputs of d0 and y of n1 outputs of d1 in the region.

    If the claim is true, P[p_value <= s] <= s for every s, n0, n1 and mechanism; see Theorem 1.  It is 1 where the
    observed rates keep the claim.  Rounded up: by 3 % at most, and mostly by 0.5 %, above 0.01; by 3 % of its logarithm
    below.
    """
    _check(x, n0)
    _check(y, n1)
    if n0 == 0 or n1 == 0:
        return 1.0
    claim = claim.symmetrized()
    observed = _evidence(claim, x, n0, n1 - y, n1)
    if observed <= _rounding(n0 + n1):
        return 1.0

    def attained(level: float) -> float:
        low, high = _interval(x, n0, significance=_SHARE * level)
        region = _Region.of(claim, observed, n0, n1, low, high)
        return max(_largest(region, claim, low, high) / (1 - _SHARE), _LEAST)

    # max(s, M(s)) is at least the p-value for every s.  Look for s = M(s), from where it is for a normal deviate; M is
    # nearly flat, so that this takes a step or two.
    s, p = max(float(ndtr(-math.sqrt(2 * observed))), _LEAST), 1.0
    for _ in range(5):
        m = attained(s)
        p = min(p, max(s, m))
        if abs(math.log(m / s)) < 0.03 + 0.02 * max(math.log(0.01 / p), 0.0):
            break
        s = math.sqrt(s * m) if m > s else m
    return p


# --- families of claims


def mu_lower(x: int, n0: int, y: int, n1: int, *, significance: float) -> float:
    """Lower confidence bound of mu, for x of n0 outputs of d0 and y of n1 outputs of d1 in the region.

    If the mechanism is mu-GDP, then P[mu_lower > mu] <= significance, for every n0 and n1; see Theorem 2.
    """
    return parameter_lower(GaussianDP, x, n0, y, n1, significance=significance)


def epsilon_lower(x: int, n0: int, y: int, n1: int, *, delta: float, significance: float) -> float:
    """Lower confidence bound of epsilon in nats at `delta`, in [0, 1).  Otherwise as `mu_lower`.

    If the mechanism is (epsilon, delta)-DP, then P[epsilon_lower > epsilon] <= significance.
    """
    return parameter_lower(lambda t: ApproxDP(epsilon=t, delta=delta), x, n0, y, n1, significance=significance)


def parameter_lower(
    family: Callable[[float], TradeoffFunction],
    x: int,
    n0: int,
    y: int,
    n1: int,
    *,
    significance: float,
    most: float = 64.0,
) -> float:
    """Lower confidence bound of the parameter of a family of claims that promise less as it grows from 0.

    If family(t) is true, then P[parameter_lower > t] <= significance; see Theorem 2.  0 where nothing is refuted,
    at most `most`; rounded down, at 5 % by less than a hundredth of a standard deviation, below 1 % by some hundredths.
    """
    _check(x, n0, significance)
    _check(y, n1, significance)
    if n0 == 0 or n1 == 0 or significance == 0:
        return 0.0
    precision = 0.003 / math.sqrt(min(n0, n1))

    def against(t: float) -> float:
        return _evidence(family(t).symmetrized(), x, n0, n1 - y, n1)

    def rank(t: float) -> float:
        return math.sqrt(2 * against(t)) - math.sqrt(2 * cutoff)

    # The observed t*.  Rounded down, more outcomes count as being of at least this rank, which is the safe side.
    usual = max(float(ndtri(min(significance, 0.45))) ** 2 / 2, 1e-2)
    cutoff = min(usual, against(0.0))
    if cutoff <= _rounding(n0 + n1):
        return 0.0
    rough = _last(rank, 0.0, most, precision) if cutoff == usual else 0.0

    low, high = _interval(x, n0, significance=_SHARE * significance)
    region = _Region.of(family(rough).symmetrized(), cutoff, n0, n1, low, high)
    allowed = (1 - _SHARE) * significance

    def margin(t: float) -> float:
        largest = _largest(region, family(t).symmetrized(), low, high)
        gap = _deviate(largest) - _deviate(allowed)
        return max(gap, 0.0) if largest <= allowed else min(-_LEAST, gap)  # the sign is exact, of nan, too

    return _last(margin, rough, most, precision)


def _last(margin: Callable[[float], float], guess: float, most: float, precision: float) -> float:
    """Largest t in [0, most] with margin(t) >= 0, rounded down by at most `precision`; 0 if there is none.

    `margin` must be at least 0 and then below, and is best in standard deviations, where it is nearly straight: after
    a gallop from the guess, points close to where the line between the ends crosses 0 are tried, from both sides in
    turn, and the middle now and then.  What is returned rests on signs alone.
    """
    low = high = guess
    of_low = of_high = margin(guess)
    step = 8 * precision
    while of_low < 0:
        if low <= 0:
            return 0.0
        high, of_high = low, of_low
        low, step = max(low - step, 0.0), 4 * step
        of_low = margin(low)
    while of_high >= 0:
        if high >= most:
            return most
        low, of_low = high, of_high
        high, step = min(high + step, most), 4 * step
        of_high = margin(high)
    tried = 0
    while high - low > precision:
        crossing = low + (high - low) * of_low / (of_low - of_high)
        t = ((low + high) / 2, crossing - precision / 3, crossing + precision / 3)[(tried + 1) % 3]
        t = min(max(t, low + precision / 4), high - precision / 4)
        of_t = margin(t)
        if of_t >= 0:
            low, of_low = t, of_t
        else:
            high, of_high = t, of_t
        tried += 1
    return low


# --- how much speaks against a claim


@dataclass(frozen=True, eq=False)
class Arc:
    """Points (alpha, beta) of a claim's curve; alpha does not fall and beta does not rise."""

    alpha: Array
    beta: Array

    @classmethod
    def pair(cls, claim: TradeoffFunction, n0: int, n1: int, low: float, high: float) -> tuple[Arc, Arc]:
        """The points with alpha in [low, high] and some more: one arc evenly spaced in alpha, one in beta.

        Both, because where the curve is steep an even spacing in alpha leaves gaps in beta.  The grids depend on n0
        and n1 only, so that each point moves in one direction as the claim weakens; Lemma 1 rests on that.
        """
        alpha = _grid(n0, low, high)
        beta = _grid(n1, claim.beta(high), claim.beta(low))[::-1]
        return cls(alpha, claim.beta(alpha)), cls(claim.beta(beta), beta)

    @cached_property
    def _logs(self) -> tuple[Array, Array, Array, Array]:
        """log alpha, log(1 - alpha), log beta, log(1 - beta), finite."""
        return _log(self.alpha), _log1m(self.alpha), _log(self.beta), _log1m(self.beta)

    def evidence(self, x: npt.ArrayLike, n0: int, z: npt.ArrayLike, n1: int) -> Array:
        """The least divergence between outcomes (x, z) and the points of this arc, nats; elementwise.

        Along the arc the first term rises from 0 and the second falls to 0, and both are convex because f is: the
        minimum is where their sum stops falling, between the last alpha <= p and the first beta <= q.
        """
        p, q = _rate(x, n0), _rate(z, n1)
        log_alpha, log_not_alpha, log_beta, log_not_beta = self._logs
        own0, own1 = (rate * np.log(rate) + (1 - rate) * np.log1p(-rate) for rate in (p, q))

        def divergence(at: npt.NDArray[np.intp]) -> Array:
            first = (n0 + 1) * (own0 - p * log_alpha[at] - (1 - p) * log_not_alpha[at])
            second = (n1 + 1) * (own1 - q * log_beta[at] - (1 - q) * log_not_beta[at])
            # at least 0 whatever the rounding, as Lemma 1 assumes
            first = np.where(self.alpha[at] > p, np.maximum(first, 0.0), 0.0)
            return first + np.where(self.beta[at] > q, np.maximum(second, 0.0), 0.0)

        high = np.minimum(np.searchsorted(-self.beta, -q, side="left"), len(self.beta) - 1)
        low = np.clip(np.searchsorted(self.alpha, p, side="right") - 1, 0, high)
        while np.any(low < high):
            middle = (low + high) // 2
            following = np.minimum(middle + 1, high)
            falling = divergence(following) <= divergence(middle)
            low, high = np.where(falling, following, low), np.where(falling, high, middle)
        return divergence(low)


def _evidence(claim: TradeoffFunction, x: int, n0: int, z: int, n1: int) -> float:
    """Evidence of one outcome.  Points with alpha < p or with beta < q are never nearer than the next ones inside."""
    p, q = float(_rate(x, n0)), float(_rate(z, n1))
    arcs = Arc.pair(claim, n0, n1, p, max(p, claim.beta(q)))
    return min(float(arc.evidence([x], n0, [z], n1)[0]) for arc in arcs)


def _rate(k: npt.ArrayLike, n: int) -> Array:
    """k of n, with half an output added to both sides."""
    return (np.asarray(k, dtype=np.float64) + 0.5) / (n + 1)


def _grid(n: int, low: float, high: float) -> Array:
    """Part of a fixed grid on [0, 1], even in arcsin sqrt, that covers [low, high] with two points to spare."""
    step = _SPACING / (2 * math.sqrt(n))
    first = max(math.floor(math.asin(math.sqrt(low)) / step) - 2, 0)
    last = min(math.ceil(math.asin(math.sqrt(high)) / step) + 2, math.ceil(math.pi / 2 / step))
    return _square_sine(np.minimum(step * np.arange(first, last + 1), math.pi / 2))


# --- how probable a claim makes that


@dataclass(frozen=True, eq=False)
class _Region:
    """The outcomes {z <= limit(x)} with at least a certain evidence, for alpha in a certain interval."""

    n0: int
    n1: int
    first: int  # the first x that is looked at
    limits: Counts  # limit(first), limit(first + 1), ...: nonincreasing, >= 0; beyond the last one no z is inside
    budget: float  # nats; tails rarer than e^-budget are not looked at, but counted as if they were in the region

    @classmethod
    def of(cls, claim: TradeoffFunction, level: float, n0: int, n1: int, low: float, high: float) -> _Region:
        """{evidence >= level}, for alpha in [low, high].

        Which x are rare is Chernoff's bound: P[x/n0 <= p] <= exp(-n0 kl(p, alpha)) for p <= alpha, and likewise above.
        """
        budget = min(level, -math.log(_LEAST)) + _TAIL
        first = math.floor(n0 * _boundary(lambda p: n0 * _kl(p, low) <= budget, low, 0.0))
        last = math.ceil(n0 * _boundary(lambda p: n0 * _kl(p, high) <= budget, high, 1.0))
        # Points of the curve beyond `reach` are further than the level from all these x.
        least, most = float(_rate(first, n0)), float(_rate(last, n0))
        reach = _boundary(lambda a: (n0 + 1) * _kl(most, a) <= level + 1, most, 1.0)
        arcs = Arc.pair(claim, n0, n1, least, reach)
        enough = level - _rounding(n0 + n1) * (1 + level)  # in doubt inside, which is the safe side

        def limit(x: Counts, known: Counts, highest: Counts) -> Counts:
            """Largest z from `known`, which is inside or -1, to `highest` such that (x, z) is inside."""
            while np.any(known < highest):
                middle = (known + highest + 1) // 2
                trial = np.maximum(middle, 0)  # -1 where the search is over
                inside = np.minimum(*(arc.evidence(x, n0, trial, n1) for arc in arcs)) >= enough
                known, highest = np.where(inside, middle, known), np.where(inside, highest, middle - 1)
            return known

        x = np.arange(first, last + 1)
        some = np.unique(np.append(x[::32], last))  # limits do not rise: these leave little to search in between
        found = limit(some, np.full(len(some), -1), np.full(len(some), n1))
        after, before = np.searchsorted(some, x, side="left"), np.searchsorted(some, x, side="right") - 1
        limits = limit(x, found[after], found[before])
        return cls(n0, n1, first, limits[limits >= 0], budget)

    @cached_property
    def _rows(self) -> tuple[Array, Array]:
        """x, and the logarithm of n0 over x."""
        x = np.arange(self.first, self.first + len(self.limits), dtype=np.float64)
        return x, _log_choose(self.n0, x)

    @property
    def _lowest(self) -> int:
        return max(int(self.limits[-1]) - _LONG, 0)

    @cached_property
    def _columns(self) -> tuple[Array, Array]:
        """z from `_lowest` to the largest limit, and the logarithm of n1 over z."""
        z = np.arange(self._lowest, self.limits[0] + 1, dtype=np.float64)
        return z, _log_choose(self.n1, z)

    def probability(self, alpha: Array, beta: Array) -> Array:
        """Upper bound of F(alpha, beta), elementwise; too large by 3 e^-budget and rounding only."""
        result = np.empty_like(alpha)
        if len(self.limits) > 0:
            order = np.argsort(alpha)  # neighbours need nearly the same rows
            for some in np.array_split(order, math.ceil(len(order) / 16)):
                result[some] = self._near(alpha[some], beta[some])
        else:
            result[:] = 0.0
        return np.minimum(result * (1 + _rounding(self.n0 + self.n1)) + 3 * math.exp(-self.budget), 1.0)

    def _near(self, alpha: Array, beta: Array) -> Array:
        """F without those x that are rare for all these alpha, and those small z that are rare for all these beta.

        The x by Chernoff's bound as in `of`; the z by its simpler form P[Bin(n, b) <= n b - t] <= exp(-t^2/(2 n b)).
        """
        x, log_choose0 = self._rows
        low, high = alpha.min(keepdims=True), alpha.max(keepdims=True)
        own = _log_likelihood(x, self.n0, x / self.n0)
        rare_low = (x < self.n0 * low) & (own - _log_likelihood(x, self.n0, low) > self.budget)
        rare_high = (x > self.n0 * high) & (own - _log_likelihood(x, self.n0, high) > self.budget)
        kept = slice(int(rare_low.sum()), len(x) - int(rare_high.sum()))
        x, log_choose0, limits = x[kept], log_choose0[kept], self.limits[kept]
        if len(x) == 0:
            return np.zeros_like(alpha)
        alpha, beta = alpha[:, None], beta[:, None]
        weights = np.exp(log_choose0 + _log_likelihood(x, self.n0, alpha))
        least, most = int(limits[-1]), int(limits[0])
        if most - least > 8 * len(x):  # a few x far apart: no sum over z
            below = _at_most(limits, self.n1, beta)
        else:
            mean = self.n1 * float(beta.min())
            rare = min(max(math.ceil(mean - math.sqrt(2 * mean * self.budget)) - 1, -1), least)
            start = np.zeros_like(beta)
            if least - rare > _LONG:
                rare, start = least, _at_most(np.array([least]), self.n1, beta)
            z, log_choose1 = (column[rare + 1 - self._lowest : most + 1 - self._lowest] for column in self._columns)
            masses = np.exp(log_choose1 + _log_likelihood(z, self.n1, beta))
            below = np.cumsum(np.hstack([start, masses]), axis=1)[:, limits - rare]
        return np.asarray((weights * below).sum(axis=1))


def _largest(region: _Region, claim: TradeoffFunction, low: float, high: float) -> float:
    """Upper bound of the largest h(a) = F(a, f(a)) for a in [low, high], larger by at most `_slack`.

    **Lemma 2.**  On a cell [a1, a2] let b1 = f(a1), b2 = f(a2), U = F(a1, b2) and s = sqrt(U (1 - U)), or 1/2 if
    U > 1/2; let v be the smaller of a1 (1 - a1) and a2 (1 - a2), w that of b1 (1 - b1) and b2 (1 - b2); let
    A = (a2 - a1) sqrt(n0/v) and B = (b1 - b2) sqrt(n1/w); and let f lie below its chord by at most e.  Then h <= U on
    the cell, and also  h <= max(h(a1), h(a2)) + s (e sqrt(n1/w) + sqrt(2)/8 (A^2 + B^2)).

    *Proof.*  F falls with alpha and with beta, so U bounds it on the rectangle of the cell.  A derivative of F is the
    covariance of the region's indicator, of standard deviation at most s, and the same derivative of the likelihood
    divided by the likelihood.  For the first one in beta that has variance n1/(beta (1 - beta)): h differs from F on
    the chord by at most s e sqrt(n1/w).  For the second one along the chord it is a sum of three orthogonal
    polynomials, of variance at most 2 A^4 + 4 A^2 B^2 + 2 B^4 for the whole cell, and a function exceeds its linear
    interpolation by at most an eighth of the largest second derivative.
    """
    ends = math.asin(math.sqrt(low)), math.asin(math.sqrt(high))
    cells = min(max(math.ceil(2 * math.sqrt(region.n0) * (ends[1] - ends[0]) / 0.25), 8), 400)
    angle = np.linspace(*ends, cells + 1)
    beta = claim.beta(_square_sine(angle))
    at, corner = np.empty(cells + 1), np.empty(cells)  # h at the nodes, U of the cells
    new_node, new_cell = np.ones(cells + 1, dtype=np.bool_), np.ones(cells, dtype=np.bool_)
    while True:
        alpha = _square_sine(angle)
        fresh = region.probability(
            np.concatenate([alpha[new_node], alpha[:-1][new_cell]]),
            np.concatenate([beta[new_node], beta[1:][new_cell]]),
        )
        at[new_node], corner[new_cell] = np.split(fresh, [int(new_node.sum())])
        best, base = float(at.max()), np.maximum(at[:-1], at[1:])
        bound = np.minimum(corner, base + _bulge(region, alpha, beta, corner))
        settled = best + _slack(best)
        coarse = bound > settled
        if not np.any(coarse) or len(angle) > 20_000:
            return max(best, float(bound.max()))
        # What is added to the base falls with the square of the width: so many parts are needed.
        with np.errstate(over="ignore"):
            parts = np.clip(np.ceil(np.sqrt(np.maximum(bound - base, 0.0) / (settled - base))), 2, 8)
        parts = np.where(coarse, parts, 1).astype(np.intp)
        cell = np.repeat(np.arange(len(parts)), parts)
        part = np.arange(len(cell)) - (np.cumsum(parts) - parts)[cell]
        angle = np.append(angle[cell] + np.diff(angle)[cell] * part / parts[cell], angle[-1])
        new_node, new_cell = np.append(part > 0, False), coarse[cell]
        at, corner, beta = np.append(at[cell], at[-1]), corner[cell], np.append(beta[cell], beta[-1])
        beta[new_node] = claim.beta(_square_sine(angle[new_node]))


def _bulge(region: _Region, alpha: Array, beta: Array, corner: Array) -> Array:
    """What Lemma 2 adds to the values at the ends of each cell; inf where it says nothing."""
    width, drop = np.diff(alpha), np.maximum(-np.diff(beta), 0.0)
    spread = np.where(corner < 0.5, np.sqrt(corner * (1 - corner)), 0.5)
    v, w = alpha * (1 - alpha), beta * (1 - beta)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # f is convex, so in a cell it lies above the chords of both neighbours, continued
        slope = drop / width
        before = np.maximum(np.concatenate([[np.inf], slope[:-1]]) - slope, 0.0)
        after = np.maximum(slope - np.concatenate([slope[1:], [0.0]]), 0.0)
        sag = width * np.where(np.isinf(before), after, before * after / (before + after))
        sag = np.minimum(np.nan_to_num(sag, nan=0.0), drop)
        of_alpha = width**2 * region.n0 / np.minimum(v[:-1], v[1:])
        of_beta = region.n1 / np.minimum(w[:-1], w[1:])
        bulge = spread * (sag * np.sqrt(of_beta) + math.sqrt(2) / 8 * (of_alpha + drop**2 * of_beta))
        flat = spread * math.sqrt(2) / 8 * of_alpha
    return np.nan_to_num(np.where(drop > 0, bulge, flat), nan=np.inf)


def _slack(p: float) -> float:
    """By how much a maximum may be overstated: less than the rounding of the counts costs."""
    return 0.005 * p if p >= 0.01 else p * (max(p, _LEAST) ** -0.01 - 1) + _LEAST


# --- numbers


def _deviate(p: float) -> float:
    """The normal deviate that is exceeded with probability p, finite."""
    return -float(ndtri(min(max(p, _LEAST), 1 - 1e-16)))


def _check(k: int, n: int, significance: float = 0.5) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"a count must lie between 0 and the number of outputs, got {k} of {n}")
    if not 0 <= significance < 1:
        raise ValueError(f"significance must lie in [0, 1), got {significance}")


def _interval(k: int, n: int, *, significance: float) -> tuple[float, float]:
    """Clopper-Pearson interval, significance split evenly."""
    return (
        clopper_pearson_lower(k, n, significance=significance / 2),
        clopper_pearson_upper(k, n, significance=significance / 2),
    )


def _boundary(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """The point between `inside` and `outside` where a condition begins to fail, from the outer side."""
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return outside


def _kl(p: float, q: float) -> float:
    """Divergence of Bernoulli(p) from Bernoulli(q), nats."""
    if p == q:
        return 0.0
    if q in (0.0, 1.0):
        return math.inf
    return float(xlogy(p, p / q) + xlogy(1 - p, (1 - p) / (1 - q)))


def _at_most(k: Counts, n: int, rate: Array) -> Array:
    """P[Binomial(n, rate) <= k]."""
    return np.where(k < n, betaincc(k + 1, np.maximum(n - k, 1), rate), 1.0)


def _log_likelihood(k: Array, n: int, rate: Array) -> Array:
    """log rate^k (1 - rate)^(n - k)."""
    return np.asarray(k * _log(rate) + (n - k) * _log1m(rate), dtype=np.float64)


def _log_choose(n: int, k: Array) -> Array:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _log(p: Array) -> Array:
    return np.log(np.maximum(p, 1e-320))


def _log1m(p: Array) -> Array:
    return np.where(p < 1, np.log1p(-np.minimum(p, 1 - 1e-16)), -1e3)


def _square_sine(angle: Array) -> Array:
    return np.asarray(np.sin(angle) ** 2)


def _rounding(n: int) -> float:
    """More than the error of a log-likelihood of n outputs in double precision, nats."""
    return 1e-9 + 1e-14 * n
