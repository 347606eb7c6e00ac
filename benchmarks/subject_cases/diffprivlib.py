"""Mechanisms, tools and models of diffprivlib."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from dpaudit.libraries import Subject, diffprivlib

HIERARCHY = [["a", "b"], ["c", "d"]]
UTILITIES = [["a", "b", 1], ["a", "c", 2], ["b", "c", 2]]


def cases() -> dict[str, Callable[[], Subject]]:
    """Return a function that makes the subject, for each object.

    Raises:
        ImportError: If diffprivlib is not installed.
    """
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
