"""The observed trade-off curve of given scores."""

from __future__ import annotations

import numpy as np

from dpaudit.numerics.arrays import Array

_POINTS = 400  # maximum number of thresholds of the curve in a result


def observed_curve(scores0: Array, scores1: Array) -> tuple[Array, Array]:
    """Return both errors of the attack "d1 if the score is above t", from alpha = 1 to 0, at a few hundred points."""
    out, into = np.sort(scores0), np.sort(scores1)
    sides = [side for side in (out, into) if len(side)]
    cuts = [side[np.linspace(0, len(side) - 1, _POINTS // 2).astype(int)] for side in sides]
    at = np.unique(np.concatenate(cuts))
    alpha = np.append(1.0, 1 - np.searchsorted(out, at, side="right") / max(len(out), 1))
    beta = np.append(0.0, np.searchsorted(into, at, side="right") / max(len(into), 1))
    alpha[-1], beta[-1] = 0.0, 1.0
    return alpha, beta
