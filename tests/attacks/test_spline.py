"""The table of `spline` gives the scores of its regression."""

import numpy as np
import pytest

from dpaudit.numerics.logistic import fit_logistic
from dpaudit.outputs import Scale
from dpaudit_attacks.spline import Spline


@pytest.mark.parametrize("n", [40, 6_000], ids=["few", "with bends in the tails"])
def test_the_table_says_what_the_regression_on_hinges_says(n: int) -> None:
    """The second implementation computes every hinge of every output."""
    rng = np.random.default_rng(1)
    columns = rng.standard_t(3, (2 * n, 4))
    columns[:, 1] = np.round(columns[:, 1])  # ties
    columns[:, 2] = 5.0  # constant
    columns[rng.random(2 * n) < 0.1, 3] = np.nan
    columns[:n, 0] += 0.5
    score = Spline().fit(columns[:n], columns[n:], rng)

    scale = Scale.of(columns)
    seen = scale(columns)
    quantiles = [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875]
    if 2 * n >= 10_000:
        quantiles += [0.003, 0.02, 0.98, 0.997]

    def hinges(outputs: np.ndarray) -> np.ndarray:
        rows = np.clip(scale(outputs), seen.min(axis=0), seen.max(axis=0))
        bends = [np.unique(np.quantile(column, quantiles)) for column in seen.T]
        parts = [rows[:, j] * (rows[:, j] > bend) - bend * (rows[:, j] > bend) for j in range(5) for bend in bends[j]]
        return np.column_stack([rows, *parts])

    slopes, intercept = fit_logistic(hinges(columns), n)
    fresh = rng.standard_t(1, (1_000, 4))
    fresh[::7] = [np.inf, -np.inf, np.nan, 1e308]
    assert score(fresh) == pytest.approx(hinges(fresh) @ slopes + intercept, abs=1e-9)
