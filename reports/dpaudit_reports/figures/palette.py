"""The colours of figures, from the palette of Okabe and Ito, which colour-blind readers can distinguish.

Curves also differ by line style or marker.  Each colour has a name and a second value for dark backgrounds; `html`
replaces the first value by a variable that has both.
"""

from __future__ import annotations

CLAIM, ATTACK, WITNESS = "#000000", "#0072b2", "#d55e00"
WITNESS_WORD = "#a84a00"  # letters need more contrast than lines
FORBIDDEN, CHANCE, PAPER = "#e3e3e3", "#9a9a9a", "#ffffff"

# For each name, the colours on a light and on a dark background.  dpaudit.mplstyle sets the last three, which the frame
# uses.
COLORS = {
    "claim": (CLAIM, "#f4f4f4"),
    "attack": (ATTACK, "#56b4e9"),
    "witness": (WITNESS, "#e69f00"),
    "witness-word": (WITNESS_WORD, "#f0a818"),
    "forbidden": (FORBIDDEN, "#3a404a"),
    "chance": (CHANCE, "#8c94a0"),
    "paper": (PAPER, "#14181e"),
    "label": ("#222222", "#dde2e8"),
    "axis": ("#555555", "#a7afba"),
    "grid": ("#e4e4e4", "#2b313a"),
}
