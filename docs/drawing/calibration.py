"""The figure of the calibration in docs/guarantees.md, from benchmarks/calibration.json."""

from __future__ import annotations

import json
from pathlib import Path

from scipy.stats import binom

from drawing.canvas import Canvas, Plot

ROWS = Path(__file__).parents[2] / "benchmarks" / "calibration.json"
PARTS = ("true claims", "second stage")


def calibration() -> str:
    """Draw the share of audits that refuted a true claim at 95 % confidence, and the limit of chance."""
    rows = [row for row in json.loads(ROWS.read_text(encoding="utf-8"))["rows"] if row["part"] in PARTS]
    height = 20 * len(rows)
    plot = Plot(Canvas(720, height + 80), (400, 16, 700, height + 16), (0, 0.3), (len(rows), 0))
    plot.axes("share of audits that refuted the true claim", "", (0, 0.05, 0.1, 0.2, 0.3), ())
    plot.line((0.05, 0.05), (0, len(rows)), "claim", width=1.4, dashes="5 4")
    for place, row in enumerate(rows):
        audits, limit = row["audits"], row["limits"]["refuted"]["rate"]
        beyond = binom.isf(0.00135, audits, limit) / audits
        plot.line((beyond, beyond), (place + 0.2, place + 0.8), "chance", width=2)
        plot.dot(row["counts"]["refuted"] / audits, place + 0.5, "attack", radius=4.5)
        name = f"{row['cells'][0]}, {row['cells'][1]}"
        plot.canvas.words(
            (390, plot.at(0, place + 0.72)[1]),
            name if len(name) < 60 else f"{name[:56]} …",
            anchor="end",
            style="small",
        )
    return plot.canvas.svg("Shares of audits that refuted a true claim, beside the limit of chance")
