"""Subjects of dp-accounting, diffprivlib, numpy, PyDP, smartnoise-sql and Tumult Core.

Each function returns functions that make the subjects, and raises ImportError if its library is not installed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpaudit import Pair
from dpaudit.libraries import Subject, accounting, diffprivlib, pydp, smartnoise_sql, tumult
from dpaudit.libraries import numpy as functions


def of_accounting() -> dict[str, Callable[[], Subject]]:
    """Return a function that makes the subject, for each event."""
    import dp_accounting as da

    gaussian, laplace = da.GaussianDpEvent(2.0), da.LaplaceDpEvent(2.0)
    events = {
        "GaussianDpEvent": gaussian,
        "LaplaceDpEvent": laplace,
        "ComposedDpEvent": da.ComposedDpEvent([gaussian, laplace]),
        "SelfComposedDpEvent": da.SelfComposedDpEvent(gaussian, 4),
        "PoissonSampledDpEvent": da.SelfComposedDpEvent(da.PoissonSampledDpEvent(0.5, gaussian), 4),
    }
    if hasattr(da.dp_event, "DiscreteLaplaceDpEvent"):  # dp-accounting 0.4.3 has none
        events["DiscreteLaplaceDpEvent"] = da.dp_event.DiscreteLaplaceDpEvent(0.5, 1)
    return {name: functools.partial(accounting.subject, event) for name, event in events.items()}


HIERARCHY = [["a", "b"], ["c", "d"]]
UTILITIES = [["a", "b", 1], ["a", "c", 2], ["b", "c", 2]]


def of_diffprivlib() -> dict[str, Callable[[], Subject]]:
    """Return a function that makes the subject, for each object."""
    from diffprivlib import mechanisms, models, tools

    return dict([*_mechanisms(mechanisms), *_tools(tools), *_models(models)])


Made = tuple[str, Callable[[], Subject]]


def _mechanisms(home: Any) -> Iterator[Made]:
    noise = {"epsilon": 1.0, "sensitivity": 1}
    bounded = {**noise, "lower": 0, "upper": 10}
    arguments: dict[str, dict[str, Any]] = {
        "Binary": {"epsilon": 1.0, "value0": "yes", "value1": "no"},
        "Exponential": {**noise, "utility": [0.0, 1.0, 2.0]},
        "ExponentialCategorical": {"epsilon": 1.0, "utility_list": UTILITIES},
        "ExponentialHierarchical": {"epsilon": 1.0, "hierarchy": HIERARCHY},
        "Gaussian": {**noise, "delta": 1e-5},
        "GaussianAnalytic": {**noise, "delta": 1e-5},
        "GaussianDiscrete": {**noise, "delta": 1e-5},
        "Geometric": noise,
        "GeometricFolded": bounded,
        "GeometricTruncated": bounded,
        "Laplace": noise,
        "LaplaceBoundedDomain": bounded,
        "LaplaceBoundedNoise": {**noise, "delta": 0.1},
        "LaplaceFolded": bounded,
        "LaplaceTruncated": bounded,
        "PermuteAndFlip": {**noise, "utility": [0.0, 1.0, 2.0]},
        "Snapping": bounded,
        "Staircase": noise,
        "Uniform": {"delta": 0.2, "sensitivity": 1},
    }
    for name, given in arguments.items():
        yield name, functools.partial(_made, getattr(home, name), given)


def _made(kind: Any, arguments: dict[str, Any]) -> Subject:
    return diffprivlib.subject(kind(**arguments))


def _tools(home: Any) -> Iterator[Made]:
    bounds = {"epsilon": 1.0, "bounds": (0.0, 1.0)}
    arguments: dict[str, dict[str, Any]] = {
        "count_nonzero": {"epsilon": 1.0},
        **dict.fromkeys(("mean", "sum", "var", "std", "median"), bounds),
        "quantile": {**bounds, "quant": 0.25},
        "percentile": {**bounds, "percent": 75},
        "histogram": {"epsilon": 1.0, "bins": 3, "range": (0.0, 1.0)},
        "histogram2d": {"epsilon": 1.0, "bins": 2, "range": [(0.0, 1.0), (0.0, 1.0)]},
        "histogramdd": {"epsilon": 1.0, "bins": 2, "range": [(0.0, 1.0), (0.0, 1.0)]},
    }
    for name, given in arguments.items():
        yield name, functools.partial(diffprivlib.subject, getattr(home, name), **given)


def _models(home: Any) -> Iterator[Made]:
    box = {"epsilon": 1.0, "bounds": (0.0, 1.0)}
    arguments: dict[str, dict[str, Any]] = {
        "GaussianNB": box,
        "StandardScaler": box,
        "KMeans": {**box, "n_clusters": 1},  # more clusters have no generated pairs
        "PCA": {**box, "n_components": 1, "data_norm": 2.0},
        "LogisticRegression": {"epsilon": 1.0, "data_norm": 2.0},
        "LinearRegression": {"epsilon": 1.0, "bounds_X": (0.0, 1.0), "bounds_y": (0.0, 1.0)},
    }
    for name, given in arguments.items():
        yield name, functools.partial(_made, getattr(home, name), given)


SIZE = 10


def counts(records: Any) -> Any:
    """Return the numbers of records in the two halves of [0, 1]."""
    return np.histogram(records, bins=2, range=(0.0, 1.0))[0]


def of_numpy() -> dict[str, Callable[[], Subject]]:
    """Return a function that makes the subject, for each function with a sensitivity that is known by a proof.

    Records lie in [0, 1], and one of ten records is replaced.  The sensitivity of a mean is 1 / n, and that of a sum,
    of a maximum, of a minimum and of a median is 1.  The sensitivity of a variance is (n - 1) / n^2.  A histogram
    changes by 1 in two cells, so its L1 sensitivity is 2.
    """
    n = SIZE
    stated: dict[str, tuple[Callable[..., Any], float]] = {
        "sum": (np.sum, 1.0),
        "mean": (np.mean, 1 / n),
        "var": (np.var, (n - 1) / n**2),
        "max": (np.max, 1.0),
        "min": (np.min, 1.0),
        "median": (np.median, 1.0),
        "histogram": (counts, 2.0),
    }
    found: dict[str, Callable[[], Subject]] = {
        f"{name}, Laplace noise": functools.partial(
            functions.subject, function, sensitivity=sensitivity, epsilon=1.0, bounds=(0.0, 1.0), size=n
        )
        for name, (function, sensitivity) in stated.items()
    }
    found["sum, Gaussian noise"] = functools.partial(
        functions.subject, np.sum, sensitivity=1.0, mu=1.0, bounds=(0.0, 1.0), size=n
    )
    return found


BOUNDED = ("BoundedMean", "BoundedSum", "BoundedStandardDeviation", "BoundedVariance", "Max", "Min", "Median")


def of_pydp() -> dict[str, Callable[[], Subject]]:
    """Return a function that makes the subject, for each algorithm."""
    from pydp.algorithms import laplacian

    bounds = {"epsilon": 1.0, "lower_bound": 0, "upper_bound": 10}
    arguments: dict[str, dict[str, Any]] = {
        **{name: {**bounds, "dtype": "float"} for name in BOUNDED},
        "Count": {"epsilon": 1.0, "dtype": "int"},
        "Percentile": {**bounds, "percentile": 0.75, "dtype": "float"},
    }
    return {name: functools.partial(pydp.subject, getattr(laplacian, name), **arguments[name]) for name in arguments}


SALES: dict[str, Any] = {
    "max_ids": 2,
    "censor_dims": False,
    "user": {"type": "int", "private_id": True},
    "region": {"type": "string"},
    "amount": {"type": "float", "lower": 0.0, "upper": 10.0},
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
    "row_privacy": True,
    "censor_dims": False,
    "petal": {"type": "float", "lower": 0.0, "upper": 7.0},
    "sepal": {"type": "float", "lower": 4.0, "upper": 8.0},
    "species": {"type": "string"},
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


def of_smartnoise_sql() -> dict[str, Callable[[], Subject]]:
    """Return a function that makes the subject, for each query."""
    import sklearn  # noqa: F401
    import snsql  # noqa: F401

    return {
        **{query: functools.partial(_on_sales, query, SALES) for query in QUERIES},
        f"{GROUPED}, rare groups censored": functools.partial(_on_sales, GROUPED, {**SALES, "censor_dims": True}),
        **{query: functools.partial(_on_irises, query) for query in OF_IRISES},
    }


def _on_sales(query: str, sales: dict[str, Any]) -> Subject:
    return smartnoise_sql.subject(query, {"": {"shop": {"sales": sales}}})


def _on_irises(query: str) -> Subject:
    return smartnoise_sql.subject(query, {"": {"flowers": {"iris": IRISES}}}, pairs=[irises()])


def of_tumult() -> dict[str, Callable[[], Subject]]:
    """Return a function that makes the subject, for each measurement."""
    from tmlt.core.domains.numpy_domains import NumpyFloatDomain, NumpyIntegerDomain
    from tmlt.core.domains.pandas_domains import PandasSeriesDomain
    from tmlt.core.measurements.converters import PureDPToApproxDP, PureDPToRhoZCDP
    from tmlt.core.measurements.noise_mechanisms import (
        AddDiscreteGaussianNoise,
        AddGaussianNoise,
        AddGeometricNoise,
        AddLaplaceNoise,
    )
    from tmlt.core.measurements.pandas_measurements.series import NoisyQuantile
    from tmlt.core.measures import PureDP

    numbers, median = PandasSeriesDomain(NumpyIntegerDomain()), {"quantile": 0.5, "lower": 0, "upper": 10}
    made = {
        "AddGeometricNoise": AddGeometricNoise(alpha=2),
        "AddLaplaceNoise": AddLaplaceNoise(NumpyFloatDomain(), 2),
        "AddDiscreteGaussianNoise": AddDiscreteGaussianNoise(4),
        "AddGaussianNoise": AddGaussianNoise(NumpyFloatDomain(), 4),
        "PureDPToRhoZCDP": PureDPToRhoZCDP(AddGeometricNoise(alpha=2)),
        "PureDPToApproxDP": PureDPToApproxDP(AddGeometricNoise(alpha=2)),
        "NoisyQuantile": NoisyQuantile(numbers, PureDP(), epsilon=1, **median),
    }
    return {name: functools.partial(tumult.subject, measurement) for name, measurement in made.items()}
