"""Draws a badge: an SVG with the claim and the verdict.  No badge says that a mechanism is private."""

from __future__ import annotations

from html import escape

from dpaudit.result.model import AuditResult
from dpaudit.text.printable import one_line, shortened
from dpaudit.text.signs import SIGNS
from dpaudit_reports.claimed import label

_COLORS = {"bad": "#a33600", "clear": "#005894", "open": "#565656"}  # of `report.css`; white text has contrast 7
_MAX_CLAIM = 40  # characters of the claim
_LETTER = 6.4  # mean width of a letter in pixels; `textLength` makes every font use this width


def badge(result: AuditResult, note: str = "") -> str:
    """Return the badge of a result as SVG."""
    sign = SIGNS[result.verdict.value]
    claim = shortened(one_line(label(result.claim)), _MAX_CLAIM)
    verdict = f"{sign.shown()}{note}"
    left, right = _width(claim), _width(verdict)
    title = escape(f"privacy audit of {claim}: {sign.word}{note}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<clipPath id="r"><rect width="{left + right}" height="20" rx="3"/></clipPath><g clip-path="url(#r)">'
        f'<rect width="{left}" height="20" fill="#3a404a"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{_COLORS[sign.tone]}"/></g>'
        '<g fill="#ffffff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f"{_text(claim, left / 2, left)}{_text(verdict, left + right / 2, right)}</g></svg>\n"
    )


def _width(text: str) -> int:
    return round(_LETTER * len(text)) + 12


def _text(text: str, middle: float, width: int) -> str:
    return (
        f'<text x="{middle:g}" y="14" textLength="{width - 12}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
    )
