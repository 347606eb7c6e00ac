"""Text for a stream that cannot show every character, such as a terminal whose encoding is ASCII."""

from __future__ import annotations

import re

_PLAIN = str.maketrans(
    {
        "▲": "X", "○": "o", "◇": "?",  # signs of verdicts
        "≥": ">=", "≤": "<=", "≈": "~", "−": "-", "×": "x", "∞": "inf", "⁄": "/",
        "ε": "epsilon", "δ": "delta", "μ": "mu", "ρ": "rho", "α": "alpha", "β": "beta",
        "·": "-", "…": "...", "–": "-", "—": "-", "─": "-", "━": "-", "\u00a0": " ",
    }
)  # fmt: skip
_RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
_LOWERED = str.maketrans(_RAISED, "-0123456789")


def encodable(text: str, encoding: str | None) -> str:
    """Return the text in ASCII if the encoding cannot write it."""
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeError, LookupError):
        powers = re.sub(f"[{_RAISED}]+", lambda found: f"^{found[0].translate(_LOWERED)}", text)
        return powers.translate(_PLAIN).encode("ascii", "backslashreplace").decode("ascii")
    return text
