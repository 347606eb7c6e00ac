"""The figures of docs/noise.md."""

from __future__ import annotations

import math

import numpy as np

from dpaudit import GaussianDP
from drawing.canvas import Canvas, Plot


def sensitivity() -> str:
    """Draw the answers within L1 and within L2 distance 1 of the true answer, in the plane."""
    plot = Plot(Canvas(420, 380), (20, 20, 360, 360), (-1.25, 1.25), (-1.25, 1.25))
    turn = np.linspace(0, 2 * math.pi, 121)
    plot.line(np.cos(turn), np.sin(turn), "attack", width=2.2)
    plot.line((1, 0, -1, 0, 1), (0, 1, 0, -1, 0), "witness", width=2.2)
    plot.line((-1.2, 1.2), (0, 0), "axis", width=1)
    plot.line((0, 0), (-1.2, 1.2), "axis", width=1)
    plot.dot(0, 0, "label", radius=4)
    half, root = 0.5, math.sqrt(0.5)
    plot.line((0, root), (0, root), "label", width=1.4, dashes="5 4")
    plot.dot(half, half, "witness")
    plot.dot(root, root, "attack")
    plot.words(root + 0.06, root + 0.02, "L2 distance 1", "attack")
    plot.words(half + 0.09, half - 0.09, "L1 distance 1", "witness")
    plot.words(0.05, -0.12, "true answer", style="small")
    return plot.canvas.svg("The answers within L1 distance 1 are a square, those within L2 distance 1 a circle")


def laplace_loss() -> str:
    """Draw the densities of Laplace noise around 0 and 1, and above them the loss of each output."""
    plot = Plot(Canvas(480, 380), (64, 16, 464, 322), (-3, 4), (-1.3, 1.3))
    plot.axes("output", "privacy loss in units of ε", range(-3, 5), (-1, 0, 1))
    x = np.linspace(-3, 4, 141)
    for at, color, dashes in ((0, "attack", ""), (1, "witness", "7 4")):
        plot.line(x, np.exp(-np.abs(x - at)) / 2 - 1.25, color, dashes=dashes)
    plot.line((-3, 0, 1, 4), (-1, -1, 1, 1), "claim", width=2.6)
    plot.words(-2.9, -0.86, "loss −ε", "claim")
    plot.words(2.4, 1.1, "loss +ε", "claim")
    plot.words(0.62, 0.06, "slope 2/b", "claim")
    plot.words(-0.35, -0.62, "without", "attack", anchor="end")
    plot.words(1.35, -0.62, "with the record", "witness")
    return plot.canvas.svg("The privacy loss of Laplace noise is a ramp between -epsilon and epsilon")


def three_deltas() -> str:
    """Draw sigma by three formulas for (1, 1e-5), and the delta that each really gives."""
    plot = Plot(Canvas(520, 260), (70, 20, 500, 190), (3.5, 5.3), (-8.4, -4.6))
    plot.axes("standard deviation σ of the noise, for sensitivity 1", "true δ at ε = 1", (3.5, 4, 4.5, 5), ())
    for power in (-8, -7, -6, -5):
        _, y = plot.at(3.5, power)
        plot.canvas.line([(70, y), (500, y)], "grid", width=1)
        plot.canvas.words(
            (62, y + 4.5), f"10{str(power).translate(str.maketrans('-5678', '⁻⁵⁶⁷⁸'))}", anchor="end", style="small"
        )
    sigma = np.linspace(3.5, 5.3, 73)
    plot.line(sigma, [math.log10(GaussianDP(1 / s).delta(1)) for s in sigma], "claim", width=2)
    for at, name, color in (
        (3.731, "exact 3.73", "third"),
        (4.379, "tail 4.38", "attack"),
        (4.845, "textbook 4.84", "witness"),
    ):
        height = math.log10(GaussianDP(1 / at).delta(1))
        plot.line((at, at), (-8.4, height), color, width=2.2)
        plot.dot(at, height, color)
        plot.words(at + 0.05, height + 0.15, name, color, style="bold")
    return plot.canvas.svg(
        "The noise that three formulas ask for at epsilon 1 and delta 1e-5, and the delta that each gives"
    )
