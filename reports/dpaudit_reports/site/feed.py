"""Writes the audits as a JSON feed.  Format: https://www.jsonfeed.org/version/1.1/."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from dpaudit.result.model import AuditResult
from dpaudit.text.printable import one_line, shortened
from dpaudit.text.signs import SIGNS
from dpaudit_reports.claimed import label
from dpaudit_reports.formats.facts import Fact, facts, sentence
from dpaudit_reports.formats.run import Audited
from dpaudit_reports.site.rows import Entry

_COLORS = {"bad": "#a33600", "clear": "#005894", "open": "#565656"}  # of `report.css`; white text has contrast 7
_LETTER = 6.4  # mean width of a letter in pixels; `textLength` makes every font use this width


def badge(result: AuditResult, note: str = "") -> str:
    """Return the badge of a result as SVG."""
    sign = SIGNS[result.verdict.value]
    claim = shortened(one_line(label(result.claim)))
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


def feed(entries: Sequence[Entry], title: str, url: str) -> str:
    """Return the feed, with the newest audit first, in ASCII."""
    place = f"{url.rstrip('/')}/" if url else ""
    newest = sorted(entries, key=lambda one: -one.date.timestamp() if one.date else float("inf"))
    values = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": title,
        **({"home_page_url": f"{place}index.html", "feed_url": f"{place}feed.json"} if place else {}),
        "language": "en",
        "items": [_item(entry, place) for entry in newest],
    }
    return json.dumps(values, ensure_ascii=True, allow_nan=False, indent=1) + "\n"


def _item(entry: Entry, place: str) -> dict[str, Fact | dict[str, Fact]]:
    audited = Audited(name=entry.title, result=entry.result)
    date = {} if entry.date is None else {"date_published": entry.date.isoformat(timespec="seconds")}
    return {
        "id": f"sha256:{entry.digest}",
        "url": f"{place}{entry.page}",
        "title": f"{audited.sign.shown()}{entry.note}: {entry.title}",
        "content_text": one_line(sentence(audited) + (f"; not checked: {entry.unchecked}" if entry.unchecked else "")),
        **date,
        "tags": [
            audited.sign.word,
            *(["not checked"] if entry.unchecked else []),
            *([entry.library] if entry.library else []),
        ],
        "_dpaudit": {**facts(audited), "badge": f"{place}{entry.badge}"},
    }
