"""Sessions of OpenDP, Tumult Core, smartnoise-sql and diffprivlib for `audit_interactive`.

    def open_session(dataset, rng):
        return sessions.OpenDP(odometer(dataset), {"count": count})

    audit_interactive(open_session, "reported", Pair([1, 1], [1, 1, 1]))

Each class takes what the library opened, and the queries that may be asked by name.  A query that the library does not
answer because of its budget is refused; every other exception is an outcome that the analyst sees.  `spent` is None if
the library reports nothing, or something other than the epsilon of pure DP.  All but diffprivlib draw their noise from
the operating system.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from dpaudit.running.sessions import Refused
from dpaudit.values import Dataset


class OpenDP:
    """A queryable of OpenDP: adaptive composition, fully adaptive composition (an odometer) or a privacy filter.

    Args:
        queryable: What the interactive measurement or the odometer returned for the dataset.
        queries: Measurements by name.
        d_in: Distance of neighbouring datasets, at which an odometer reports its loss.
    """

    def __init__(self, queryable: Any, queries: Mapping[str, Any], d_in: Any = 1) -> None:
        self.queryable, self.measurements, self.d_in, self.queries = queryable, queries, d_in, tuple(queries)
        measures = {str(measurement.output_measure).removesuffix("()") for measurement in queries.values()}
        self.reports = hasattr(queryable, "privacy_loss") and measures == {"MaxDivergence"}
        self.loss, self.exhausted = 0.0, False

    def ask(self, query: str) -> Any:
        exception = import_module("opendp.mod").OpenDPException
        try:
            return self.queryable(self.measurements[query])
        except exception as error:
            self.exhausted = "exhausted" in str(error)
            if self.exhausted or re.search("out of queries|insufficient budget", str(error)):
                raise Refused(str(error)) from None
            raise

    @property
    def spent(self) -> float | None:
        """The privacy loss of an odometer or a filter; an exhausted filter no longer says it, and keeps the last."""
        if self.reports and not self.exhausted:
            self.loss = float(self.queryable.privacy_loss(self.d_in))
        return self.loss if self.reports else None


class Tumult:
    """A `PrivacyAccountant` of Tumult Core.

    Args:
        accountant: What `PrivacyAccountant.launch` returned for a measurement and the dataset; a number must have the
            carrier type of the domain, such as `numpy.int64`.
        queries: Measurements by name.
    """

    def __init__(self, accountant: Any, queries: Mapping[str, Any]) -> None:
        self.accountant, self.measurements, self.queries = accountant, queries, tuple(queries)
        self.budget = accountant.privacy_budget

    def ask(self, query: str) -> Any:
        exception = import_module("tmlt.core.measures").InsufficientBudgetError
        try:
            return self.accountant.measure(self.measurements[query])
        except exception as error:
            raise Refused(str(error)) from None

    @property
    def spent(self) -> float | None:
        """The part of the budget that is gone."""
        if type(self.accountant.output_measure).__name__ != "PureDP":
            return None
        return float((self.budget - self.accountant.privacy_budget).to_float(round_up=True))


class Smartnoise:
    """A private reader of smartnoise-sql, whose odometer reports, but never refuses.

    Args:
        reader: What `snsql.from_df` or `snsql.from_connection` returned.
        queries: Texts in SQL.
        budget: The epsilon above which queries are refused here; by default, the library goes on for ever.
    """

    def __init__(self, reader: Any, queries: Sequence[str], budget: float = math.inf) -> None:
        self.reader, self.queries, self.budget = reader, tuple(queries), budget
        self.costs: dict[str, float] = {}

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        if math.isfinite(self.budget) and query not in self.costs:
            self.costs[query] = self.reader.get_privacy_cost(query)[0]
        spent = self.reader.odometer.spent[0]
        if spent + self.costs.get(query, 0.0) > self.budget:
            raise Refused(f"the query costs {self.costs[query]:g}, and {spent:g} of {self.budget:g} are spent")
        return [tuple(row) for row in self.reader.execute(query)[1:]]

    @property
    def spent(self) -> float | None:
        """The epsilon of the odometer, unless it belongs to a delta above the 1e-15 that stand for 0."""
        epsilon, delta = self.reader.odometer.spent
        return float(epsilon) if delta <= 1e-14 else None


class Diffprivlib:
    """Tools or models of diffprivlib that share a budget accountant.

    Args:
        dataset: The dataset, which the queries get as an array.
        accountant: A `BudgetAccountant`.
        queries: Functions by name, such as `functools.partial(tools.mean, epsilon=0.5, bounds=(0, 1))`; they are
            called with an array, and with the accountant and a random state by keyword.
        rng: The generator of the session.
    """

    def __init__(
        self, dataset: Dataset, accountant: Any, queries: Mapping[str, Callable[..., Any]], rng: np.random.Generator
    ) -> None:
        self.array, self.accountant, self.tools, self.rng = np.asarray(dataset), accountant, queries, rng
        self.queries = tuple(queries)

    def ask(self, query: str) -> Any:
        exception = import_module("diffprivlib.utils").BudgetError
        state = int(self.rng.integers(2**31))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.tools[query](self.array, accountant=self.accountant, random_state=state)
        except exception as error:
            raise Refused(str(error)) from None

    @property
    def spent(self) -> float | None:
        """The total epsilon of the accountant if its total delta is 0."""
        epsilon, delta = self.accountant.total()
        return float(epsilon) if delta == 0 else None
