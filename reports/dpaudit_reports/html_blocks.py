"""Writes blocks as HTML.  All text is escaped."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from dpaudit.text import printable
from dpaudit_reports import blocks as b
from dpaudit_reports.figures.canvas import COLORS, PANEL


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
                return f"<p{_quiet(quiet)}>{self.prose(text)}</p>"
            case b.Items(items, quiet, numbered):
                kind = "ol" if numbered else "ul"
                return f"<{kind}{_quiet(quiet)}>{''.join(f'<li>{self.prose(item)}</li>' for item in items)}</{kind}>"
            case b.Verdict(mark, title, text, tone):
                depth = min(6, 1 + below)
                sign = f'<span aria-hidden="true">{text_html(mark)}</span>'  # the words beside it state the same
                name = f'<h{depth} class="mark">{sign} {self.prose(title)}</h{depth}>'
                return f'<div class="verdict {tone}">{name}<p>{self.prose(text)}</p></div>'
            case b.Numbers(numbers):
                return f'<div class="numbers">{"".join(map(self._number, numbers))}</div>'
            case b.Facts(rows) | b.KeyValues(rows):
                kind = "facts" if isinstance(block, b.Facts) else "values"
                cells = (f"<dt>{text_html(name)}</dt><dd>{self.prose(value)}</dd>" for name, value in rows)
                return f'<dl class="{kind}">{"".join(cells)}</dl>'
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
            case b.Entries(parts):
                entries = (
                    f"<div><h4>{text_html(one.title)}</h4>{self.blocks(one.blocks, below=4)}</div>" for one in parts
                )
                return f'<div class="entries">{"".join(entries)}</div>'
            case b.Listing(text):
                return f"<pre><code>{text_html(text)}</code></pre>"
        raise TypeError(f"{type(block).__name__} is not a block of dpaudit_reports.blocks")

    def _number(self, number: b.Number) -> str:
        tone = f' class="{number.tone}"' if number.tone else ""
        return f"<p{tone}><strong>{self.prose(number.value)}</strong> {self.prose(number.meaning)}</p>"

    def _table(self, table: b.Table) -> str:
        kinds = ("right" if one.align == "right" else "wide" if one.grow > 0 else "" for one in table.columns)
        attributes = [f' class="{kind}"' if kind else "" for kind in kinds]
        titles = zip(attributes, table.columns, strict=True)
        head = "".join(f'<th scope="col"{one}>{self.prose(column.title)}</th>' for one, column in titles)
        names = ['th scope="row"', *["td"] * (len(attributes) - 1)]
        tags = [(f"<{name}{one}>", f"</{name[:2]}>") for name, one in zip(names, attributes, strict=True)]
        rows = ((f"{a}{self.prose(cell)}{b}" for (a, b), cell in zip(tags, row, strict=True)) for row in table.rows)
        body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
        # A table that is wider than the screen scrolls.  The tabindex makes scrolling by keyboard possible.
        name = f"table: {self._under}" if self._under else "table"
        opening = f'<div class="scroll" role="region" aria-label="{text_html(name)}" tabindex="0">'
        return f"{opening}<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"

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
    places = "".join(_place(hint, wide, high) for hint in hints)
    body = drawing[drawing.index(">") + 1 :].strip()
    return opening + (body.removesuffix("</svg>") + f'<g class="hints">{places}</g></svg>' if places else body)


def _place(hint: b.Hint, wide: float, high: float) -> str:
    circle = f'<circle cx="{hint.x * wide:.1f}" cy="{hint.y * high:.1f}" r="{_REACH}">'
    return f"{circle}<title>{text_html(hint.text)}</title></circle>"


def _quiet(quiet: bool) -> str:
    return ' class="quiet"' if quiet else ""


def text_html(text: str) -> str:
    """Return text as HTML: escaped, also for the value of an attribute."""
    return escape(printable(text), quote=True)
