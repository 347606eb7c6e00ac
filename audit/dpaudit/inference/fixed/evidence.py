"""Evidence of an outcome against a claim, as `exact_binomial` defines it, and the probability of at least as much."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction
from dpaudit.inference.fixed.binomial import (
    PROBABILITY_FLOOR,
    at_most,
    divergence_of_rates,
    log_complement,
    log_likelihood,
    log_rate,
    rounding,
)
from dpaudit.numerics import Array, Flags, Integers, bisect, bisect_each_integer, bisect_integers, log_choose

_SPACING = 0.1  # standard deviations between neighbouring points of the grid along the curve


@dataclass(frozen=True, eq=False)
class Arc:
    """Points (alpha, beta) of a claim's curve, with nondecreasing alpha and nonincreasing beta."""

    alpha: Array
    beta: Array

    @classmethod
    def pair(cls, claim: TradeoffFunction, n0: int, n1: int, low: float, high: float) -> tuple[Arc, Arc]:
        """Return an arc evenly spaced in arcsin(sqrt(alpha)) and an arc evenly spaced in arcsin(sqrt(beta)).

        Both cover each alpha in [low, high] of a symmetric claim; even spacing in alpha alone leaves gaps in beta.  The
        grids depend on n0 and n1 only, so each point moves in one direction as the claim weakens (Lemma 1 of
        `exact_binomial`).
        """

        def grid(n: int, low: float, high: float) -> Array:
            """Return the part of a fixed grid that covers [low, high], and two more points on each side."""
            step = _SPACING / (2 * math.sqrt(n))
            first = max(math.floor(math.asin(math.sqrt(low)) / step) - 2, 0)
            last = min(math.ceil(math.asin(math.sqrt(high)) / step) + 2, math.ceil(math.pi / 2 / step))
            return square_sine(np.minimum(step * np.arange(first, last + 1), math.pi / 2))

        alpha = grid(n0, low, high)
        beta = grid(n1, claim.beta(high), claim.beta(low))[::-1]
        return cls(alpha, claim.beta(alpha)), cls(claim.beta(beta), beta)

    @cached_property
    def _table(self) -> Array:
        """The rate, log rate and log(1 - rate), all finite, where the rate is alpha or beta, (3, points, 2)."""
        rates = np.stack([self.alpha, self.beta], axis=-1)
        return np.array([rates, log_rate(rates), log_complement(rates)])

    def evidence(self, x: npt.ArrayLike, n0: int, z: npt.ArrayLike, n1: int) -> Array:
        """Return the minimum divergence between outcomes (x, z) and the points of this arc; elementwise.

        Both terms are convex; along the arc one rises from 0 and one falls to 0, so the minimum is where their sum
        stops falling.
        """
        p, q = smoothed_rate(x, n0), smoothed_rate(z, n1)
        # Both terms are computed in one call, along the last axis, because the arrays are short and calls are costly.
        observed, sizes = np.stack([p, q], axis=-1), np.array([n0 + 1, n1 + 1])
        complement = 1 - observed
        own = observed * np.log(observed) + complement * np.log1p(-observed)

        def divergence(at: npt.NDArray[np.intp]) -> Array:
            rates, logs, logs_of_complement = self._table.take(at, axis=1)
            terms = sizes * (own - observed * logs - complement * logs_of_complement)
            # Lemma 1 requires terms >= 0, also after rounding.
            terms = np.where(rates > observed, np.maximum(terms, 0.0), 0.0)
            return np.asarray(terms[..., 0] + terms[..., 1])

        high = np.minimum(np.searchsorted(-self.beta, -q, side="left"), len(self.beta) - 1)
        low = np.clip(np.searchsorted(self.alpha, p, side="right") - 1, 0, high)

        if p.size == 1:  # computing all divergences at once is faster than one at a time
            start, stop = int(low.flat[0]), int(high.flat[0])
            every = divergence(np.arange(start, stop + 1))
            fell = (every[1:] <= every[:-1]).tolist()
            last = bisect_integers(lambda at: fell[at], inside=-1, outside=stop - start).outside
            return every[last : last + 1].reshape(p.shape)

        def falls(at: Integers) -> Flags:
            after, here = divergence(np.array([np.minimum(at + 1, high), at]))
            return np.asarray(after <= here)

        return divergence(bisect_each_integer(falls, inside=low - 1, outside=high).outside)


def evidence_of(claim: TradeoffFunction, x: int, n0: int, z: int, n1: int) -> float:
    """Return the evidence of one outcome against a claim, at the points with alpha >= p and beta >= q and beside."""
    p, q = float(smoothed_rate(x, n0)), float(smoothed_rate(z, n1))
    arcs = Arc.pair(claim, n0, n1, p, max(p, claim.beta(q)))
    return min(float(arc.evidence([x], n0, [z], n1)[0]) for arc in arcs)


def smoothed_rate(k: npt.ArrayLike, n: int) -> Array:
    """Return (k + 1/2) / (n + 1)."""
    return (np.asarray(k, dtype=np.float64) + 0.5) / (n + 1)


def square_sine(angle: Array) -> Array:
    """Return the squared sine, the inverse of arcsin sqrt."""
    return np.asarray(np.sin(angle) ** 2)


_TAIL = 18.0  # nats; outcomes left out of sums are rarer than the region by a factor of about e^18
_SUMMED = 3_000  # outcomes of d1; summing over more takes longer than the incomplete beta function


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The region {z <= limit(x)} of outcomes with at least a given evidence, for alpha in a given interval."""

    n0: int  # outputs of d0
    n1: int  # outputs of d1
    first: int  # smallest x that is represented
    limits: Integers  # limit(first), limit(first + 1), ...: nonincreasing, >= 0; larger x have no z in the region
    budget: float  # nats; tails rarer than e^-budget are left out of sums, and counted as part of the region

    @classmethod
    def of(cls, claim: TradeoffFunction, level: float, n0: int, n1: int, low: float, high: float) -> Outcomes:
        """Compute the region {evidence >= level} for alpha in [low, high].

        Chernoff's bound decides which x are rare: P[x/n0 <= p] <= exp(-n0 kl(p, alpha)) for p <= alpha, and likewise
        for p >= alpha.
        """
        budget = min(level, -math.log(PROBABILITY_FLOOR)) + _TAIL
        first = math.floor(n0 * _end(lambda p: n0 * divergence_of_rates(p, low) <= budget, low, 0.0))
        last = math.ceil(n0 * _end(lambda p: n0 * divergence_of_rates(p, high) <= budget, high, 1.0))
        # The divergence of all these x from points of the curve beyond `reach` exceeds the level.
        least, most = float(smoothed_rate(first, n0)), float(smoothed_rate(last, n0))
        reach = _end(lambda a: (n0 + 1) * divergence_of_rates(most, a) <= level + 1, most, 1.0)
        arcs = Arc.pair(claim, n0, n1, least, reach)
        enough = level - rounding(n0 + n1) * (1 + level)  # rounding enlarges the region: the safe side

        def limit(x: Integers, known: Integers, highest: Integers) -> Integers:
            """Return the largest z in [known, highest] with (x, z) in the region; `known` is in the region or -1."""

            def inside(z: Integers) -> Flags:
                z = np.maximum(z, 0)  # -1 marks finished searches
                return np.asarray(np.minimum(*(arc.evidence(x, n0, z, n1) for arc in arcs)) >= enough)

            return bisect_each_integer(inside, known, highest + 1).inside

        x = np.arange(first, last + 1)
        some = np.unique(np.append(x[::32], last))  # limits do not increase, so these limits bracket all others
        found = limit(some, np.full(len(some), -1), np.full(len(some), n1))
        after, before = np.searchsorted(some, x, side="left"), np.searchsorted(some, x, side="right") - 1
        limits = limit(x, found[after], found[before])
        return cls(n0, n1, first, limits[limits >= 0], budget)

    @cached_property
    def _rows(self) -> tuple[Array, Array, Array]:
        """The values of x, their log binomial coefficients log C(n0, x), and the largest log-likelihood of each x."""
        x = np.arange(self.first, self.first + len(self.limits), dtype=np.float64)
        return x, log_choose(self.n0, x), log_likelihood(x, self.n0, x / self.n0)

    @cached_property
    def _columns(self) -> tuple[Array, Array]:
        """The values of z up to the largest limit, and their log binomial coefficients log C(n1, z)."""
        z = np.arange(max(int(self.limits[-1]) - _SUMMED, 0), self.limits[0] + 1, dtype=np.float64)
        return z, log_choose(self.n1, z)

    def probability(self, alpha: Array, beta: Array) -> Array:
        """Return an upper bound of F(alpha, beta), the probability of the region; elementwise."""
        result = np.zeros_like(alpha)
        if len(self.limits) > 0:
            order = np.argsort(alpha)  # neighbours in alpha use nearly the same rows
            for some in np.array_split(order, math.ceil(len(order) / 16)):
                result[some] = self._near(alpha[some], beta[some])
        return np.minimum(result * (1 + rounding(self.n0 + self.n1)) + 3 * math.exp(-self.budget), 1.0)

    def _near(self, alpha: Array, beta: Array) -> Array:
        """Compute `probability` without x that are rare at every alpha, and small z that are rare at every beta."""
        x, log_choose0, own = self._rows
        low, high = ends = np.array([alpha.min(), alpha.max()])
        far = own - log_likelihood(x, self.n0, ends[:, None]) > self.budget
        rare_low, rare_high = far[0] & (x < self.n0 * low), far[1] & (x > self.n0 * high)
        kept = slice(np.count_nonzero(rare_low), len(x) - np.count_nonzero(rare_high))
        x, log_choose0, limits = x[kept], log_choose0[kept], self.limits[kept]
        if len(x) == 0:
            return np.zeros_like(alpha)
        alpha, beta = alpha[:, None], beta[:, None]
        weights = np.exp(log_choose0 + log_likelihood(x, self.n0, alpha))
        least, most = int(limits[-1]), int(limits[0])
        if most - least > 8 * len(x):  # with few x and distant limits, a sum over z would be slower
            below = at_most(limits, self.n1, beta)
        else:
            mean = self.n1 * float(beta.min())
            rare = min(max(math.ceil(mean - math.sqrt(2 * mean * self.budget)) - 1, -1), least)
            start = np.zeros_like(beta)
            if least - rare > _SUMMED:
                rare, start = least, at_most(np.array([least]), self.n1, beta)
            lowest = int(self._columns[0][0])
            z, log_choose1 = (column[rare + 1 - lowest : most + 1 - lowest] for column in self._columns)
            masses = np.exp(log_choose1 + log_likelihood(z, self.n1, beta))
            below = np.cumsum(np.hstack([start, masses]), axis=1)[:, limits - rare]
        return np.asarray((weights * below).sum(axis=1))


def _end(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return the point at which a condition starts to fail, rounded towards `outside`."""
    return bisect(holds, inside, outside, steps=60).outside


def largest_probability(region: Outcomes, claim: TradeoffFunction, low: float, high: float) -> float:
    """Return an upper bound of the maximum of h(a) = F(a, f(a)) for a in [low, high], too large by at most `slack`.

    F is the probability of the region, and f the curve of a symmetric claim.

    **Lemma 2.**  On a cell [a1, a2] let b1 = f(a1), b2 = f(a2), U = F(a1, b2) and s = sqrt(U (1 - U)), or 1/2 if
    U > 1/2; let v be the smaller of a1 (1 - a1) and a2 (1 - a2), and w the smaller of b1 (1 - b1) and b2 (1 - b2); let
    A = (a2 - a1) sqrt(n0/v) and B = (b1 - b2) sqrt(n1/w); and let f lie below its chord by at most e.  Then h <= U on
    the cell, and also  h <= max(h(a1), h(a2)) + s (e sqrt(n1/w) + sqrt(2)/8 (A^2 + B^2)).

    *Proof.*  F falls with alpha and with beta, so F <= U on the rectangle [a1, a2] x [b2, b1].  A derivative of F is
    the covariance of two variables.  One is the region's indicator, whose standard deviation is at most s.  The other,
    R, is the same derivative of the likelihood, divided by the likelihood.  For the first derivative in beta, R has
    variance n1/(beta (1 - beta)), so h differs from F on the chord by at most s e sqrt(n1/w).  For the second
    derivative along the chord, R is a sum of three orthogonal polynomials.  Its variance is at most 2 A^4 + 4 A^2 B^2 +
    2 B^4 for the whole cell.  A function exceeds its linear interpolation by at most an eighth of the largest second
    derivative.
    """
    ends = math.asin(math.sqrt(low)), math.asin(math.sqrt(high))
    cells = min(max(math.ceil(2 * math.sqrt(region.n0) * (ends[1] - ends[0]) / 0.25), 8), 400)
    angle = np.linspace(*ends, cells + 1)
    beta = claim.beta(square_sine(angle))
    at, corner = np.empty(cells + 1), np.empty(cells)  # h at the nodes, U of the cells
    new_node, new_cell = np.ones(cells + 1, dtype=np.bool_), np.ones(cells, dtype=np.bool_)
    while True:
        alpha = square_sine(angle)
        fresh = region.probability(
            np.concatenate([alpha[new_node], alpha[:-1][new_cell]]),
            np.concatenate([beta[new_node], beta[1:][new_cell]]),
        )
        at[new_node], corner[new_cell] = np.split(fresh, [int(new_node.sum())])
        best, base = float(at.max()), np.maximum(at[:-1], at[1:])
        bound = np.minimum(corner, base + _bulge(region, alpha, beta, corner))
        settled = best + slack(best)
        coarse = bound > settled
        if not np.any(coarse) or len(angle) > 20_000:
            return max(best, float(bound.max()))
        # The excess over the base falls with the square of the width, which gives the number of parts of a cell.
        with np.errstate(over="ignore"):
            parts = np.clip(np.ceil(np.sqrt(np.maximum(bound - base, 0.0) / (settled - base))), 2, 8)
        parts = np.where(coarse, parts, 1).astype(np.intp)
        cell = np.repeat(np.arange(len(parts)), parts)
        part = np.arange(len(cell)) - (np.cumsum(parts) - parts)[cell]
        angle = np.append(angle[cell] + np.diff(angle)[cell] * part / parts[cell], angle[-1])
        new_node, new_cell = np.append(part > 0, False), coarse[cell]
        at, corner, beta = np.append(at[cell], at[-1]), corner[cell], np.append(beta[cell], beta[-1])
        beta[new_node] = claim.beta(square_sine(angle[new_node]))


def _bulge(region: Outcomes, alpha: Array, beta: Array, corner: Array) -> Array:
    """Return the amount that Lemma 2 adds to the larger end value of each cell; inf where the lemma gives no bound."""
    width, drop = np.diff(alpha), np.maximum(-np.diff(beta), 0.0)
    spread = np.where(corner < 0.5, np.sqrt(corner * (1 - corner)), 0.5)
    v, w = alpha * (1 - alpha), beta * (1 - beta)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # f is convex, so in a cell it lies above the extended chords of both neighbouring cells.
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


def slack(p: float) -> float:
    """Return the allowed overstatement of a maximum, which is less than the effect of discrete counts."""
    return 0.005 * p if p >= 0.01 else p * (max(p, PROBABILITY_FLOOR) ** -0.01 - 1) + PROBABILITY_FLOOR
