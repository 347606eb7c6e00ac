"""OpenDP's noisy maximum of a vector of scores.  The library uses the operating system's randomness."""

import opendp.prelude as dp

dp.enable_features("contrib")


class NoisyMax:
    """The mechanism make_noisy_max with zero-concentrated privacy; the claim is its privacy map at distance 1."""

    def __init__(self, scale):
        domain, metric = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
        self._measurement = dp.m.make_noisy_max(domain, metric, dp.zero_concentrated_divergence(), scale=scale)
        self.claim = f"zcdp(rho={self._measurement.map(1)!r})"

    def __call__(self, dataset, rng):
        return self._measurement(dataset)
