"""Any ranking as an estimate of the log-likelihood ratio."""

from __future__ import annotations

from functools import partial

import numpy as np

from dpaudit.learning.attack import Attack, Scorer
from dpaudit.learning.foreign import fit
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.folds import out_of_fold
from dpaudit.numerics.logistic import fit_logistic
from dpaudit.outputs import View


def calibrated(attack: Attack, scorer: Scorer, seen0: View, seen1: View, rng: np.random.Generator) -> Scorer:
    """The scorer followed by a logistic curve, Platt 1999, fitted to scores of outputs left out in three folds.

    Each output is calibrated by itself: a score that is NaN stays NaN, and changes no other one.

    Raises:
        ValueError: if the attack's scores of outputs that were left out are no numbers, or not one for each.
    """
    held = np.concatenate(out_of_fold(lambda a, b: partial(_numbers, fit(attack, a, b, rng)), seen0, seen1))
    finite = held[np.isfinite(held)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    centre, spread = (float(np.median(finite)), float(np.std(finite)) or 1.0) if len(finite) else (0.0, 1.0)

    def design(scores: Array) -> Array:
        """The score on a common scale, and whether it was beyond all that was ever finite."""
        inside = (np.clip(scores, low, high) - centre) / spread
        return np.column_stack([inside, scores == np.inf, scores == -np.inf])

    slopes, intercept = fit_logistic(design(held), len(seen0))

    def scores(outputs: View) -> Array:
        found = np.array(scorer(outputs), dtype=np.float64)
        if found.shape != (len(outputs),):
            return found  # reported by the caller
        known = ~np.isnan(found)
        found[known] = design(found[known]) @ slopes + intercept
        return found

    return scores


def _numbers(scorer: Scorer, view: View) -> Array:
    """Scores (n,) of outputs that were left out."""
    if not len(view):
        return np.zeros(0)
    found = np.asarray(scorer(view), dtype=np.float64)
    if found.shape != (len(view),):
        raise ValueError(f"the scores have the shape {found.shape} instead of ({len(view)},)")
    if np.isnan(found).any():
        raise ValueError("a score is NaN")
    return found
