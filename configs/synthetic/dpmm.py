"""AIM of dpmm on tables of a city and a sex, whose domain is given.

Inference has fewer iterations than by default.  It only processes noisy marginals, so it does not change the claim.
"""

import warnings

import pandas as pd
from dpmm.pipelines import AIMPipeline

DOMAIN = {"city": {"categories": ["Bonn", "Jena", "Ulm"]}, "sex": {"categories": ["f", "m"]}}


class Aim:
    """A synthetic table of 50 rows; the claim is the epsilon and the delta given to `AIMPipeline`."""

    def __init__(self, epsilon, delta, rows=50):
        self._epsilon, self._delta, self._rows = epsilon, delta, rows
        self.claim = f"approximate(epsilon={epsilon!r}, delta={delta!r})"

    def __call__(self, dataset, rng):
        warnings.simplefilter("ignore")
        pipeline = AIMPipeline(
            epsilon=self._epsilon,
            delta=self._delta,
            proc_epsilon=None,  # there are no numbers, so nothing is spent on bins
            compress=False,
            n_jobs=1,
            gen_kwargs={"n_iters": 20},
        )
        pipeline.fit(pd.DataFrame(dataset), domain=DOMAIN, random_state=int(rng.integers(2**31)))
        table = pipeline.generate(n_records=self._rows, random_state=int(rng.integers(2**31)))
        return {name: table[name].tolist() for name in DOMAIN}
