"""OpenDP's randomised response on a vector of bits.  The library uses the operating system's randomness."""

import opendp.prelude as dp

dp.enable_features("contrib")


class RandomisedResponseBits:
    """The mechanism make_randomized_response_bitvec; the claim is its privacy map at distance 1.

    A dataset lists the bytes of the vector of bits.
    """

    def __init__(self, max_weight, f):
        domain, metric = dp.bitvector_domain(max_weight=max_weight), dp.discrete_distance()
        self._measurement = dp.m.make_randomized_response_bitvec(domain, metric, f=f)
        self.claim = f"pure(epsilon={self._measurement.map(1)!r})"

    def __call__(self, dataset, rng):
        return list(self._measurement(bytes(dataset)))
