"""The index of a site, complete without scripts, the badges, and the JSON feed (https://www.jsonfeed.org/version/1.1/)."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from html import escape
from importlib.resources import files

from dpaudit.result.model import AuditResult
from dpaudit.rounding import count, percent_at_least
from dpaudit.text import SIGNS, one_line, shortened
from dpaudit_reports.blocks import Code, Paragraph, Strong, Text, some_of
from dpaudit_reports.claimed import Bound, certified_of_claimed, headline, label, ranges
from dpaudit_reports.document import date_of, day, newest
from dpaudit_reports.formats import Audited, Fact, facts, sentence
from dpaudit_reports.html import blocks_html, css, page_style, prose_html, text_html, whole_page
from dpaudit_reports.sections.several_audits import caveat, tally
from dpaudit_reports.verdicts import MARKS, WORST_FIRST, outcome, title_of

_COLORS = {"bad": "#a33600", "clear": "#005894", "open": "#565656"}  # of `report.css`; white text has contrast 7
_LETTER = 6.4  # mean width of a letter in pixels; `textLength` makes every font use this width


def badge(result: AuditResult) -> str:
    """Return the badge of a result as SVG."""
    sign = SIGNS[result.verdict.value]
    claim = shortened(one_line(label(result.claim)))
    verdict = sign.shown()
    left, right = (round(_LETTER * len(text)) + 12 for text in (claim, verdict))
    texts = "".join(
        f'<text x="{middle:g}" y="14" textLength="{width - 12}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
        for text, middle, width in ((claim, left / 2, left), (verdict, left + right / 2, right))
    )
    title = escape(f"privacy audit of {claim}: {sign.word}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<clipPath id="r"><rect width="{left + right}" height="20" rx="3"/></clipPath><g clip-path="url(#r)">'
        f'<rect width="{left}" height="20" fill="#3a404a"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{_COLORS[sign.tone]}"/></g>'
        '<g fill="#ffffff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f"{texts}</g></svg>\n"
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
        "title": f"{audited.sign.shown()}: {entry.title}",
        "content_text": one_line(sentence(audited)),
        **date,
        "tags": [audited.sign.word, *filter(None, [entry.library])],
        "_dpaudit": {**facts(audited), "badge": f"{place}{entry.badge}"},
    }


_LIMITS = (
    "No audit shows that a mechanism is private. “No violation found” means that the runs of this audit refuted "
    "nothing. The result files were not signed, so replay a result before you rely on it."
)


def index(entries: Sequence[Entry], title: str) -> str:
    """Return the index."""
    results = [entry.result for entry in entries]
    shown = columns(entries)
    audits = f"{count(len(entries))} audit{'' if len(entries) == 1 else 's'} of differential-privacy claims"
    body = "\n".join(
        [
            f'<h1>{text_html(title)}</h1>\n<p class="quiet">{audits}{day(newest(results))} · '
            '<a href="feed.json">JSON feed</a></p>',
            blocks_html([Paragraph((Strong(tally(results)),))]),
            _tools(results, shown),
            _table(entries, shown),
            blocks_html([Paragraph(" ".join([*caveat(results), _LIMITS]).strip(), quiet=True)]),
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
    verdicts = "".join(f'<option value="{mark.tone}">{mark.sign} {mark.title}</option>' for mark in found)
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


UNKNOWN = -1  # rank of a row without a value; such rows come last


@dataclass(frozen=True)
class Entry:
    """An audit of the site."""

    result: AuditResult
    digest: str  # hash of the content of the result
    address: str  # name of the page, without its ending

    @property
    def page(self) -> str:
        """The file name of the page."""
        return f"{self.address}.html"

    @property
    def badge(self) -> str:
        """The file name of the badge."""
        return f"{self.address}.svg"

    @property
    def title(self) -> str:
        """The name of the audit on one line."""
        return shortened(one_line(title_of(self.result)))

    @property
    def claim(self) -> str:
        """The claim on one line."""
        return shortened(one_line(label(self.result.claim)))

    @cached_property
    def library(self) -> str:
        """The audited packages with their versions; "" if the result records none."""
        return some_of([shortened(one_line(package)) for package in _audited(self.result)], 2)

    @cached_property
    def date(self) -> datetime | None:
        """The date of the audit in UTC, if the result records it."""
        return date_of(self.result)

    @cached_property
    def bound(self) -> Bound | None:
        """The certified bound; None if nothing is certified, or no single parameter."""
        bound = headline(self.result) if self.result.bounds_valid else None
        return None if bound is None or math.isnan(bound.certified) else bound


def _audited(result: AuditResult) -> list[str]:
    """Return the packages that the config or the mechanism names, in this order; or else all, with what they need."""
    about = result.provenance
    packages = about.mechanism_packages or {}
    texts = (about.audit or "", about.mechanism or "", about.config or "")
    words = _words(" ".join(texts))
    named = [name for name in packages if _words(name).strip() and _words(name) in words]
    return [f"{name} {packages[name]}" for name in sorted(named, key=lambda name: words.find(_words(name))) or packages]


def _words(text: str) -> str:
    return f" {' '.join(re.findall('[a-z0-9]+', text.lower()))} "


def worst_first(entries: Sequence[Entry]) -> list[Entry]:
    """Return violations, then inconclusive audits, and first those with the largest bound for their claim."""

    def key(one: Entry) -> tuple[int, float, str, str]:
        place = ranges(one.result)
        certified = -1.0 if place is None or one.bound is None else place.certified
        return WORST_FIRST.index(one.result.verdict), -certified, one.title.casefold(), one.digest

    return sorted(entries, key=key)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the index."""

    title: str
    cells: Sequence[Text]
    ranks: Sequence[int]  # place of each row in the first order of the column; UNKNOWN comes last
    order: str  # the first order in words
    first: str = "descending"  # the first order for `aria-sort`
    align: str = ""


def columns(entries: Sequence[Entry]) -> list[Column]:
    """Return the columns of the index."""
    results = [one.result for one in entries]
    signs = ((MARKS[one.result.verdict], one) for one in entries)
    verdicts = [f"{sign.sign} {sign.title}{outcome(one.result)}" for sign, one in signs]
    confidences = [result.confidence for result in results]
    shown = [percent_at_least(confidence) for confidence in confidences]
    sure = Column("Confidence", shown, _ranks([-one for one in confidences]), "highest first", align="right")
    bounds = [one.bound and (one.bound.symbol, one.bound.delta or 0.0, -one.bound.certified) for one in entries]
    certified = [certified_of_claimed(result) for result in results]
    runs = [result.trials_used for result in results]
    days = [one.date.strftime("%Y-%m-%d") if one.date else "–" for one in entries]
    return [
        Column("Verdict", verdicts, list(range(len(entries))), "worst first", "ascending"),
        _by_text("Audit", [one.title for one in entries]),
        _by_text("Claim", [one.claim for one in entries], code=True),
        *([sure] if len(set(confidences)) > 1 else []),
        Column("Proven", certified, _ranks(bounds), "largest bound first"),
        Column("Runs", list(map(count, runs)), _ranks([-number for number in runs]), "most first", align="right"),
        _by_text("Library", [one.library for one in entries]),
        Column("Date", days, _ranks([one.date and -one.date.timestamp() for one in entries]), "newest first"),
    ]


def _by_text(title: str, texts: Sequence[str], *, code: bool = False) -> Column:
    cells: list[Text] = [(Code(text),) if code else text or "–" for text in texts]
    return Column(title, cells, _ranks([text.casefold() or None for text in texts]), "A to Z", "ascending")


def _ranks(keys: Sequence[object]) -> list[int]:
    places = {key: place for place, key in enumerate(sorted({key for key in keys if key is not None}))}  # type: ignore[type-var]
    return [UNKNOWN if key is None else places[key] for key in keys]
