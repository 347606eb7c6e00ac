"""The figure of the page on audits of training, with measured data."""

from __future__ import annotations

import math

from drawing.canvas import Canvas, Plot

Row = tuple[int, float, float, float]  # models; median, smallest and largest certified epsilon of several seeds

# The output of `python benchmarks/training.py --only "last iterate"`; benchmarks/HISTORY.md has the same numbers.
CERTIFIED: dict[float, tuple[Row, ...]] = {
    10.0: ((100, 7.43, 5.83, 9.41), (200, 7.61, 6.40, 10.10), (500, 7.78, 7.29, 9.26), (1000, 8.55, 8.20, 8.64)),
    4.0: ((100, 2.26, 0.89, 3.87), (200, 2.71, 1.98, 3.79), (500, 2.55, 2.35, 3.16), (1000, 3.15, 2.79, 3.96)),
}
PUBLISHED = ((200, 7.21), (200, 6.95))  # Annamalai & De Cristofaro 2024: MNIST and CIFAR-10, claimed epsilon 10
_LOOKS = {10.0: ("attack", 2.2), 4.0: ("third", 2.2)}


def models_of_a_training() -> str:
    """Draw the certified epsilon against the number of models, with the claimed epsilon as a dashed line."""
    plot = Plot(Canvas(480, 400), (64, 16, 464, 342), (1.9, 3.1), (0, 11))
    plot.axes("models (logarithmic scale)", "certified: ε is at least", (), range(0, 11, 2))
    _, top, _, bottom = plot.box
    for models, *_ in CERTIFIED[10.0]:
        x, _ = plot.at(math.log10(models), 0)
        plot.canvas.line([(x, top), (x, bottom)], "grid", width=1)
        plot.canvas.words((x, bottom + 19), f"{models:,}", anchor="middle", style="small")
    for claimed, rows in CERTIFIED.items():
        color, width = _LOOKS[claimed]
        plot.line((1.9, 3.1), (claimed, claimed), "claim", width=1.8, dashes="1 6")
        plot.words(3.09, claimed + 0.17, f"claimed: {claimed:g}", "claim", anchor="end", style="small")
        places = [math.log10(models) for models, *_ in rows]
        for x, (_, _, low, high) in zip(places, rows, strict=True):
            plot.line((x, x), (low, high), color, width=1.2)
        plot.line(places, [median for _, median, _, _ in rows], color, width=width)
        for x, (_, median, _, _) in zip(places, rows, strict=True):
            plot.dot(x, median, color)
    for models, epsilon in PUBLISHED:
        plot.dot(math.log10(models), epsilon, "witness", radius=4)
    plot.words(math.log10(PUBLISHED[0][0]) + 0.03, 6.6, "published", "witness", style="small")
    return plot.canvas.svg("The certified epsilon of DP-GD from the last weights, by the number of trained models")
