"""Writes a document as HTML, either as one self-contained file or as a fragment for a notebook.

All text is escaped.  In addition, the page's security policy forbids scripts and external files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from dpaudit_reports.blocks import Document
from dpaudit_reports.figures.canvas import COLORS
from dpaudit_reports.html_blocks import Anchors, Writer, text_html


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
    writer = Writer(anchors, names[1:])
    start = f' id="{_TOP}"' if linked else ""
    kind = ' class="name"' if len(document.parts) == 1 else ""  # the verdict is the title of a report of one audit
    head = f'<h1{start}{kind}>{text_html(document.title)}</h1>\n<p class="quiet">{text_html(document.subtitle)}</p>'
    front = writer.blocks(document.front)
    if len(document.parts) == 1:
        # The sections of a single part stand directly under the document's title.
        parts = writer.blocks(document.parts[0].blocks)
    else:
        parts = "\n".join(_part(document, i, writer) for i in range(len(document.parts)))
    back = writer.blocks(document.back)
    if not linked:
        return "\n".join([head, front, parts, back])
    end = f'<p class="quiet"><a href="#{_TOP}"><span aria-hidden="true">↑</span> To the top</a></p>'
    return "\n".join([head, _contents(front, document, writer.parts, back), front, parts, back, end])


def _part(document: Document, place: int, writer: Writer) -> str:
    """Return one of several parts.  It is folded unless it is about a violation; a link to its id opens it."""
    part, kind = document.parts[place], ' class="short"' if document.dense else ""
    mark = f'<span class="sign">{text_html(part.mark)}</span> ' if part.mark else ""
    tone = f' class="{part.tone}"' if part.tone else ""
    title = f"<h2{tone}>{mark}{text_html(part.title)}</h2>"
    if not writer.parts:
        return f"<section{kind}>\n{title}\n{writer.blocks(part.blocks, below=2)}\n</section>"
    name = writer.parts[place]
    back = f'<p class="quiet back"><a href="#{_TOP}"><span aria-hidden="true">↑</span> All audits</a></p>'
    opened = " open" if part.tone == "bad" or part.tone is None else ""
    return (
        f'<section{kind}><details{opened}>\n<summary>{title}</summary>\n<div class="part" id="{name}">\n'
        f"{writer.part(part.blocks, name, below=2)}\n{back}\n</div></details></section>"
    )


def _contents(front: str, document: Document, parts: Sequence[str], back: str) -> str:
    if len(document.parts) == 1:  # two pages, which begin with the verdict
        return ""
    audits = [(name, text_html(part.title)) for name, part in zip(parts, document.parts, strict=True)]
    links = [*_headings(front), *audits, *_headings(back)]
    opened = " open" if len(links) <= 12 else ""
    items = "".join(f'<li><a href="#{name}">{words}</a></li>' for name, words in links)
    return f'<nav aria-label="Contents"><details{opened}><summary>Contents</summary><ul>{items}</ul></details></nav>'


def _headings(html: str) -> list[tuple[str, str]]:
    return [(found[1], found[2]) for found in re.finditer(r'<h2 id="([^"]+)">(.*?)</h2>', html)]


def css() -> str:
    """Return the style of all elements inside the class `dpaudit`."""
    light, dark = (" ".join(f"--{name}: {pair[i]};" for name, pair in COLORS.items()) for i in (0, 1))
    return f".dpaudit {{ {light} }}\n@media (prefers-color-scheme: dark) {{ .dpaudit {{ {dark} }} }}\n" + (
        files("dpaudit_reports") / "report.css"
    ).read_text(encoding="utf-8")
