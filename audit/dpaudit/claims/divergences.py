"""Renyi divergences as trade-off functions, by the direct hypothesis-testing conversion.

A test with errors (alpha, beta) turns outputs into bits: Bernoulli(alpha) under P, Bernoulli(1 - beta) under Q.
Renyi divergence cannot grow by that (data processing; van Erven & Harremoes 2014, Thm 9).  So if
D_a(P||Q) and D_a(Q||P) are at most t, every test satisfies

    D_a(Ber(1 - beta) || Ber(alpha)) <= t   and   D_a(Ber(alpha) || Ber(1 - beta)) <= t,                       (1)

and since Bernoulli pairs are pairs, no better bound follows from order a alone (Balle, Barthe, Gaboardi, Hsu &
Sato 2020, "Hypothesis testing interpretations and Renyi differential privacy", Thm 10).  The pairs with (1) form a
convex set, D_a being jointly quasi-convex (van Erven & Harremoes, Thm 13), symmetric in (alpha, beta).

**Safe side.**  Below the diagonal alpha = beta the first inequality of (1) is the stronger one; it alone is used
there.  Its boundary is found by bisection from outside, and what is kept are tangents to the level set
through the point outside: they are lines below f whatever the precision.  Finitely many of them, and finitely
many orders, only lower f.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpaudit.claims.envelope import Envelope, SupportingLines
from dpaudit.numerics.arrays import Array, Flags
from dpaudit.numerics.bisect import bisect_each

_ROUNDING = 1e-15  # of one logarithm, relative to its size or to 1; several times what it is
_TINY = 1e-24  # divergences below which only that they are tiny is kept
_FAR = 700.0  # -log of the power at which the curve ends; doubles end at e^-708


def fixed_orders(orders: Array, divergences: Array) -> Envelope:
    """f from D_a <= t in both directions, for each pair (a > 1, t >= 0) of the two arrays."""
    if np.min(divergences) < _TINY:
        return _nearly_equal(float(np.min(divergences)))
    all_supporting = []
    for a, t in zip(orders, divergences, strict=True):
        # an order near 1 says something about absurdly small alpha, too; the larger ones are what matters
        log_alpha = np.unique(np.concatenate([_grid(far) for far in np.geomspace(30.0, _FAR * a / (a - 1) + t, 4)]))
        all_supporting.append(_tangents(log_alpha, np.full_like(log_alpha, a), np.full_like(log_alpha, t)))
    return _joined(all_supporting)


def all_orders(rho: float) -> Envelope:
    """f from D_a <= rho a in both directions, for every a > 1: zero-concentrated DP.

    At each alpha, the order that matters most is sought by golden section on log(a - 1); any order would be valid.
    """
    if rho < _TINY:
        return _nearly_equal(rho)
    log_alpha = _grid((np.sqrt(_FAR) + np.sqrt(rho)) ** 2)
    low = np.full_like(log_alpha, np.log(1e-5))
    high = np.full_like(log_alpha, np.log(20 + 10 * np.sqrt(_FAR / rho)))
    best = _golden(lambda x: _log_power(log_alpha, 1 + np.exp(x), rho * (1 + np.exp(x))), low, high)
    order = 1 + np.exp(best)
    return _joined([_tangents(log_alpha, order, rho * order)])


def _nearly_equal(divergence: float) -> Envelope:
    """Pinsker's inequality, from order 1, which every order a > 1 bounds: total variation <= sqrt(D / 2)."""
    supporting = SupportingLines(np.zeros(1), np.full(1, np.sqrt(divergence / 2)))
    return Envelope(supporting, supporting)


def _grid(largest: float) -> Array:
    """log alpha from -largest to log 1/2, evenly spaced in its square root: so are the log-slopes of G_mu."""
    return -(np.linspace(np.sqrt(np.log(2)), np.sqrt(largest), 2000) ** 2)


def _joined(all_supporting: list[SupportingLines]) -> Envelope:
    supporting = SupportingLines.hull(
        np.concatenate([h.slope for h in all_supporting]), np.concatenate([h.gap for h in all_supporting])
    )
    return Envelope(supporting, supporting)


def _golden(value: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Where a unimodal function of each element is least."""
    ratio = (np.sqrt(5.0) - 1) / 2
    x1, x2 = high - ratio * (high - low), low + ratio * (high - low)
    y1, y2 = value(x1), value(x2)
    for _ in range(25):
        left = y1 < y2
        low, high = np.where(left, low, x1), np.where(left, x2, high)
        x1, x2 = np.where(left, high - ratio * (high - low), x2), np.where(left, x1, low + ratio * (high - low))
        y_new = value(np.where(left, x1, x2))
        y1, y2 = np.where(left, y_new, y2), np.where(left, y1, y_new)
    return (low + high) / 2


def _log_power(log_x: Array, order: Array, divergence: Array) -> Array:
    """log of the largest w with D_order(Ber(w) || Ber(alpha)) <= divergence, rounded up, at each alpha.

    D_a(Ber(w) || Ber(x)) = log(w^a x^(1-a) + (1-w)^a (1-x)^(1-a)) / (a - 1).
    """
    log_not_x = np.log(-np.expm1(log_x))
    most = (order - 1) * divergence

    def allowed(log_w: Array) -> Flags:
        with np.errstate(divide="ignore"):
            log_not_w = np.log(-np.expm1(log_w))
        first, second = order * (log_w - log_x), order * (log_not_w - log_not_x)
        margin = _ROUNDING * (1 + np.abs(first) - log_x - log_not_x + np.where(second > -1e3, np.abs(second), 0.0))
        found: Flags = np.logaddexp(first + log_x, second + log_not_x) <= most + margin
        return found

    return bisect_each(allowed, inside=log_x, outside=np.zeros_like(log_x), steps=60).outside


def _tangents(log_x: Array, order: Array, divergence: Array) -> SupportingLines:
    """The line through (alpha, w) along the level set of D_order(Ber(w) || Ber(alpha)), at each alpha.

    With r = log(w / alpha) and t = log((1 - w) / (1 - alpha)):
    dw/dalpha = (1 - 1/a) (e^{a r} - e^{a t}) / (e^{(a-1) r} - e^{(a-1) t}).
    """
    log_w = _log_power(log_x, order, divergence)
    log_not_x = np.log(-np.expm1(log_x))
    below = (log_w < log_not_x) & (log_w > log_x)  # beyond, beta < alpha, and the mirrored lines matter
    order, log_w, log_x, log_not_x = order[below], log_w[below], log_x[below], log_not_x[below]
    r, t = log_w - log_x, np.log(-np.expm1(log_w)) - log_not_x
    log_share = np.log1p(-1 / order) + np.log(-np.expm1(order * (t - r))) - np.log(-np.expm1((order - 1) * (t - r)))
    # log_share = log of (slope alpha / w) < 0: what is left of w at alpha = 0 is the gap
    gap = np.exp(log_w) * -np.expm1(np.minimum(log_share, 0.0)) * (1 + 1e-12)
    slope = np.maximum(r + log_share, 0.0)
    if not np.any(below):
        return SupportingLines(np.zeros(1), np.ones(1))
    return SupportingLines.hull(slope, gap)
