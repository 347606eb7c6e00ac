"""The index of a site, the badge of each audit, and the JSON feed (https://www.jsonfeed.org/version/1.1/).

The index is a table that is complete without scripts, and that a small script sorts and filters.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from dpaudit.result.model import AuditResult
from dpaudit.text.printable import one_line, shortened
from dpaudit.text.rounding import count
from dpaudit.text.signs import SIGNS
from dpaudit_reports.blocks import Paragraph, Strong
from dpaudit_reports.claimed import label
from dpaudit_reports.document import day, newest
from dpaudit_reports.formats.facts import Audited, Fact, facts, sentence
from dpaudit_reports.html import css, page_style, whole_page
from dpaudit_reports.html_blocks import blocks_html, prose_html, text_html
from dpaudit_reports.sections.summary import caveat, tally
from dpaudit_reports.site.rows import Column, Entry, columns
from dpaudit_reports.verdicts import MARKS

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


_LIMITS = (
    "No audit shows that a mechanism is private. “No violation found” means that the runs of this audit refuted "
    "nothing. The result files were not signed, so replay a result before you rely on it."
)

_UNCHECKED = (
    "“Not checked” means that the result states another version of dpaudit, and that this version computes other "
    "numbers from its counts."
)


def index(entries: Sequence[Entry], title: str) -> str:
    """Return the index."""
    results = [entry.result for entry in entries]
    shown = columns(entries)
    limits = [Paragraph(_LIMITS, quiet=True)]
    unchecked = [entry.result.verdict for entry in entries if entry.unchecked]
    if unchecked:
        limits.append(Paragraph(_UNCHECKED, quiet=True))
    audits = f"{count(len(entries))} audit{'' if len(entries) == 1 else 's'} of differential-privacy claims"
    body = "\n".join(
        [
            f'<h1>{text_html(title)}</h1>\n<p class="quiet">{audits}{day(newest(results))} · '
            '<a href="feed.json">JSON feed</a></p>',
            blocks_html([Paragraph((Strong(tally(results, unchecked)),))]),
            _tools(results, shown),
            _table(entries, shown),
            blocks_html([*caveat(results, "the page of the audit"), *limits]),
        ]
    )
    style, script = f"{css()}{_file('index.css')}", _file("index.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(page_style(style))}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    feed = f'<link rel="alternate" type="application/feed+json" href="feed.json" title="{text_html(title)}">\n'
    return whole_page(title, body, style=style, policy=policy, head=feed, script=script, kind="index")


def _tools(results: Sequence[AuditResult], shown: Sequence[Column]) -> str:
    found = [mark for verdict, mark in MARKS.items() if any(result.verdict is verdict for result in results)]
    verdicts = "".join(f'<option value="{mark.tone}">{mark.sign} {mark.word}</option>' for mark in found)
    orders = "".join(
        f'<option value="{i}">{text_html(column.title)}, {column.order}</option>' for i, column in enumerate(shown)
    )
    return (
        '<div class="tools" role="search" hidden>'
        '<label>Filter <input id="words" type="search" autocomplete="off" placeholder="name, claim or library"></label>'
        f'<label>Verdict <select id="verdict"><option value="">all</option>{verdicts}</select></label>'
        f'<label>Order <select id="order">{orders}<option value="" hidden>reversed</option></select></label>'
        '<output id="shown" for="words verdict"></output></div>'
    )


def _table(entries: Sequence[Entry], shown: Sequence[Column]) -> str:
    """Return the table.  Roles are explicit, because a style that shows rows as blocks removes them."""
    head = "".join(
        f'<th scope="col" role="columnheader" data-first="{one.first}"{_class(one)}>{text_html(one.title)}</th>'
        for one in shown
    )
    rows = "\n".join(_row(i, entry, shown) for i, entry in enumerate(entries))
    return (
        f'<table role="table"><thead role="rowgroup"><tr role="row">{head}</tr></thead>\n'
        f'<tbody role="rowgroup">{rows}</tbody></table>'
    )


def _row(i: int, entry: Entry, shown: Sequence[Column]) -> str:
    cells = []
    for column in shown:
        content = prose_html(column.cells[i])
        if column.title == "Audit":
            content = f'<a href="{entry.page}">{content}</a>'
        cells.append(
            f'<td role="cell" data-title="{text_html(column.title)}"{_class(column)}><div>{content}</div></td>'
        )
    ranks = " ".join(str(column.ranks[i]) for column in shown)
    tone = MARKS[entry.result.verdict].tone
    return f'<tr role="row" data-verdict="{tone}" data-ranks="{ranks}">{"".join(cells)}</tr>'


def _class(column: Column) -> str:
    return f' class="{column.align}"' if column.align else ""


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _file(name: str) -> str:
    return (files("dpaudit_reports") / "site" / name).read_text(encoding="utf-8")
