"""Writes a document as HTML, either as one self-contained file or as a fragment for a notebook.

All text is escaped.  In addition, the page's security policy forbids scripts and external files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import get_args

from dpaudit_reports.blocks import (
    Answers,
    Beside,
    Block,
    Callout,
    Code,
    Document,
    Entries,
    Figure,
    Heading,
    Items,
    KeyValues,
    Listing,
    Math,
    Panel,
    Paragraph,
    Picture,
    Reference,
    Span,
    Strong,
    Table,
    Text,
    Tone,
)
from dpaudit_reports.figures.palette import COLORS
from dpaudit_reports.printable import printable

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

_TONES = get_args(Tone)


def page(document: Document, links: Sequence[tuple[str, str]] = ()) -> str:
    """Return the document as one self-contained page, in the light or dark mode of the reader's screen.

    Args:
        document: The document.
        links: Words and addresses of links above the title.
    """
    return whole_page(document.title, f"{_links(links)}{_body(document)}", style=css(), policy=_POLICY)


def whole_page(
    title: str, body: str, *, style: str, policy: str, head: str = "", script: str = "", kind: str = ""
) -> str:
    """Return a page with the colours of the reader's screen.

    Args:
        title: The title, as text.
        body: The content, as HTML.
        style: The style sheet; `page_style` is added.
        policy: The content security policy.
        head: Further elements of the head, as HTML.
        script: The only script of the page; the policy must name its hash.
        kind: Name of the kind of page, for the style sheet.
    """
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


def _links(links: Sequence[tuple[str, str]]) -> str:
    shown = " · ".join(f'<a href="{text_html(address)}">{text_html(words)}</a>' for words, address in links)
    return f'<nav class="quiet">{shown}</nav>\n' if shown else ""


def fragment(document: Document) -> str:
    """Return the document as a part of another page.  The style of the rest of the page does not change."""
    return f'<div class="dpaudit" style="padding: 1em">\n<style>\n{css()}</style>\n{_body(document)}\n</div>\n'


def blocks_html(blocks: Sequence[Block], *, below: int = 1) -> str:
    """Return blocks as HTML.

    Args:
        blocks: The blocks, in order.
        below: Number that is added to the level of each heading.

    Raises:
        TypeError: If something is not a block, or not text.
        ValueError: If a callout has an unknown tone.
    """
    return "\n".join(_block(block, below) for block in blocks)


def _body(document: Document) -> str:
    head = f'<h1>{text_html(document.title)}</h1>\n<p class="quiet">{text_html(document.subtitle)}</p>'
    if len(document.parts) == 1:
        # The sections of a single part stand directly under the document's title.
        return "\n".join([head, blocks_html(document.front), blocks_html(document.parts[0].blocks)])
    kind = ' class="short"' if document.dense else ""
    parts = (
        f'<section id="part-{i}"{kind}>\n<h2>{text_html(part.title)}</h2>\n'
        f"{blocks_html(part.blocks, below=2)}\n</section>"
        for i, part in enumerate(document.parts)
    )
    return "\n".join([head, blocks_html(document.front), *parts, blocks_html(document.back)])


def _block(block: Block, below: int) -> str:
    match block:
        case Heading(text, level):
            depth = min(6, level + below)
            return f"<h{depth}>{text_html(text)}</h{depth}>"
        case Paragraph(text, quiet):
            return f"<p{_quiet(quiet)}>{prose_html(text)}</p>"
        case Items(items, quiet):
            return f"<ul{_quiet(quiet)}>{''.join(f'<li>{prose_html(item)}</li>' for item in items)}</ul>"
        case Callout(mark, title, text, tone):
            if tone not in _TONES:
                raise ValueError(f"tone must be one of {', '.join(_TONES)}, got {tone!r}")
            name = f'<p class="mark">{text_html(mark)} {text_html(title)}</p>'
            return f'<div class="callout {tone}">{name}<p>{prose_html(text)}</p></div>'
        case Answers(rows) | KeyValues(rows):
            kind = "answers" if isinstance(block, Answers) else "values"
            cells = (f"<dt>{text_html(name)}</dt><dd>{prose_html(value)}</dd>" for name, value in rows)
            return f'<dl class="{kind}">{"".join(cells)}</dl>'
        case Table():
            return _table(block)
        case Figure(panels, caption):
            alone = " alone" if len(panels) == 1 else ""
            shown = "".join(map(_panel, panels))
            words = f"<figcaption>{prose_html(caption)}</figcaption>"
            return f'<figure><div class="panels{alone}">{shown}</div>{words}</figure>'
        case Beside(panel, blocks):
            return f'<div class="beside">{_panel(panel)}<div>{blocks_html(blocks, below=below)}</div></div>'
        case Entries(parts):
            entries = (
                f"<div><h4>{text_html(part.title)}</h4>{blocks_html(part.blocks, below=4)}</div>" for part in parts
            )
            return f'<div class="entries">{"".join(entries)}</div>'
        case Listing(text):
            return f"<pre><code>{text_html(text)}</code></pre>"
    raise TypeError(f"{type(block).__name__} is not a block of dpaudit_reports.blocks")


def _table(table: Table) -> str:
    kinds = [("right" if column.align == "right" else "wide" if column.grow > 0 else "") for column in table.columns]
    attributes = [f' class="{kind}"' if kind else "" for kind in kinds]
    titles = zip(attributes, table.columns, strict=True)
    head = "".join(f'<th scope="col"{attribute}>{prose_html(column.title)}</th>' for attribute, column in titles)
    rows = (
        "".join(f"<td{attribute}>{prose_html(cell)}</td>" for attribute, cell in zip(attributes, row, strict=True))
        for row in table.rows
    )
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    # A table that is wider than the screen scrolls.  The tabindex makes scrolling by keyboard possible.
    opening = '<div class="scroll" role="region" aria-label="table" tabindex="0">'
    return f"{opening}<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"


def _panel(panel: Panel) -> str:
    name = f'<p class="name">{text_html(panel.title)}</p>' if panel.title else ""
    return f"<div>{name}{_inline(panel.svg(), panel.alt)}</div>"


def _inline(svg: str, alt: str) -> str:
    """Return a drawing for inclusion in the page, with the page's colours and with unique ids."""
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r"#[0-9a-fA-F]{6}\b", lambda color: _COLOR_NAMES.get(color[0].lower(), color[0]), drawing)
    own = hashlib.sha256(svg.encode()).hexdigest()[:8]
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', drawing))
    drawing = re.sub(r' id="([^"]*)"', lambda name: f' id="{own}-{name[1]}"' if name[1] in used else "", drawing)
    drawing = re.sub(r'(href="|url\()#([^")]+)', rf"\1#{own}-\2", drawing)
    size = re.search(r'viewBox="[^"]*"', drawing)
    role = f'role="img" aria-label="{text_html(alt)}"' if alt else 'aria-hidden="true"'
    opening = f'<svg {size[0] if size else ""} {role} xmlns:xlink="http://www.w3.org/1999/xlink">'
    return opening + drawing[drawing.index(">") + 1 :].strip()


_COLOR_NAMES = {light: f"var(--{name})" for name, (light, _) in COLORS.items()}


def css() -> str:
    """Return the style of all elements inside the class `dpaudit`."""
    light, dark = (" ".join(f"--{name}: {pair[i]};" for name, pair in COLORS.items()) for i in (0, 1))
    return f".dpaudit {{ {light} }}\n@media (prefers-color-scheme: dark) {{ .dpaudit {{ {dark} }} }}\n" + (
        files("dpaudit_reports") / "report.css"
    ).read_text(encoding="utf-8")


def _quiet(quiet: bool) -> str:
    return ' class="quiet"' if quiet else ""


def prose_html(text: Text) -> str:
    """Return the text of a block as HTML."""
    return _span(text) if isinstance(text, str) else "".join(map(_span, text))


def _span(span: Span) -> str:
    match span:
        case str():
            return text_html(span)
        case Strong(text):
            return f"<strong>{text_html(text)}</strong>"
        case Code(text):
            return f"<code>{text_html(text)}</code>"
        case Math(text):
            return re.sub(r"\b[^\W\d_]\b", lambda letter: f"<var>{letter[0]}</var>", text_html(text))
        case Reference(text, part):
            return f'<a href="#part-{int(part)}">{text_html(text)}</a>'
        case Picture(svg, text, wide):
            return _inline(svg(), text) if wide else f'<span class="sample">{_inline(svg(), text)}</span>'
    raise TypeError(f"text must be a string or a span of dpaudit_reports.blocks, got {span!r}")


def text_html(text: str) -> str:
    """Return text as HTML: escaped, also for the value of an attribute."""
    return escape(printable(text), quote=True)
