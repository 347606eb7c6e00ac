"""PATE-GAN of synthcity on tables of three columns, as in the audit of Ganev, Annamalai & De Cristofaro.

Two teachers, as in that audit.  The constructor computes delta from the number of records, so delta is set afterwards.
The networks seed numpy and torch with their argument `random_state`; here each run has a seed of its own.
"""

import contextlib
import io
import warnings

import pandas as pd
import synthcity.logger as log
import torch
from synthcity.plugins.core.models import gan, mlp
from synthcity.plugins.privacy.plugin_pategan import PATEGAN
from synthcity.utils.reproducibility import enable_reproducible_results

log.remove()
torch.set_num_threads(1)
gan.enable_reproducible_results = mlp.enable_reproducible_results = lambda random_state=0: None


class PateGan:
    """A synthetic table; the claim is the epsilon and the delta of the moments accountant."""

    def __init__(self, epsilon, delta, iterations, rows=20):
        self._epsilon, self._delta, self._iterations, self._rows = epsilon, delta, iterations, rows
        self.claim = f"approximate(epsilon={epsilon!r}, delta={delta!r})"

    def __call__(self, dataset, rng):
        warnings.simplefilter("ignore")
        enable_reproducible_results(int(rng.integers(2**31)))
        with contextlib.redirect_stderr(io.StringIO()):  # a progress bar for each iteration
            model = PATEGAN(max_iter=self._iterations, n_teachers=2, epsilon=self._epsilon)
            model.delta = self._delta
            model.fit(pd.DataFrame(dataset))
            return {name: column.tolist() for name, column in model.sample(self._rows).items()}
