"""DataSynthesizer's noisy conditional distributions of two attributes.

The library uses numpy's global generator, which the worker seeds.
"""

import pandas as pd
from DataSynthesizer.lib.PrivBayes import construct_noisy_conditional_distributions


class ConditionalDistributions:
    """The distributions of the attribute `a`, and of `b` given `a`; the claim is the epsilon given to the function.

    A dataset lists the values [a, b] of each record; values are 0 or 1.
    """

    def __init__(self, epsilon):
        self._epsilon = epsilon
        self.claim = f"pure(epsilon={epsilon!r})"

    def __call__(self, dataset, rng):
        records = pd.DataFrame(dataset, columns=["a", "b"])
        found = construct_noisy_conditional_distributions([("b", ["a"])], records, epsilon=self._epsilon)
        return found["a"] + found["b"]["[0]"] + found["b"]["[1]"]
