"""Queries of smartnoise-sql on generated tables of users with many rows, and on Fisher's table of 150 irises."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from dpaudit import Pair
from dpaudit.libraries import Subject, smartnoise_sql

METADATA: dict[str, Any] = {
    "": {
        "shop": {
            "sales": {
                "max_ids": 2,
                "censor_dims": False,
                "user": {"type": "int", "private_id": True},
                "region": {"type": "string"},
                "amount": {"type": "float", "lower": 0.0, "upper": 10.0},
            }
        }
    }
}
"""A table in which each user may contribute two rows to each group."""

QUERIES = (
    "SELECT COUNT(*) AS n FROM shop.sales",
    "SELECT COUNT(DISTINCT user) AS n FROM shop.sales",
    "SELECT SUM(amount) AS total FROM shop.sales",
    "SELECT AVG(amount) AS average FROM shop.sales",
    "SELECT region, COUNT(*) AS n FROM shop.sales GROUP BY region",
    "SELECT region, SUM(amount) AS total FROM shop.sales GROUP BY region",
)
GROUPED = "SELECT region, COUNT(*) AS n FROM shop.sales GROUP BY region"

IRISES: dict[str, Any] = {
    "": {
        "flowers": {
            "iris": {
                "row_privacy": True,
                "censor_dims": False,
                "petal": {"type": "float", "lower": 0.0, "upper": 7.0},
                "sepal": {"type": "float", "lower": 4.0, "upper": 8.0},
                "species": {"type": "string"},
            }
        }
    }
}
"""Each flower is a row, and the species are public."""

OF_IRISES = (
    "SELECT COUNT(*) AS n FROM flowers.iris",
    "SELECT COUNT(*) AS n FROM flowers.iris WHERE petal > 5.0",
    "SELECT SUM(petal) AS total FROM flowers.iris",
    "SELECT AVG(petal) AS average FROM flowers.iris",
    "SELECT VAR(sepal) AS spread FROM flowers.iris",
    "SELECT species, COUNT(*) AS n FROM flowers.iris GROUP BY species",
    "SELECT species, AVG(petal) AS average FROM flowers.iris GROUP BY species ORDER BY species",
)


def irises() -> Pair:
    """Return the table without the flower that has the longest petal, and the complete table.

    Raises:
        ImportError: If scikit-learn, which contains the table, is not installed.
    """
    from sklearn.datasets import load_iris

    table = load_iris()
    names = [str(table.target_names[number]) for number in table.target]
    rows = sorted(zip(table.data[:, 2].tolist(), table.data[:, 0].tolist(), names, strict=True))
    whole = {name: [row[place] for row in rows] for place, name in enumerate(("petal", "sepal", "species"))}
    rest = {name: values[:-1] for name, values in whole.items()}
    return Pair(rest, whole, "add_remove", "without and with the longest petal")


def cases() -> dict[str, Callable[[], Subject]]:
    """Return a function that makes the subject, for each query.

    Raises:
        ImportError: If smartnoise-sql or scikit-learn is not installed.
    """
    import sklearn  # noqa: F401
    import snsql  # noqa: F401

    found: dict[str, Callable[[], Subject]] = {
        query: functools.partial(smartnoise_sql.subject, query, METADATA) for query in QUERIES
    }
    censored = copy.deepcopy(METADATA)
    censored[""]["shop"]["sales"]["censor_dims"] = True
    found[f"{GROUPED}, rare groups censored"] = functools.partial(smartnoise_sql.subject, GROUPED, censored)
    for query in OF_IRISES:
        found[query] = functools.partial(_on_irises, query)
    return found


def _on_irises(query: str) -> Subject:
    return smartnoise_sql.subject(query, IRISES, pairs=[irises()])
