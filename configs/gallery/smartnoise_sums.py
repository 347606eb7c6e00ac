"""A query with SmartNoise's first SQL package, opendp-smartnoise, on one table.

The library draws bytes from the operating system's randomness.  `rng` is not used.
"""

import logging
import warnings

import pandas as pd
from opendp.smartnoise.metadata.collection import CollectionMetadata, Float, Int, Table
from opendp.smartnoise.sql import PandasReader, PrivateReader

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


class SumAndCount:
    """The noisy sum of a column plus the noisy number of rows; each row belongs to another user.

    A dataset lists the values of the column.  `bounds` are the bounds that the metadata state; None: the metadata state
    none.  The claim is the sum of the budgets of both aggregates.

    The count makes the outputs vary.  The faulty sum has no noise, and dpaudit does not trust constant outputs, which
    may come from a cache.
    """

    def __init__(self, epsilon, delta, bounds):
        self._budget = {"epsilon_per_column": epsilon, "delta": delta}
        columns = [Int("user", is_key=True), Float("amount", *(bounds or ()))]
        self._metadata = CollectionMetadata([Table("shop", "sales", 100, columns)], "pandas")
        self.claim = f"approximate(epsilon={2 * epsilon!r}, delta={2 * delta!r})"

    def __call__(self, dataset, rng):
        rows = pd.DataFrame({"user": range(len(dataset)), "amount": dataset})
        reader = PrivateReader(self._metadata, PandasReader(self._metadata, rows), **self._budget)
        _, (number, total) = reader.execute("SELECT COUNT(*) AS number, SUM(amount) AS total FROM shop.sales")
        return float(number) + float(total)
