"""The six figures of docs/concepts.md."""

from __future__ import annotations

import math

import numpy as np

from dpaudit import ApproxDP, GaussianDP, LaplaceDP, Pair, PureDP, audit
from dpaudit.catalogue import Gaussian
from dpaudit.numerics import Array
from drawing.canvas import Canvas, Plot
from drawing.errors import draw_claim, errors, forbid

THRESHOLD = 1.0
ALPHA = 0.15865525393145707  # P(N(0, 1) > 1)


def _normal(x: Array, mean: float, deviation: float = 1.0) -> Array:
    return np.exp(-((x - mean) ** 2) / 2 / deviation**2) / deviation / math.sqrt(2 * math.pi)


def two_errors() -> str:
    """Draw both distributions of the output, a threshold, and the two errors as areas."""
    plot = Plot(Canvas(480, 340), (16, 16, 464, 282), (-3.2, 4.2), (0, 0.46))
    plot.axes("output of the mechanism", "", range(-3, 5), ())
    x = np.linspace(-3.2, 4.2, 149)
    without, with_record = _normal(x, 0), _normal(x, 1)
    right, left = x >= THRESHOLD, x <= THRESHOLD
    plot.area(x[left], 0 * x[left], with_record[left], "witness", opacity=0.28)
    plot.area(x[right], 0 * x[right], without[right], "attack", opacity=0.45)
    plot.line(x, without, "attack")
    plot.line(x, with_record, "witness", dashes="7 4")
    plot.line((THRESHOLD, THRESHOLD), (0, 0.43), "claim", width=1.6)
    plot.words(-0.95, 0.37, "without the record", "attack", anchor="end")
    plot.words(1.95, 0.37, "with the record", "witness")
    plot.words(THRESHOLD - 0.1, 0.44, "guess “without” ←", anchor="end", style="small")
    plot.words(THRESHOLD + 0.1, 0.44, "→ guess “with”", style="small")
    plot.words(1.34, 0.05, "α", style="bold", anchor="middle")
    plot.words(0.4, 0.12, "β", style="bold", anchor="middle")
    return plot.canvas.svg("Two distributions of the output, a threshold, and the two errors of an attack")


def the_curve() -> str:
    """Draw the trade-off curve of mu = 1 with the points of three thresholds; `two_errors` shows threshold 1."""
    plot, claim = errors(), GaussianDP(1)
    forbid(plot, claim)
    plot.words(0.06, 0.1, "no attack gets here")
    plot.words(0.53, 0.53, "blind guessing")
    for threshold, alpha in ((0, 0.5), (1, ALPHA), (2, 0.02275013194817921)):
        plot.dot(alpha, claim.beta(alpha), "witness")
        plot.words(alpha + 0.025, claim.beta(alpha) + 0.025, f"threshold {threshold}", "witness")
    return plot.canvas.svg("The trade-off curve of mu = 1: each threshold is a point")


def gaussian_curves() -> str:
    """Draw G_mu for one, four, sixteen and thirty-six releases with mu = 0.5."""
    plot, one, rows = errors(), GaussianDP(0.5), []
    for releases, color, dashes in ((1, "label", ""), (4, "attack", "9 4"), (16, "third", "2 5"), (36, "witness", "")):
        claim = one.repeated(releases)
        draw_claim(plot, claim, color, dashes=dashes)
        words = f"{releases} together" if releases > 1 else "1 release"
        rows.append((color, dashes, f"{words}: μ = {claim.mu():g}"))
    plot.words(0.5, 0.93, "releases of μ = 0.5 each")
    plot.key(0.5, 0.87, rows)
    return plot.canvas.svg("Trade-off curves of 1, 4, 16 and 36 releases with mu = 0.5 each")


def epsilon_delta() -> str:
    """Draw f_{1, 0.1}, f_{1, 0} and the curve of Laplace noise."""
    plot = errors()
    both, pure, laplace = ApproxDP(epsilon=1, delta=0.1), PureDP(1), LaplaceDP(1)
    corner = 1 / (1 + math.e)
    draw_claim(plot, laplace, "third", math.exp(-1) / 2, 0.5, dashes="9 4")
    draw_claim(plot, pure, "attack", corner)
    draw_claim(plot, both, "witness", 0.9 * corner, 0.9)
    plot.key(
        0.4,
        0.94,
        [("third", "9 4", "Laplace noise, ε = 1"), ("attack", "", "ε = 1, δ = 0"), ("witness", "", "ε = 1, δ = 0.1")],
    )
    plot.line((-0.012, -0.012), (0.9, 1.0), "label", width=1.6)
    plot.words(-0.03, 0.925, "δ", anchor="end")
    plot.words(0.2, 0.59, "slope −e^ε", style="small")
    plot.words(0.5, 0.26, "slope −1/e^ε", style="small")
    return plot.canvas.svg("The curves of (epsilon, delta) claims are polygons; that of Laplace noise lies above")


def privacy_loss() -> str:
    """Draw the density of the privacy loss for mu = 1, with Q(loss > 1.5) and delta(1.5) as areas."""
    mu, epsilon = 1.0, 1.5
    plot = Plot(Canvas(480, 340), (16, 16, 464, 282), (-2.6, 4.2), (0, 0.46))
    plot.axes("privacy loss ln(q/p)", "", range(-2, 5), ())
    loss = np.unique(np.concatenate([np.linspace(-2.6, 4.2, 137), [epsilon]]))
    density = _normal(loss, mu**2 / 2, mu)
    tail = loss >= epsilon
    part = density[tail] * -np.expm1(epsilon - loss[tail])
    plot.area(loss[tail], 0 * part, density[tail], "witness", opacity=0.3)
    plot.area(loss[tail], 0 * part, part, "witness")
    plot.line(loss, density, "claim")
    plot.line((epsilon, epsilon), (0, 0.36), "claim", width=1.6)
    plot.line((0.5, 0.5), (0, 0.399), "chance", width=1.6, dashes="1 6")
    tail_mass, delta = 0.15865525393145707, GaussianDP(mu).delta(epsilon)
    plot.words(0.5, 0.425, "μ = 1: mean μ²/2 = 0.5, standard deviation μ", anchor="middle")
    plot.words(epsilon + 0.1, 0.335, f"ε = {epsilon:g}")
    for height, color, words in (
        (0.3, "label", "whole tail, loss > ε:"),
        (0.265, "label", f"Q = {tail_mass:.3f}"),
        (0.215, "witness", "dark part:"),
        (0.18, "witness", f"δ(ε) = {delta:.3f}"),
    ):
        plot.words(1.95, height, words, color)
    return plot.canvas.svg("The privacy loss of Gaussian noise is normal; delta is a part of its tail")


def audited_curve() -> str:
    """Draw the curve that an audit found in 2,000 runs: claimed G_1, true G_1.5."""
    claim, truth = GaussianDP(1), GaussianDP(1.5)
    pair = Pair([0.0], [1.5], relation="replace_one")
    curve = audit(Gaussian(1.0), claim, pair, attacks=["logistic"], method="fixed", trials=2000, seed=1).curve
    plot = errors()
    forbid(plot, claim)
    draw_claim(plot, truth, "witness", dashes="1 5")
    plot.line(curve.alpha, curve.beta, "attack")
    plot.line(curve.alpha, curve.beta_upper, "attack", dashes="6 4")
    rows = [
        ("claim", "", "claim: μ = 1"),
        ("attack", "6 5", "upper bound, 99 %"),
        ("attack", "", "errors of the attack"),
        ("witness", "1 5", "truth: μ = 1.5"),
    ]
    plot.key(0.5, 0.94, rows)
    return plot.canvas.svg("An audit draws the mechanism's own curve, below the claimed one")
