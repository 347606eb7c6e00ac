"""OpenDP's geometric mechanism on one integer, without bounds.  The library uses the operating system's randomness."""

from opendp.mod import binary_search, enable_features

enable_features("contrib")


class Geometric:
    """The geometric mechanism; its claim is the least epsilon that OpenDP accepts at a distance."""

    def __init__(self, scale, distance):
        try:
            from opendp.meas import make_base_geometric
        except ImportError:
            import opendp.prelude as dp

            self._measurement = dp.m.make_geometric(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale)
            epsilon = self._measurement.map(distance)
        else:  # releases before 0.6; before 0.5, the library could only check whether a given epsilon is sufficient
            self._measurement = make_base_geometric(scale)
            epsilon = binary_search(lambda e: self._measurement.check(distance, e), bounds=(0.0, 100.0))
        self.claim = f"pure(epsilon={epsilon!r})"

    def __call__(self, dataset, rng):
        return self._measurement(dataset)
