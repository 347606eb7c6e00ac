"""PATE-GAN of smartnoise-synth on tables of three columns, as in the audit of Ganev, Annamalai & De Cristofaro.

The class makes one teacher for each 1,000 rows.  So public rows of zeros are added to each table, which then has two
teachers, as in that audit.  Tables that differ in one row still differ in one row.
"""

import warnings

import pandas as pd
import torch
from snsynth.pytorch.nn.pategan import PATEGAN
from snsynth.transform import ChainTransformer, LabelTransformer, OneHotEncoder, TableTransformer

torch.set_num_threads(1)

COLUMNS = ("A", "B", "C")
ROWS = 1996
"""Number of public rows: 2,000 with the four rows of the smaller table."""


def transformer_for(table):
    """Return a transformer that has learned the categories of each column from a table."""
    columns = [ChainTransformer([LabelTransformer(nullable=False), OneHotEncoder()]) for _ in COLUMNS]
    transformer = TableTransformer(columns)
    transformer.fit(table)
    return transformer


class PateGan:
    """A synthetic table; the claim is the epsilon and the delta of the constructor.

    Large batches make the moments accountant stop after three iterations, and teachers learn one batch in each.
    """

    def __init__(self, epsilon, delta, domain, rows=20, batch=1000):
        self._epsilon, self._delta, self._domain, self._rows, self._batch = epsilon, delta, domain, rows, batch
        self.claim = f"approximate(epsilon={epsilon!r}, delta={delta!r})"

    def __call__(self, dataset, rng):
        warnings.simplefilter("ignore")
        torch.manual_seed(int(rng.integers(2**31)))
        table = pd.DataFrame(list(dataset) + [dict.fromkeys(COLUMNS, 0)] * ROWS, columns=COLUMNS)
        model = PATEGAN(epsilon=self._epsilon, delta=self._delta, batch_size=self._batch, teacher_iters=1)
        known = pd.DataFrame({name: [0, 1] for name in COLUMNS}) if self._domain == "given" else table
        model.fit(table, transformer=transformer_for(known))
        return {name: column.tolist() for name, column in model.sample(self._rows).items()}
