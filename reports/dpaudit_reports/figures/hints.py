"""Values along the attack's curve, which a screen shows when the pointer is over the curve."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.result.model import AuditResult
from dpaudit.text.rounding import lower
from dpaudit_reports.blocks import Hint
from dpaudit_reports.figures.canvas import PANEL, place
from dpaudit_reports.figures.residual import Scale, excess, height_of
from dpaudit_reports.figures.tradeoff import DETAIL_HEIGHT, HEIGHT, fine, observed
from dpaudit_reports.numbers import number

_MOST = 40  # maximum number of places along a curve


def tradeoff_hints(result: AuditResult, floor: float | None = None) -> tuple[Hint, ...]:
    """Return values along the attack's curve on the trade-off plot."""
    points = _points(result)
    shown = points if floor is None else 1 - np.log(np.maximum(points, floor)) / math.log(floor)
    return _hints(result, points, shown, HEIGHT if floor is None else DETAIL_HEIGHT)


def residual_hints(result: AuditResult, scale: Scale, width: float = PANEL) -> tuple[Hint, ...]:
    """Return values along the curve on the plot of the residual."""
    points = _points(result)
    heights = (excess(result, *points.T) - scale[0]) / (scale[1] - scale[0])
    return _hints(result, points, np.column_stack([points[:, 0], heights]), height_of(width), width)


def _points(result: AuditResult) -> Array:
    """Return the curve, one row each: type I and type II error; no rows if the errors bound nothing."""
    points = observed(result)
    return fine(points)[:, :2] if len(points) and result.bounds_valid else np.empty((0, 2))


def _hints(result: AuditResult, points: Array, shown: Array, height: float, width: float = PANEL) -> tuple[Hint, ...]:
    """Return hints at about equal distances along the drawn curve."""
    if not len(points):
        return ()
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(shown, axis=0).T))])
    chosen = np.unique(np.searchsorted(length, np.linspace(0, length[-1], _MOST)).clip(0, len(points) - 1))
    inside = [i for i in chosen if np.all((shown[i] >= 0) & (shown[i] <= 1))]
    return tuple(Hint(*place(*shown[i], height=height, width=width), _words(result, *points[i])) for i in inside)


def _words(result: AuditResult, alpha: float, beta: float) -> str:
    claimed = float(result.claim.beta(alpha))
    return f"attack: α {number(alpha, 3)}, β {number(beta, 3)}; the claim allows β ≥ {lower(claimed, 3)}"
