"""The figures of docs/randomised-response.md."""

from __future__ import annotations

import math

import numpy as np

from dpaudit import Pair, PureDP, audit
from dpaudit.catalogue.responses import Spinner
from drawing.canvas import Canvas, Point
from drawing.errors import draw_claim, errors

RADIUS = 96


def _rim(centre: Point, turn: float, radius: float = RADIUS) -> Point:
    """Return the point of a circle at a fraction of a turn, clockwise from the top."""
    angle = 2 * math.pi * turn
    return centre[0] + radius * math.sin(angle), centre[1] - radius * math.cos(angle)


def spinners() -> str:
    """Draw the spinner of Warner (t = 3/4) and the spinner with a coin."""
    canvas = Canvas(560, 300)
    fields = {
        150: (
            (0.0, 0.75, "attack", ("tell the", "truth"), "3/4"),
            (0.75, 1.0, "witness", ("say the", "opposite"), "1/4"),
        ),
        410: (
            (0.0, 0.5, "attack", ("tell the", "truth"), "1/2"),
            (0.5, 0.75, "third", ("say", "“yes”"), "1/4"),
            (0.75, 1.0, "witness", ("say", "“no”"), "1/4"),
        ),
    }
    for x, parts in fields.items():
        centre = (x, 122.0)
        for start, end, color, words, share in parts:
            canvas.sector(centre, RADIUS, _rim(centre, start), _rim(centre, end), color, opacity=0.3)
            left, top = _rim(centre, (start + end) / 2, 55)
            for line, text in enumerate(words):
                canvas.words((left, top + 16 * line), text, anchor="middle", style="small")
            left, top = _rim(centre, (start + end) / 2, RADIUS + 16)
            canvas.words((left, top + 5), share, color, anchor="middle", style="bold")
        tip = _rim(centre, 0.09, 80)
        canvas.line([centre, tip], "claim", width=4)
        canvas.area([_rim(centre, 0.09, 92), _rim(centre, 0.065, 76), _rim(centre, 0.115, 76)], "claim")
        canvas.dot(centre, "claim", radius=7)
    canvas.words((150, 258), "spinner", anchor="middle", style="bold")
    canvas.words((410, 258), "spinner and coin", anchor="middle", style="bold")
    canvas.words((410, 280), "P(truth) = 1/2, else a fair coin", anchor="middle", style="small")
    canvas.words((150, 280), "P(truth) = t = 3/4", anchor="middle", style="small")
    return canvas.svg("Two spinners: one tells the truth or lies, one tells the truth or tosses a coin")


def four_hundred_answers() -> str:
    """Draw a square for each of 400 people, filled for the answer "yes"."""
    rng = np.random.default_rng(2026)
    canvas, top = Canvas(560, 306), 34.0
    for value, people, color in ((1, 120, "attack"), (0, 280, "witness")):
        answers = Spinner(0.75).sample([value], people, rng)
        said = int(answers.sum())
        trait = "with" if value else "without"
        canvas.words((30, top - 8), f"{people} people {trait} the trait: {said} say “yes”", color, style="bold")
        places = [(30 + 12.6 * (i % 40), top + 5 + 17 * (i // 40)) for i in range(people)]
        for answer in (0, 1):
            chosen = [place for place, given in zip(places, answers, strict=True) if given == answer]
            canvas.squares(chosen, 8, color, filled=bool(answer))
        top += 17 * -(-people // 40) + 44
    canvas.words((30, top - 8), "■ answers “yes”     □ answers “no”", style="small")
    return canvas.svg("400 simulated answers of the spinner, a square for each person")


def spinner_curve() -> str:
    """Draw the curve of the spinner with p = 3/4, and the point that an audit measures."""
    pair = Pair([0], [1], relation="replace_one")
    claim = PureDP(math.log(2))
    result = audit(Spinner(0.75), claim, pair, attacks=["plug_in_ratio"], method="fixed", trials=2000, seed=1)
    plot = errors()
    alpha = np.array([0, 1 / 3, 1])
    plot.area(alpha, 0 * alpha, claim.beta(alpha), "forbidden")
    draw_claim(plot, claim, "claim", 1 / 3)
    draw_claim(plot, PureDP(math.log(3)), "witness", 0.25, dashes="1 5")
    found = result.witness
    assert found is not None
    plot.dot(found.alpha, found.beta, "attack", radius=6)
    plot.key(0.42, 0.94, [("claim", "", "claim: ε = ln 2"), ("witness", "1 5", "truth: ε = ln 3")])
    plot.dot(0.457, 0.825, "attack", radius=6)
    plot.words(0.515, 0.812, "measured by the audit", "attack")
    return plot.canvas.svg("The curve of the spinner has one corner, and the audit measures it")
