"""Labels on the curves of the trade-off plot, in place of a legend.

The labels stand above the diagonal of blind guessing, because nothing else is drawn there.  Thin parallel lines connect
the labels with their curves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit.result.model import AuditResult
from dpaudit_reports.figures.palette import ATTACK, CHANCE, CLAIM, WITNESS, WITNESS_WORD

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CLAIM_AT, _ATTACK_AT, _VOID_AT = (0.6, 0.85), (0.72, 0.7), (0.52, 0.62)  # left ends of the labels
_LARGE = 0.24  # minimum alpha at which the claim's curve meets beta = alpha, so that the grey area has room for a word
_SIZE = 8.5
_GUESSING = 0.3, 0.5  # where the word "guessing" stands along the diagonal: half the difference of alpha and beta
_FAR = 0.12  # minimum height of the attack's curve above the diagonal at which the word is omitted


def label_curves(ax: Axes, result: AuditResult, curve: Array, point: str) -> None:
    """Label the claim, the attack's curve, the grey area, and the diamond if `point` names one."""
    alpha = np.linspace(0.0, 1.0, 400)
    beta = np.asarray(result.claim.beta(alpha))
    claim = np.column_stack([alpha, beta])
    if not result.measurement:
        _label(ax, "claim", _CLAIM_AT, claim, CLAIM)
    if len(curve):
        if result.bounds_valid:
            _label(ax, "attack", _ATTACK_AT, curve, ATTACK)
        else:
            _label(ax, "observed, not valid", _VOID_AT, curve, CHANCE)
    above = _above_guessing(curve)
    if above < _FAR:
        place = 0.9 + above, 0.11 + above
        ax.text(*place, "guessing", rotation=-40, fontsize=8, color=CHANCE, ha="center", va="bottom")
    reach = float(alpha[np.argmin(np.abs(beta - alpha))])
    inside = len(curve) and bool(np.any((curve[:, 0] < 0.8 * reach) & (curve[:, 1] < 0.8 * reach)))
    if reach > _LARGE and not inside:
        ax.text(max(0.13, 0.45 * reach), 0.42 * reach, "forbidden", fontsize=8, ha="center", va="center")
    found = result.witness
    if point and found is not None and math.isfinite(found.alpha) and math.isfinite(found.beta):
        high = found.beta >= found.alpha
        place, side = ((0.3, 0.94), "left") if high else ((0.99, 0.46), "right")
        at = found.alpha, found.beta
        ax.annotate(
            point, at, place, color=WITNESS_WORD, va="center", ha=side, fontsize=_SIZE, arrowprops=_line(WITNESS)
        )


def _above_guessing(curve: Array) -> float:
    """Return how far the attack's curve lies above the diagonal at the word "guessing", along each axis."""
    if not len(curve):
        return 0.0
    along, above = (curve[:, 0] - curve[:, 1]) / 2, (curve[:, 0] + curve[:, 1] - 1) / 2
    order = np.argsort(along, kind="stable")
    near = np.interp(np.linspace(*_GUESSING, 50), along[order], above[order], left=0, right=0)
    return max(0.0, float(near.max()))


def _label(ax: Axes, words: str, place: tuple[float, float], curve: Array, color: str) -> None:
    """Write words at a place, with a line that runs down to the left at 45 degrees and ends at the curve."""
    offset = place[1] - place[0]
    order = np.argsort(curve[:, 1] - curve[:, 0], kind="stable")
    gap = (curve[:, 1] - curve[:, 0])[order]
    at = float(np.interp(offset, gap, curve[order, 0])), float(np.interp(offset, gap, curve[order, 1]))
    ax.annotate(words, at, xytext=place, color=color, va="center", fontsize=_SIZE, arrowprops=_line(color))


def _line(color: str) -> dict[str, str | float]:
    return {"arrowstyle": "-", "color": color, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 2}
