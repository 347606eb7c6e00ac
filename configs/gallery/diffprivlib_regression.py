"""diffprivlib's linear regression on one feature, without an intercept.

The library uses the operating system's randomness unless a random_state is given.  `rng` is not used.
"""

import warnings

import numpy as np
from diffprivlib.models import LinearRegression


class Regression:
    """The coefficient of the model; the claim is the epsilon that the model receives.

    A dataset lists the pairs [feature, target] of the records.
    """

    def __init__(self, epsilon, bounds_x, bounds_y):
        self._settings = {"epsilon": epsilon, "bounds_X": tuple(bounds_x), "bounds_y": tuple(bounds_y)}
        self.claim = f"pure(epsilon={epsilon!r})"

    def __call__(self, dataset, rng):
        features, targets = np.array(dataset, dtype=float).T
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LinearRegression(fit_intercept=False, **self._settings).fit(features[:, None], targets)
        return float(model.coef_.ravel()[0])
