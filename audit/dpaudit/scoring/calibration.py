"""Any ranking as an estimate of the log-likelihood ratio."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.claims import Array
from dpaudit.registry import Attack, Scorer
from dpaudit.regression import ridge

_FOLDS = 3


def rows_of(view: Any, chosen: npt.NDArray[np.bool_]) -> Any:
    """Those of n outputs, an array or a list, that a mask (n,) names."""
    return view[chosen] if isinstance(view, np.ndarray) else [view[i] for i in np.flatnonzero(chosen)]


def calibrated(attack: Attack, scorer: Scorer, seen0: Any, seen1: Any, rng: np.random.Generator) -> Scorer:
    """The scorer followed by a logistic curve, Platt 1999, fitted to scores of outputs left out in three folds."""
    held0, held1 = np.empty(len(seen0)), np.empty(len(seen1))
    for fold in range(_FOLDS):
        out0, out1 = (np.arange(len(seen)) % _FOLDS == fold for seen in (seen0, seen1))
        part = attack.fit(rows_of(seen0, ~out0), rows_of(seen1, ~out1), rng)
        held0[out0], held1[out1] = part(rows_of(seen0, out0)), part(rows_of(seen1, out1))
    held = np.concatenate([held0, held1])
    finite = held[np.isfinite(held)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    centre, spread = (float(np.median(finite)), float(np.std(finite)) or 1.0) if len(finite) else (0.0, 1.0)

    def design(scores: Array) -> Array:
        """The score on a common scale, and whether it was beyond all that was ever finite."""
        inside = (np.clip(scores, low, high) - centre) / spread
        return np.column_stack([inside, scores == np.inf, scores == -np.inf])

    slopes, intercept = ridge(design(held), len(held0))

    def scores(outputs: Any) -> Array:
        found = np.asarray(scorer(outputs), dtype=np.float64)
        if found.shape != (len(outputs),) or np.isnan(found).any():
            return found  # reported by the caller
        return np.asarray(design(found) @ slopes + intercept)

    return scores
