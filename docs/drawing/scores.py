"""The figure of the page on scores."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import ndtri

from dpaudit import audit_scores
from drawing.canvas import Canvas, Plot

SHIFTS = (0.5, 1.0, 2.0, 2.5, 3.0)
INCLUDED, OTHERS, CONFIDENCE = 520, 480, 0.95  # a possible outcome of 1,000 fair coins
LINES: tuple[tuple[Literal["canaries"] | None, str, str, str], ...] = (
    ("canaries", "attack", "", "independent scores"),
    (None, "witness", "9 4", "random inclusion only"),
)


def score_choices() -> str:
    """Draw the bounds of mu from the quantiles of N(mu, 1), for included canaries, and of N(0, 1), for the others."""
    plot = Plot(Canvas(480, 400), (64, 16, 464, 342), (0, 3.1), (0, 4.2))
    plot.axes("μ of the mechanism", "certified: μ is at least", range(4), range(4))
    plot.line((0, 3.1), (0, 3.1), "chance", width=1.6, dashes="1 6")
    plot.words(2.02, 2.22, "the truth", anchor="end")
    for independence, color, dashes, _ in LINES:
        plot.line(SHIFTS, [bound(shift, independence) for shift in SHIFTS], color, width=2.4, dashes=dashes)
    plot.key(0.12, 4.05, [(color, dashes, words) for _, color, dashes, words in LINES])
    return plot.canvas.svg("What the same 1,000 scores certify under two assumptions")


def bound(shift: float, independence: Literal["canaries"] | None) -> float:
    """Return the bound of mu from typical scores."""
    others = ndtri((np.arange(OTHERS) + 0.5) / OTHERS)
    included = shift + ndtri((np.arange(INCLUDED) + 0.5) / INCLUDED)
    result = audit_scores(others, included, independence=independence, confidence=CONFIDENCE, seed=1)
    return result.mu_lower
