"""The lower convex hull agrees with a comparison against every chord in exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from dpaudit import numerics as logistic
from dpaudit.numerics import FOLDS, AnyArray, Array, fit_logistic, lower_hull, lowest, out_of_fold

POINTS = st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=1, max_size=25)


def plain(points: list[tuple[int, int]], *, straight: bool) -> list[tuple[int, int]]:
    """Return the lowest point at each x, unless a chord between two other points passes below it.

    Without `straight`, a chord that passes through the point removes it, too.
    """
    lowest_at = sorted(dict(sorted(points, reverse=True)).items())

    def goes(x: int, y: int) -> bool:
        for (x0, y0), (x1, y1) in combinations(lowest_at, 2):
            if x0 < x < x1:
                chord = y0 + Fraction(y1 - y0, x1 - x0) * (x - x0)
                if chord < y or (chord == y and not straight):
                    return True
        return False

    return [(x, y) for x, y in lowest_at if not goes(x, y)]


@given(POINTS, st.booleans())
def test_what_is_kept_lies_below_every_chord(points: list[tuple[int, int]], straight: bool) -> None:
    """The comparison is exact: quotients of integers up to 40 are equal or differ by much more than rounding errors."""
    x, y = (np.array(values, dtype=np.float64) for values in zip(*points, strict=True))
    hull = lower_hull(*lowest(x, y), straight=straight)
    assert list(zip(*hull, strict=True)) == plain(points, straight=straight)


def test_another_scale_of_x_keeps_the_same_points() -> None:
    """Here x is the logarithm of an abscissa, and e^x does not overflow."""
    rng = np.random.default_rng(5)
    x, y = np.sort(rng.uniform(0, 5, 200)), np.sort(rng.uniform(0, 1, 200))[::-1]
    hull = lower_hull(np.exp(x), y)
    other = lower_hull(x, y, steepness=lambda x, y: np.diff(y) / np.diff(np.exp(x)))
    assert 5 < len(hull[0]) < 100
    assert np.array_equal(hull[0], np.exp(other[0]))
    assert np.array_equal(hull[1], other[1])


@pytest.mark.parametrize("points", [1, 2])
def test_one_or_two_points_are_their_own_hull(points: int) -> None:
    x, y = np.arange(points, dtype=np.float64), np.ones(points)
    assert np.array_equal(lower_hull(x, y), (x, y))


@pytest.mark.parametrize(("n0", "n1"), [(7, 10), (1, 1), (3, 2), (0, 4)])
def test_no_row_is_scored_by_what_was_fitted_to_it(n0: int, n1: int) -> None:
    rows0, rows1 = np.arange(n0), 100 + np.arange(n1)
    fitted: list[set[int]] = []

    def fit(rest0: AnyArray, rest1: AnyArray) -> Callable[[AnyArray], Array]:
        known = {*rest0.tolist(), *rest1.tolist()}
        fitted.append(known)

        def scorer(rows: AnyArray) -> Array:
            assert not known & {*rows.tolist()}
            return np.column_stack([rows, -rows]).astype(np.float64)

        return scorer

    held0, held1 = out_of_fold(fit, rows0, rows1)
    assert held0.tolist() == [[x, -x] for x in rows0]
    assert held1.tolist() == [[x, -x] for x in rows1]
    assert len(fitted) == FOLDS
    for row in (*rows0.tolist(), *rows1.tolist()):
        assert sum(row in known for known in fitted) == FOLDS - 1


def test_lists_are_rows_as_well() -> None:
    def fit(rest0: list[str], rest1: list[str]) -> Callable[[list[str]], Array]:
        assert isinstance(rest0, list)
        return lambda rows: np.array([len(row) for row in rows], dtype=np.float64)

    held0, held1 = out_of_fold(fit, ["a", "bb", "ccc", "dddd"], ["", "e"])
    assert held0.tolist() == [1, 2, 3, 4]
    assert held1.tolist() == [0, 1]


@pytest.mark.parametrize(("n", "columns", "shift"), [(10, 1, 1.0), (200, 5, 0.3), (3000, 3, 0.0), (50, 2, 100.0)])
def test_logistic_regression_finds_what_scikit_learn_finds(n: int, columns: int, shift: float) -> None:
    """One case is separable, so that only the penalty keeps the slopes finite."""
    rng = np.random.default_rng(n)
    rows = np.concatenate([rng.normal(0, 1, (n, columns)), rng.normal(shift, 1, (n, columns))])
    slopes, intercept = fit_logistic(rows, n)
    model = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(rows, np.repeat([0, 1], n))
    assert np.allclose(slopes, model.coef_[0], rtol=1e-2, atol=1e-3)
    assert abs(intercept - model.intercept_[0]) < 1e-2 * (1 + abs(intercept))


def plain_fit(rows: Array, n0: int, steps: int = 20) -> Array:
    """Newton's method without line search, and without any part of `fit_logistic`."""
    x = np.column_stack([rows, np.ones(len(rows))])
    penalty, beta = np.diag([1.0] * rows.shape[1] + [1e-9]), np.zeros(x.shape[1])
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-x @ beta))
        gradient = x.T @ (chance - (np.arange(len(x)) >= n0)) + penalty @ beta
        beta = beta - np.linalg.solve((x * (chance * (1 - chance))[:, None]).T @ x + penalty, gradient)
    return beta


@pytest.mark.parametrize(("n", "columns"), [(3000, 2), (6000, 40)])
def test_rows_in_several_parts_give_the_fit_of_a_plain_implementation(n: int, columns: int) -> None:
    """The second case has enough rows for a warm start, and more numbers than one product takes."""
    rng = np.random.default_rng(n)
    rows = np.concatenate([rng.normal(0, 1, (n, columns)), rng.normal(0.1, 1, (n, columns))])
    assert (2 * n * columns > 2**17) == (columns == 40)
    slopes, intercept = fit_logistic(rows, n)
    assert np.allclose([*slopes, intercept], plain_fit(rows, n), atol=1e-4)


@pytest.mark.parametrize("shift", [0.01, 3.0])
def test_fits_to_many_rows_stop_early_and_still_reach_the_minimum(shift: float) -> None:
    rng = np.random.default_rng(1)
    n = 60_000
    rows = np.concatenate([rng.normal(0, 1, (n, 4)), rng.normal(shift / 2, 1, (n, 4))])
    steps = 0
    products = logistic._weighted_products

    def counted(x: Array, weights: Array) -> Array:
        nonlocal steps
        steps += x.shape[1] == len(rows)
        return products(x, weights)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(logistic, "_weighted_products", counted)
        slopes, intercept = fit_logistic(rows, n)
    assert steps <= 2
    found, best = np.append(slopes, intercept), plain_fit(rows, n)
    x = np.column_stack([rows, np.ones(len(rows))])
    losses = [logistic._log_loss(x @ beta, n) + 0.5 * float(beta[:-1] @ beta[:-1]) for beta in (found, best)]
    assert losses[0] - losses[1] < 0.01  # nats, over 120,000 rows


def test_the_loss_of_extreme_log_odds_is_finite_and_exact() -> None:
    margins = np.array([-800.0, -1.0, 0.0, 2.0, 800.0, -800.0, -3.0, 0.5])
    signs = np.where(np.arange(8) < 3, 1.0, -1.0)
    assert logistic._log_loss(margins, 3) == pytest.approx(np.logaddexp(0.0, signs * margins).sum(), rel=1e-14)
