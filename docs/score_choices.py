"""Draws docs/score-choices.svg: what each choice of `independence` certifies for the same scores.

    python docs/score_choices.py

The scores are those of the page: N(0, 1), or N(mu, 1) for included canaries.  The picture shows the median bound on mu
of 25 sets of 1,000 scores at 95 %, for several mu.  Black lines and text are drawn in grey that can be read on white
and on black; nothing is filled behind them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("svg")
from matplotlib import pyplot as plt

from dpaudit.engine.score_guesses import Independence, count_guesses

INK = "#7f7f7f"  # contrast of about 4 to 1 with white, and 5 to 1 with black
CHOICES: tuple[tuple[Independence, str, str], ...] = (
    ("runs", "#0093d4", '"runs": each score from a run of its own'),
    ("canaries", "#d98200", '"canaries": one run, assumed independent'),
    (None, "#c2609b", "None: one run, nothing assumed"),
)
SHIFTS = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
SCORES, SETS, CONFIDENCE = 1000, 25, 0.95


def median_bound(shift: float, independence: Independence) -> float:
    """Return the bound for the median number of right guesses; a bound rises with this number."""
    found = []
    for seed in range(SETS):
        rng = np.random.default_rng([seed, round(100 * shift)])
        included = rng.permutation(SCORES) < SCORES // 2 + 20  # as coins may fall
        scores = rng.normal(shift * included)
        found.append(count_guesses(scores[~included], scores[included], independence, None, rng)[0])
    evidence = sorted(found, key=lambda one: one.right)[SETS // 2]
    return evidence.mu_lower(confidence=CONFIDENCE)


def main() -> None:
    """Compute the bounds and draw them."""
    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "score choices", "svg.fonttype": "none"})
    figure, axes = plt.subplots(figsize=(6.2, 3.6))
    axes.plot([0, 3.1], [0, 3.1], color=INK, lw=1, ls=":")
    axes.annotate("the truth", (2.2, 2.2), (2.15, 2.75), color=INK, arrowprops={"arrowstyle": "-", "color": INK})
    for independence, colour, words in CHOICES:
        bounds = [median_bound(shift, independence) for shift in SHIFTS]
        axes.plot(SHIFTS, bounds, color=colour, marker="o", ms=4, lw=1.8, label=words)
    axes.set(xlim=(0, 3.1), ylim=(0, 3.1), xlabel="mu of the mechanism", ylabel="certified: mu is at least")
    axes.legend(frameon=False, labelcolor=INK, loc="upper left")
    _plain(axes)
    figure.tight_layout()
    figure.savefig(Path(__file__).parent / "score-choices.svg", transparent=True, metadata={"Date": None})


def _plain(axes: Any) -> None:
    """Draw the frame in ink; leave out its upper and right sides."""
    axes.tick_params(colors=INK)
    for name, spine in axes.spines.items():
        spine.set_color(INK)
        spine.set_visible(name in ("left", "bottom"))
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)


if __name__ == "__main__":
    main()
