"""Numerical tools that several packages share and that do not depend on privacy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from itertools import repeat
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

Array = npt.NDArray[np.float64]  # type of an array of floating-point numbers with any shape
AnyArray = npt.NDArray[Any]  # type of an array with any element type and any shape
Flags = npt.NDArray[np.bool_]  # type of an array of booleans with any shape
Integers = npt.NDArray[np.int64]  # type of an array of 64-bit integers with any shape

EXACT = 2**53  # a float64 represents all integers up to this absolute value exactly


def log_choose(n: npt.ArrayLike, k: npt.ArrayLike) -> Array:
    """Return the natural logarithm of the binomial coefficient "n choose k", elementwise."""
    n, k = np.asarray(n), np.asarray(k)
    log_coefficient: Array = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return log_coefficient


P = ParamSpec("P")
T = TypeVar("T")


def kept(size: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator like `lru_cache`; it computes results for arguments that cannot be hashed each time."""

    def decorate(compute: Callable[P, T]) -> Callable[P, T]:
        known = lru_cache(maxsize=size)(compute)

        @wraps(compute)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                hash(args)
            except TypeError:
                return compute(*args, **kwargs)
            return known(*args, **kwargs)  # type: ignore[arg-type]

        return wrapper

    return decorate


def read_only(array: Array) -> Array:
    """Make an array read-only, so that a cached result cannot be changed, and return the same array."""
    array.flags.writeable = False
    return array


FOLDS = 3  # number of folds of the cross-fitting; row i belongs to fold i % FOLDS

Rows = TypeVar("Rows", bound="AnyArray | Sequence[object]")


def in_fold(rows: int, fold: int) -> Flags:
    """Return a boolean mask of the rows that belong to a fold; shape (rows,)."""
    inside: Flags = np.arange(rows) % FOLDS == fold
    return inside


def out_of_fold(fit: Callable[[Rows, Rows], Callable[[Rows], Array]], rows0: Rows, rows1: Rows) -> tuple[Array, Array]:
    """Score each row by a model of the other folds' rows (stacking: Wolpert 1992); (n0,) and (n1,), or with m."""

    def chosen(rows: Rows, flags: Flags) -> Rows:
        some = rows[flags] if isinstance(rows, np.ndarray) else [rows[int(i)] for i in np.flatnonzero(flags)]
        return cast(Rows, some)

    all_scores: list[Array] = []
    for fold in range(FOLDS):
        out = in_fold(len(rows0), fold), in_fold(len(rows1), fold)
        scorer = fit(chosen(rows0, ~out[0]), chosen(rows1, ~out[1]))
        new = [scorer(chosen(rows, side)) for rows, side in zip((rows0, rows1), out, strict=True)]
        all_scores = all_scores or [np.empty((len(side), *s.shape[1:])) for side, s in zip(out, new, strict=True)]
        for scores, side, scored in zip(all_scores, out, new, strict=True):
            scores[side] = scored
    return all_scores[0], all_scores[1]


Point = TypeVar("Point")


class Bracket(NamedTuple, Generic[Point]):
    """The two ends of the final bracket of a bisection."""

    inside: Point  # last point at which the condition was true
    outside: Point  # last point at which the condition was false


def geometric_mean(a: float, b: float) -> float:
    """Return the geometric mean sqrt(a b) of two positive numbers."""
    return math.sqrt(a) * math.sqrt(b)


def bisect(
    holds: Callable[[float], bool],
    inside: float,
    outside: float,
    *,
    steps: int | None = None,
    close: Callable[[float, float], bool] | None = None,
    mean: Callable[[float, float], float] = lambda a, b: (a + b) / 2,
) -> Bracket[float]:
    """Locate the number at which a condition changes from true to false."""
    for _ in repeat(None) if steps is None else repeat(None, steps):
        if close is not None and close(inside, outside):
            break
        middle = mean(inside, outside)
        if not min(inside, outside) < middle < max(inside, outside):
            break
        if holds(middle):
            inside = middle
        else:
            outside = middle
    return Bracket(inside, outside)


def bisect_integers(holds: Callable[[int], bool], inside: int, outside: int) -> Bracket[int]:
    """Locate the integer at which a condition changes from true to false; the ends of the bracket differ by 1."""
    bracket = bisect(lambda x: holds(int(x)), inside, outside, mean=lambda a, b: (a + b) // 2)
    return Bracket(int(bracket.inside), int(bracket.outside))


def bisect_each(
    holds: Callable[[Array], Flags],
    inside: Array,
    outside: Array,
    *,
    steps: int | None = None,
    close: Callable[[Array, Array], Flags] | None = None,
    mean: Callable[[Array, Array], Array] = lambda a, b: (a + b) / 2,
) -> Bracket[Array]:
    """Apply `bisect` to each element of an array independently."""
    for _ in repeat(None) if steps is None else repeat(None, steps):
        middle = mean(inside, outside)
        open_ = (np.minimum(inside, outside) < middle) & (middle < np.maximum(inside, outside))
        if close is not None:
            open_ &= ~close(inside, outside)
        if not open_.any():
            break
        yes = holds(middle)
        inside, outside = np.where(open_ & yes, middle, inside), np.where(open_ & ~yes, middle, outside)
    return Bracket(inside, outside)


def bisect_each_integer(holds: Callable[[Integers], Flags], inside: Integers, outside: Integers) -> Bracket[Integers]:
    """Apply `bisect_integers` to each element of an array independently."""
    # the mean of two arrays of integers is one, too
    return bisect_each(holds, inside, outside, mean=lambda a, b: (a + b) // 2)  # type: ignore[arg-type, return-value]


def last_that_holds(holds: Callable[[float], bool], *, precision: float, most: float = 64.0) -> float:
    """Compute a lower bound of the largest number at which a condition holds, which changes once from true to false.

    The search doubles x from `precision` to at most `most`, and bisects the last interval.  If the condition holds up
    to x* > 0, and m = min(x*, `most`), the result is at most m and above m - `precision` * max(1, m); it is 0 if the
    condition fails at `precision`.
    """
    inside, outside = 0.0, precision
    while holds(outside):
        inside, outside = outside, 2 * outside
        if inside >= most:
            return most
    closed = bisect(holds, inside, outside, close=lambda low, high: high - low <= precision * max(1.0, low))
    return min(closed.inside, most)


def lowest(x: Array, y: Array) -> tuple[Array, Array]:
    """Sort points by their abscissas, and keep only the lowest point at each abscissa."""
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    first = np.concatenate([[True], np.diff(x) > 0])
    return x[first], y[first]


def lower_hull(
    x: Array,
    y: Array,
    *,
    steepness: Callable[[Array, Array], Array] = lambda x, y: np.diff(y) / np.diff(x),
    straight: bool = False,
) -> tuple[Array, Array]:
    """Return the corners of the lower convex hull of n points, whose abscissas strictly increase.

    `steepness` maps k points to k - 1 numbers that strictly increase with the slope; so x may hold logarithms of very
    large abscissas.  If `straight`, points on straight lines between corners remain.

    Proof:
        Call the segment between two successive points a chord.  A point is removed if the chord on its left is at least
        (if `straight`: more) steep than the chord on its right.  Such a point lies on or above the line between two
        others, so no corner is removed.  After the last iteration, the slopes increase (if `straight`: do not
        decrease).
    """
    while True:
        steep = steepness(x, y)
        off = np.diff(steep) < 0 if straight else np.diff(steep) <= 0
        if not np.any(off):
            return x, y
        kept = np.concatenate([[True], ~off, [True]])
        x, y = x[kept], y[kept]


def linear(rows: Array, slopes: Array) -> Array:
    """Return the product of each row (n, d) with the slopes (d,); its bits, unlike those of BLAS, ignore other rows."""
    return np.asarray(np.einsum("ij,j->i", np.ascontiguousarray(rows), slopes))


def fit_logistic(rows: Array, n0: int) -> tuple[Array, float]:
    """Return the d coefficients and the intercept of the log-odds that a row belongs to d1.

    The loss is that of scikit-learn's LogisticRegression(C=1, solver="newton-cholesky"), whose checks would take
    longer.
    """
    n, columns = rows.shape
    if columns > n:
        # the penalty keeps the slopes in the space of the rows, of which the columns of q are an orthonormal basis
        q, triangle = np.linalg.qr(rows.T)
        slopes, intercept = fit_logistic(triangle.T, n0)
        return q @ slopes, intercept
    # nats; Newton's method stops when the loss exceeds its estimated minimum by less than half of this.  The last step
    # leaves about the square of this, far less than the error of a sample of so many rows.
    close = 1e-4 if n <= 100_000 else n * 1e-4
    x = np.empty((columns + 1, n))  # one row for each coefficient, so that products with weights are fast
    x[:columns], x[columns] = rows.T, 1.0
    penalty = np.append(np.ones(columns), 1e-9)
    beta, margins, now = np.zeros(columns + 1), np.zeros(n), n * math.log(2)

    def loss(beta: Array, margins: Array) -> float:
        return log_loss(margins, n0) + float(0.5 * penalty @ beta**2)

    if n > 10_000:  # start from a fit to every eighth row
        slopes, intercept = fit_logistic(rows[::8], -(-n0 // 8))
        guess = np.append(slopes, intercept)
        there = guess @ x
        if (then := loss(guess, there)) < now:
            beta, margins, now = guess, there, then
    for _ in range(30):  # steps of Newton's method
        chance = 0.5 * (1 + np.tanh(0.5 * margins))
        curvature = _weighted_products(x, chance * (1 - chance))
        curvature[np.diag_indices(columns + 1)] += penalty
        chance[n0:] -= 1  # now the derivative of the loss with respect to the margins
        gradient = x @ chance + penalty * beta
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step < close:  # to second order, the product is twice the remaining decrease of the loss
            beta = beta - step
            break
        slopes = step @ x
        length, then = 1.0, loss(beta - step, margins - slopes)
        while then > now and length > 1e-4:
            length /= 2
            then = loss(beta - length * step, margins - length * slopes)
        if then >= now:
            break
        beta, margins, now = beta - length * step, margins - length * slopes, then
    return beta[:-1], float(beta[-1])


def log_loss(margins: Array, n0: int) -> float:
    """Return the sum of log(1 + exp(+-margin)) over all log-odds, in nats; the first `n0` belong to d0."""
    rest = np.log1p(np.exp(-np.abs(margins)))
    return float(rest.sum() + np.maximum(margins[:n0], 0.0).sum() - np.minimum(margins[n0:], 0.0).sum())


def _weighted_products(x: Array, weights: Array) -> Array:
    """Return the sum over i of weights[i] * outer(x[:, i], x[:, i]), in half the time of other products."""
    roots = np.sqrt(weights)
    size = max(1, 2**17 // len(x))  # 1 MB in a product
    total = np.zeros((len(x), len(x)))
    for start in range(0, len(roots), size):
        some = x[:, start : start + size] * roots[start : start + size]
        total += some @ some.T
    return total
