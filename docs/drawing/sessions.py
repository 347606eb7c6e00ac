"""The figure of docs/sessions.md."""

from __future__ import annotations

import math

from drawing.canvas import Canvas, Plot


def survivors() -> str:
    """Draw what survives of the sessions on d0 beside the sessions on d1, for a right and a wrong report.

    A count of 2 or 3 with two-sided geometric noise, epsilon 1, is refused if it is below 3.
    """
    canvas = Canvas(720, 342)
    low, high = 1 / (1 + math.e), math.e / (1 + math.e)
    for left, title, refused in ((62, "a refusal reports 1", 1.0), (412, "a refusal reports 0", 0.0)):
        plot = Plot(canvas, (left, 48, left + 290, 268), (0, 4.6), (0, 0.8))
        plot.axes("", "share of sessions" if left < 100 else "", (), (0, 0.2, 0.4, 0.6, 0.8))
        canvas.words((left + 145, 26), title, anchor="middle", style="bold")
        for place, (name, share0, share1, spent) in enumerate(
            (("refused", high, low, refused), ("answered, reports 1", low, high, 1.0))
        ):
            start, survived = 0.3 + 2.2 * place, share0 * math.exp(-spent)
            broken = survived > share1 + 1e-9
            for offset, height, color, opacity in (
                (0.0, share0, "axis", 0.12),
                (0.0, survived, "witness" if broken else "attack", 0.9),
                (0.95, share1, "claim", 0.55),
            ):
                corners = ((0.0, 0.0), (0.8, 0.0), (0.8, height), (0.0, height))
                canvas.area([plot.at(start + offset + x, y) for x, y in corners], color, opacity=opacity)
            for offset, height in ((0.4, survived), (1.35, share1)):
                plot.words(start + offset, height + 0.018, f"{height:.2f}", anchor="middle", style="small")
            canvas.words((plot.at(start + 0.87, 0)[0], 288), name, anchor="middle", style="small")
    for x, color, opacity, words in (
        (62, "axis", 0.12, "d0, erased"),
        (172, "attack", 0.9, "d0, survived"),
        (296, "witness", 0.9, "d0, more survived than the report allows"),
        (592, "claim", 0.55, "d1"),
    ):
        canvas.area([(x, 312), (x + 14, 312), (x + 14, 326), (x, 326)], color, opacity=opacity)
        canvas.words((x + 20, 324), words, style="small")
    return canvas.svg(
        "Sessions on d0 survive with probability e to the minus what they report; d1 bounds the survivors"
    )
