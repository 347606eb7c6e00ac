"""The logistic regression agrees with that of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dpaudit.numerics import logistic
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.logistic import fit_logistic


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
    assert (2 * n * columns > logistic._NUMBERS_AT_ONCE) == (columns == 40)
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
