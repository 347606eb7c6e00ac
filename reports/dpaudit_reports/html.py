"""Writes a document as HTML, one self-contained file or a fragment for a notebook, escaped and without scripts."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files

from dpaudit.text import printable
from dpaudit_reports import blocks as b
from dpaudit_reports.blocks import Document
from dpaudit_reports.figures import COLORS, PANEL


@dataclass(frozen=True, repr=False)
class Shown:
    """A document that a notebook displays.  `print` shows its title and its number of parts."""

    document: Document

    def __repr__(self) -> str:
        parts = len(self.document.parts)
        return f"<{self.document.title}{f', {parts} parts' if parts > 1 else ''}>"

    def _repr_html_(self) -> str:
        return fragment(self.document)


_TOP = "top"  # the id of the title

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(document: Document, links: Sequence[tuple[str, str]] = ()) -> str:
    """Return the document as one self-contained page, in the light or dark mode of the reader's screen."""
    shown = " · ".join(f'<a href="{text_html(address)}">{text_html(words)}</a>' for words, address in links)
    top = f'<nav class="quiet">{shown}</nav>\n' if shown else ""
    return whole_page(document.title, f"{top}{_body(document, linked=True)}", style=css(), policy=_POLICY)


def whole_page(
    title: str, body: str, *, style: str, policy: str, head: str = "", script: str = "", kind: str = ""
) -> str:
    """Return a page with the colours of the reader's screen."""
    scripts = f"<script>{script}</script>\n" if script else ""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<meta name="generator" content="dpaudit">\n'
        f"<title>{text_html(title)}</title>\n{head}<style>{page_style(style)}</style>\n</head>\n<body>\n"
        f'<main class="dpaudit{f" {kind}" if kind else ""}">\n{body}\n</main>\n{scripts}</body>\n</html>\n'
    )


def page_style(style: str) -> str:
    """Return a style sheet with the rules for the margins and the background of a whole page."""
    return (
        f"\n{style}html {{ background: Canvas; }}\nbody {{ margin: 0; }}\n"
        "main.dpaudit { max-width: 50em; min-height: 100vh; margin: 0 auto; padding: 1.5em max(1em, 3vw) 3em; }\n"
        "@media (prefers-color-scheme: dark) { html { background: #14181e; } }\n"
        "@media (prefers-color-scheme: light) { html { background: #ffffff; } }\n"
    )


def fragment(document: Document) -> str:
    """Return the document as a part of another page.  The style of the rest of the page does not change."""
    body = _body(document, linked=False)
    return f'<div class="dpaudit" style="padding: 1em">\n<style>\n{css()}</style>\n{body}\n</div>\n'


def _body(document: Document, *, linked: bool) -> str:
    anchors = Anchors() if linked else None
    names = () if anchors is None else (anchors.new(_TOP), *(anchors.new(part.title) for part in document.parts))
    writer, alone = Writer(anchors, names[1:]), len(document.parts) == 1
    start = f' id="{_TOP}"' if linked else ""
    kind = ' class="name"' if alone else ""  # the verdict is the title of a report of one audit
    head = f'<h1{start}{kind}>{text_html(document.title)}</h1>\n<p class="quiet">{text_html(document.subtitle)}</p>'
    front = writer.blocks(document.front)
    if alone:  # the sections of a single part stand directly under the document's title
        parts = writer.blocks(document.parts[0].blocks)
    else:
        parts = "\n".join(_part(document, i, writer) for i in range(len(document.parts)))
    back = writer.blocks(document.back)
    if not linked:
        return "\n".join([head, front, parts, back])
    end = f'<p class="quiet back"><a href="#{_TOP}"><span aria-hidden="true">↑</span> To the top</a></p>'
    return "\n".join([head, front, parts, back, end])


def _part(document: Document, place: int, writer: Writer) -> str:
    """Return one of several parts.  It is folded unless it is about a violation; a link to its id opens it."""
    part, kind = document.parts[place], ' class="short"' if document.dense else ""
    mark = f'<span class="sign">{text_html(part.mark)}</span> ' if part.mark else ""
    title = f"<h2{_class(part.tone)}>{mark}{text_html(part.title)}</h2>"
    if not writer.parts:
        return f"<section{kind}>\n{title}\n{writer.blocks(part.blocks, below=2)}\n</section>"
    name = writer.parts[place]
    back = f'<p class="quiet back"><a href="#{_TOP}"><span aria-hidden="true">↑</span> All audits</a></p>'
    opened = " open" if part.tone == "bad" or part.tone is None else ""
    return (
        f'<section{kind}><details{opened}>\n<summary>{title}</summary>\n<div class="part" id="{name}">\n'
        f"{writer.part(part.blocks, name, below=2)}\n{back}\n</div></details></section>"
    )


def css() -> str:
    """Return the style of all elements inside the class `dpaudit`."""
    light, dark = (" ".join(f"--{name}: {pair[i]};" for name, pair in COLORS.items()) for i in (0, 1))
    return f".dpaudit {{ {light} }}\n@media (prefers-color-scheme: dark) {{ .dpaudit {{ {dark} }} }}\n" + (
        files("dpaudit_reports") / "report.css"
    ).read_text(encoding="utf-8")


def slug_of(title: str, most: int = 60) -> str:
    """Return the small letters and digits of a title, with hyphens in place of everything else."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:most].strip("-")


class Anchors:
    """Makes ids that are unique on a page."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def new(self, title: str, within: str = "") -> str:
        """Return an id of small letters, digits, hyphens and slashes."""
        words = slug_of(title) or "section"
        first = f"{within}/{words}" if within else words
        name, number = first, 2
        while name in self._used:
            name, number = f"{first}-{number}", number + 1
        self._used.add(name)
        return name


_COLOR_NAMES = {light: f"var(--{name})" for name, (light, _) in COLORS.items()}
_EM = 24 / (72 * PANEL)  # width of a drawing on a screen, in letters for each point of its width on paper
_REACH = 6  # radius of the place of a hint, in points


def blocks_html(blocks: Sequence[b.Block], *, below: int = 1) -> str:
    """Return blocks as HTML without ids."""
    return Writer().blocks(blocks, below=below)


def prose_html(text: b.Text) -> str:
    """Return the text of a block as HTML."""
    return Writer().prose(text)


@dataclass(slots=True)
class Writer:
    """Writes blocks of one page."""

    anchors: Anchors | None = None  # the ids of the page; None if headings get no ids, as in a notebook
    parts: Sequence[str] = ()  # the id of each part, to which references lead
    _under: str = field(default="", init=False)  # the last heading, which names the tables below it
    _within: str = field(default="", init=False)  # the id of the part that is being written

    def part(self, blocks: Sequence[b.Block], within: str, *, below: int) -> str:
        """Return the blocks of a part, whose headings get ids such as `PART/witness`."""
        self._within = within
        shown = self.blocks(blocks, below=below)
        self._within = ""
        return shown

    def blocks(self, blocks: Sequence[b.Block], *, below: int = 1) -> str:
        """Return blocks as HTML; `below` is added to the level of each heading."""
        return "\n".join(self._block(block, below) for block in blocks)

    def prose(self, text: b.Text) -> str:
        """Return the text of a block as HTML."""
        return self._span(text) if isinstance(text, str) else "".join(map(self._span, text))

    def _block(self, block: b.Block, below: int) -> str:
        match block:
            case b.Heading(text, level):
                self._under, depth = text, min(6, level + below)
                anchor = "" if self.anchors is None else f' id="{self.anchors.new(text, self._within)}"'
                return f"<h{depth}{anchor}>{text_html(text)}</h{depth}>"
            case b.Paragraph(text, quiet):
                return f"<p{_class('quiet' * quiet)}>{self.prose(text)}</p>"
            case b.Items(items, quiet, numbered):
                kind = "ol" if numbered else "ul"
                entries = "".join(f"<li>{self.prose(item)}</li>" for item in items)
                return f"<{kind}{_class('quiet' * quiet)}>{entries}</{kind}>"
            case b.Verdict(mark, title, text, tone):
                depth = min(6, 1 + below)
                sign = f'<span aria-hidden="true">{text_html(mark)}</span>'  # the words beside it state the same
                name = f'<h{depth} class="mark">{sign} {self.prose(title)}</h{depth}>'
                return f'<div class="verdict {tone}">{name}<p>{self.prose(text)}</p></div>'
            case b.Numbers(numbers):
                cells = "".join(
                    f"<p{_class(one.tone)}><strong>{self.prose(one.value)}</strong> {self.prose(one.meaning)}</p>"
                    for one in numbers
                )
                return f'<div class="numbers">{cells}</div>'
            case b.Facts(rows) | b.KeyValues(rows):
                kind = "facts" if isinstance(block, b.Facts) else "values"
                entries = "".join(f"<dt>{text_html(name)}</dt><dd>{self.prose(value)}</dd>" for name, value in rows)
                return f'<dl class="{kind}">{entries}</dl>'
            case b.Table():
                return self._table(block)
            case b.Figure(panels, caption, columns):
                kind = " alone" if len(panels) == 1 and columns > 1 else " many" if columns > 2 else ""
                shown = "".join(map(_panel, panels))
                words = f"<figcaption>{self.prose(caption)}</figcaption>"
                return f'<figure class="panels-with-words{kind}"><div class="panels">{shown}</div>{words}</figure>'
            case b.Columns(left, right, share):
                one, two = (f"<div>{self.blocks(side, below=below)}</div>" for side in (left, right))
                return f'<div class="columns{" uneven" if share < 0.5 else ""}">{one}{two}</div>'
            case b.NewPage():
                return '<hr class="page">'
            case b.Listing(text):
                return f"<pre><code>{text_html(text)}</code></pre>"
        raise TypeError(f"{type(block).__name__} is not a block of dpaudit_reports.blocks")

    def _table(self, table: b.Table) -> str:
        """Return a table, whose rows are cards on a phone.  Roles are explicit, because cards lose them otherwise."""
        kinds = ["right" if one.align == "right" else "wide" if one.grow > 0 else "" for one in table.columns]
        titles = [(_class(kind), column.title) for kind, column in zip(kinds, table.columns, strict=True)]
        head = "".join(f'<th role="columnheader"{kind}>{self.prose(title)}</th>' for kind, title in titles)
        tags = [f'td role="cell" data-title="{text_html(b.flat(title))}"{kind}' for kind, title in titles]
        tags[:1] = [tags[0].replace('td role="cell"', 'th role="rowheader"')]
        rows = (
            "".join(f"<{tag}><div>{self.prose(cell)}</div></{tag[:2]}>" for tag, cell in zip(tags, row, strict=True))
            for row in table.rows
        )
        body = "\n".join(f'<tr role="row">{row}</tr>' for row in rows)
        # A table that is wider than the screen scrolls.  The tabindex makes scrolling by keyboard possible.
        name = f"table: {self._under}" if self._under else "table"
        opening = f'<div class="scroll" role="region" aria-label="{text_html(name)}" tabindex="0">'
        cards = _class("cards" * (kinds.count("wide") > 1 and len(kinds) > 3))
        return (
            f'{opening}<table role="table"{cards}><thead role="rowgroup"><tr role="row">{head}</tr></thead>\n'
            f'<tbody role="rowgroup">{body}</tbody></table></div>'
        )

    def _span(self, span: b.Span) -> str:
        match span:
            case str():
                return text_html(span)
            case b.Strong(text):
                return f"<strong>{text_html(text)}</strong>"
            case b.Code(text):
                return f"<code>{text_html(text)}</code>"
            case b.Math(text):
                parts = re.findall(r"\w+|\W+", text)  # a word of one letter is a variable
                return "".join(f"<var>{w}</var>" if w.isalpha() and len(w) == 1 else text_html(w) for w in parts)
            case b.Reference(text, part):
                words = text_html(text)
                return f'<a href="#{self.parts[part]}">{words}</a>' if 0 <= part < len(self.parts) else words
            case b.Picture(svg, text, wide):
                return _inline(svg(), text) if wide else f'<span class="sample">{_inline(svg(), text)}</span>'
        raise TypeError(f"text must be a string or a span of dpaudit_reports.blocks, got {span!r}")


def _panel(panel: b.Panel) -> str:
    name = f'<p class="name">{text_html(panel.title)}</p>' if panel.title else ""
    drawn = _inline(panel.svg(), panel.alt, panel.hints() if panel.hints else (), limited=True)
    if panel.wide is not None:  # the style shows one of the two
        drawn = f'<div class="page-wide">{_inline(panel.wide(), panel.alt)}</div><div class="phone-wide">{drawn}</div>'
    return f"<div>{name}{drawn}</div>"


def _inline(svg: str, alt: str, hints: Sequence[b.Hint] = (), *, limited: bool = False) -> str:
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r"#[0-9a-fA-F]{6}\b", lambda color: _COLOR_NAMES.get(color[0].lower(), color[0]), drawing)
    own = hashlib.sha256(svg.encode()).hexdigest()[:8]
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', drawing))
    drawing = re.sub(r' id="([^"]*)"', lambda name: f' id="{own}-{name[1]}"' if name[1] in used else "", drawing)
    drawing = re.sub(r'(href="|url\()#([^")]+)', rf"\1#{own}-\2", drawing)
    box = re.search(r'viewBox="[\d.]+ [\d.]+ ([\d.]+) ([\d.]+)"', drawing)
    wide, high = (float(box[1]), float(box[2])) if box else (0.0, 0.0)
    role = f'role="img" aria-label="{text_html(alt)}"' if alt else 'aria-hidden="true"'
    style = f' style="max-width: {_EM * wide:.1f}em"' if limited and box else ""
    opening = f'<svg {box[0] if box else ""}{style} {role} xmlns:xlink="http://www.w3.org/1999/xlink">'
    places = ""
    for hint in hints:
        circle = f'<circle cx="{hint.x * wide:.1f}" cy="{hint.y * high:.1f}" r="{_REACH}">'
        places += f"{circle}<title>{text_html(hint.text)}</title></circle>"
    body = drawing[drawing.index(">") + 1 :].strip()
    return opening + (body.removesuffix("</svg>") + f'<g class="hints">{places}</g></svg>' if places else body)


def _class(name: str | None) -> str:
    return f' class="{name}"' if name else ""


def text_html(text: str) -> str:
    """Return text as HTML: escaped, also for the value of an attribute."""
    return escape(printable(text), quote=True)
