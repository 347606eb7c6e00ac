"""Gradient-boosted trees on the outputs and on derived columns, for leaks that involve several columns jointly.

The algorithm is that of Friedman 2001 in scikit-learn's histogram version, which has a separate bin for NaN.  If times
are observed, one column is the time: samplers of geometric noise reveal the answer by time and output together (Jin,
McMurtry, Rubinstein & Ohrimenko 2022, "Are we there yet?  Timing and floating-point attacks on differential privacy
systems", section V).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from dpaudit.numerics import FOLDS, Array, fit_logistic, in_fold
from dpaudit_attacks.ratios import TIMED, varied_features


@dataclass(frozen=True, slots=True)
class Trees:
    """Sums of small trees, calibrated on a held-out third of the outputs."""

    name: ClassVar[str] = "trees"
    sees: ClassVar[str] = "derived"
    calibrated: ClassVar[bool] = True
    from_trials: ClassVar[int] = 400
    most_rows: ClassVar[int] = 20_000

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        # with more columns, a fit takes minutes
        return outputs0.shape[1] <= 2_000 and varied_features(outputs0, outputs1)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        return boosted(outputs0, outputs1, rng)

    def fit_second_stage(
        self, outputs0: Array, outputs1: Array, rng: np.random.Generator
    ) -> Callable[[Array], Array] | None:
        """Return an uncalibrated scorer with smaller leaves, fitted to all rows; None if no column holds a number."""
        return grown(outputs0, outputs1, rng, least_share=0.001)


def boosted(outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
    """Return a scorer by trees that are fitted to two thirds of the rows and calibrated on the other rows."""
    out0, out1 = in_fold(len(outputs0), FOLDS - 1), in_fold(len(outputs1), FOLDS - 1)
    with _one_thread():
        raw = grown(outputs0[~out0], outputs1[~out1], rng, least_share=0.01)
        if raw is None:
            return lambda outputs: np.zeros(len(outputs))
        held = np.concatenate([raw(outputs0[out0]), raw(outputs1[out1])])
    slopes, intercept = fit_logistic(held[:, None], int(out0.sum()))
    return lambda outputs: raw(outputs) * slopes[0] + intercept


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit scikit-learn to one thread if it is not loaded yet; otherwise the audit has already limited its threads."""
    if "sklearn.ensemble" in sys.modules:
        yield
        return
    importlib.import_module("sklearn.ensemble")
    with threadpool_limits(1):
        yield


def grown(
    outputs0: Array, outputs1: Array, rng: np.random.Generator, *, least_share: float
) -> Callable[[Array], Array] | None:
    from sklearn import config_context
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows = np.concatenate([outputs0, outputs1])
    known = ~np.all(np.isnan(rows), axis=0)  # scikit-learn cannot bin a column without numbers
    if not known.any():
        return None
    rows = np.clip(rows[:, known], -1e300, 1e300)
    model = HistGradientBoostingClassifier(
        max_iter=40,
        max_leaf_nodes=8,
        min_samples_leaf=max(5, int(least_share * len(rows))),
        l2_regularization=5.0,
        early_stopping=False,
        random_state=int(rng.integers(2**31)),
    )
    with config_context(assume_finite=True, skip_parameter_validation=True):
        model.fit(rows, np.repeat([0, 1], [len(outputs0), len(outputs1)]))

    def raw(outputs: Array) -> Array:
        if not len(outputs):
            return np.zeros(0)
        with config_context(assume_finite=True, skip_parameter_validation=True):
            return np.asarray(model.decision_function(np.clip(outputs[:, known], -1e300, 1e300)))

    return raw


@dataclass(frozen=True, slots=True)
class TimeAndOutput:
    """Boosted trees on the running time and the outputs, for audits that observe running times."""

    name: ClassVar[str] = "time_and_output"
    sees: ClassVar[str] = "timed"
    calibrated: ClassVar[bool] = True
    from_trials: ClassVar[int] = 50
    most_rows: ClassVar[int] = 20_000

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        rows = np.concatenate([outputs0, outputs1])
        return bool(np.isfinite(rows[:, 0]).any() and np.any(rows[:, 1:] != rows[0, 1:]))

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        scorer = boosted(outputs0[:, TIMED], outputs1[:, TIMED], rng)
        return lambda outputs: scorer(outputs[:, TIMED])
