"""Writes a document as a PDF.  Only this module and its template know about pages.

All content reaches Typst as one JSON string, never as markup.  So a name such as `#panic("x")` is printed unchanged.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import re
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

import matplotlib
import typst

from dpaudit.text import PAPERS, printable
from dpaudit_reports.blocks import Document
from dpaudit_reports.figures import style

# The attempts use Typst's own fonts (Latin, Greek, Cyrillic), which give the same bytes on every machine; those of this
# machine; also Last Resort, a font of matplotlib with a sign for each script; and no PDF/UA, which demands all glyphs.
_UA: dict[str, Any] = {"pdf_standards": ["ua-1"]}
_ATTEMPTS: tuple[tuple[dict[str, Any], str], ...] = (
    ({**_UA, "ignore_system_fonts": True}, ""),
    (_UA, "uses a font of this machine, and its bytes differ on other machines"),
    ({**_UA, "font_paths": [f"{matplotlib.get_data_path()}/fonts/ttf"]}, "shows a sign of their script in their place"),
    ({}, "omits them, and does not state that it follows PDF/UA-1"),
)
_log = logging.getLogger("dpaudit.reports")  # without a handler, warnings go to stderr
_TYPST_PAPERS = dict(zip(PAPERS, ("a4", "us-letter"), strict=True))
_FOR_SCREENS = {"hints"}  # fields that paper cannot show


def compile_pdf(document: Document, paper: str = PAPERS[0]) -> bytes:
    """Return the document as a PDF that states to follow PDF/UA-1, if fonts for all characters are available."""
    if paper not in _TYPST_PAPERS:
        raise ValueError(f"paper must be one of {', '.join(PAPERS)}, got {paper!r}")
    template = (files("dpaudit_reports") / "template.typ").read_bytes()
    with style():
        content = {"document": json.dumps(_plain(document), ensure_ascii=False), "paper": _TYPST_PAPERS[paper]}
    for how, instead in _ATTEMPTS:
        try:
            found = bytes(typst.compile(template, format="pdf", sys_inputs=content, **how))
        except typst.TypstError as error:
            if (lacking := re.search(r"the text `(.*?)` could not be displayed", str(error))) is None:
                raise
            words = f"the fonts of dpaudit lack characters such as {lacking[1]}"
        else:
            if instead:
                _report(f"{words}, so this PDF {instead}")
            return found
    raise AssertionError("without PDF/UA, Typst omits what no font has")


@cache
def _report(words: str) -> None:
    """Log once in each process that other fonts were used than the packaged fonts."""
    _log.warning("%s", words)


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value):
        names = (field.name for field in dataclasses.fields(value) if field.name not in _FOR_SCREENS)
        fields = {name: _plain(getattr(value, name)) for name in names}
        return {"kind": type(value).__name__.lower(), **fields}
    match value:
        case str():
            return printable(value)
        case _ if callable(value):  # the drawing of a panel
            return value()
        case tuple():
            return [_plain(part) for part in value]
        case datetime():
            return [value.year, value.month, value.day, value.hour, value.minute, value.second]
        case _:
            return value
