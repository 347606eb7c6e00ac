"""The slope of the log-odds."""

from __future__ import annotations

import numpy as np

from dpaudit_attacks.logistic import Logistic

MU = 0.335


def test_the_slope_is_learned_from_all_50000_outputs() -> None:
    """The standard error of the slope is 1.9 % with 50,000 outputs, and 4.2 % with 10,000.

    Root mean square of 40 fits: fails by chance < 1 in 10**7.
    """
    rng = np.random.default_rng(7)
    errors = []
    for _ in range(40):
        score = Logistic().fit(rng.normal(0, 1, (50_000, 1)), rng.normal(MU, 1, (50_000, 1)), rng)
        low, high = score(np.array([[0.0], [1.0]]))
        errors.append((high - low) / MU - 1)
    assert np.sqrt(np.mean(np.square(errors))) < 0.032
