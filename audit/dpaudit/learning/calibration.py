"""Calibrates the scores of an attack, which converts them to estimates of the log-likelihood ratio."""

from __future__ import annotations

from functools import partial

import numpy as np

from dpaudit.learning.attack import Attack, Scorer
from dpaudit.learning.foreign import fit
from dpaudit.numerics.arrays import Array
from dpaudit.numerics.folds import out_of_fold
from dpaudit.numerics.logistic import fit_logistic, linear
from dpaudit.outputs import View


def calibrated(attack: Attack, scorer: Scorer, seen0: View, seen1: View, rng: np.random.Generator) -> Scorer:
    """Calibrate a scorer by a logistic curve (Platt 1999) that is fitted to out-of-fold scores from three folds.

    The calibrated score of an output depends on its original score only.  A score that is NaN remains NaN.

    Returns:
        The calibrated scorer.
    """
    held = np.concatenate(out_of_fold(lambda a, b: partial(_numbers, fit(attack, a, b, rng)), seen0, seen1))
    finite = held[np.isfinite(held)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    centre, spread = (float(np.median(finite)), float(np.std(finite)) or 1.0) if len(finite) else (0.0, 1.0)

    def design(scores: Array) -> Array:
        """Return an array (n, 3): the standardised scores, the indicators of +inf, and the indicators of -inf."""
        inside = (np.clip(scores, low, high) - centre) / spread
        return np.column_stack([inside, scores == np.inf, scores == -np.inf])

    slopes, intercept = fit_logistic(design(held), len(seen0))

    def scores(outputs: View) -> Array:
        found = np.array(scorer(outputs), dtype=np.float64)
        if found.shape != (len(outputs),):
            return found  # the caller reports scores of a wrong shape
        known = ~np.isnan(found)
        found[known] = linear(design(found[known]), slopes) + intercept
        return found

    return scores


def _numbers(scorer: Scorer, view: View) -> Array:
    """Return the scores of held-out outputs.  Raise ValueError if their shape is not (n,) or a score is NaN."""
    if not len(view):
        return np.zeros(0)
    found = np.asarray(scorer(view), dtype=np.float64)
    if found.shape != (len(view),):
        raise ValueError(f"scores must have shape ({len(view)},), got {found.shape}")
    if np.isnan(found).any():
        raise ValueError("scores must be numbers, got nan")
    return found
