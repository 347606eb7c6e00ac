"""SmartNoise SQL's approximate bounds of a column.  The library uses OpenDP's noise and so the system's randomness."""

from snsql.sql._mechanisms.approx_bounds import approx_bounds


class ApproximateBounds:
    """The function approx_bounds; the claim is the epsilon that it receives.

    A dataset lists values; the text "inf" stands for infinity.  If the function fails, the output names its exception,
    which the analyst sees.
    """

    def __init__(self, epsilon):
        self._epsilon = epsilon
        self.claim = f"pure(epsilon={epsilon!r})"

    def __call__(self, dataset, rng):
        try:
            return list(approx_bounds([float(value) for value in dataset], self._epsilon))
        except ValueError as error:
            return type(error).__name__
