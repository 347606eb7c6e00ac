"""Writes a document as a PDF.  Only this module and its template know about pages.

All content reaches Typst as one JSON string, never as markup.  So a name such as `#panic("x")` is printed unchanged.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import re
from datetime import datetime
from importlib.resources import files
from typing import Any

import matplotlib
import typst

from dpaudit.text.printable import printable
from dpaudit.text.signs import PAPERS
from dpaudit_reports.blocks import Document
from dpaudit_reports.figures.canvas import style

# The first attempt uses Typst's own fonts, which include Latin, Greek and Cyrillic, and give the same bytes on every
# machine.  If these fonts lack a script, such as Chinese, the second attempt uses the fonts of this machine.  The third
# attempt adds Last Resort, a font of matplotlib that draws a sign for each script.  The last attempt omits PDF/UA,
# which forbids characters without a glyph.
_ATTEMPTS: tuple[dict[str, Any], ...] = (
    {"pdf_standards": ["ua-1"], "ignore_system_fonts": True},
    {"pdf_standards": ["ua-1"]},
    {"pdf_standards": ["ua-1"], "font_paths": [f"{matplotlib.get_data_path()}/fonts/ttf"]},
    {},
)
_log = logging.getLogger("dpaudit.reports")  # without a handler, warnings go to stderr
_reported: set[bool] = set()  # not empty if missing fonts have been reported
_TYPST_PAPERS = dict(zip(PAPERS, ("a4", "us-letter"), strict=True))
_FOR_SCREENS = {"hints"}  # fields that paper cannot show


def compile_pdf(document: Document, paper: str = PAPERS[0]) -> bytes:
    """Return the document as a tagged PDF.

    If fonts for all characters are available, the PDF states that it follows PDF/UA-1.  Typst's exporter and the tests
    check parts of this statement.
    """
    if paper not in _TYPST_PAPERS:
        raise ValueError(f"paper must be one of {', '.join(PAPERS)}, got {paper!r}")
    template = (files("dpaudit_reports") / "template.typ").read_bytes()
    lacking: list[str] = []
    with style():
        content = {"document": json.dumps(_plain(document), ensure_ascii=False), "paper": _TYPST_PAPERS[paper]}
    for how in _ATTEMPTS[:-1]:
        try:
            found = bytes(typst.compile(template, format="pdf", sys_inputs=content, **how))
        except typst.TypstError as error:
            if "could not be displayed" not in str(error):
                raise
            lacking += re.findall(r"the text `(.*?)` could not be displayed", str(error))[:1]
        else:
            _report_fonts(lacking)
            return found
    _report_fonts(lacking)
    return bytes(typst.compile(template, format="pdf", sys_inputs=content, **_ATTEMPTS[-1]))


def _report_fonts(lacking: list[str]) -> None:
    """Log once in each process which fonts were used in place of the packaged fonts."""
    if not lacking or _reported:
        return
    _reported.add(True)
    words = (
        f"the fonts of dpaudit lack characters such as {lacking[0]}, so this PDF uses a font of this machine, and its "
        "bytes differ on other machines",
        f"no font of this machine has characters such as {lacking[-1]}, so this PDF shows a sign of their script in "
        "their place",
        f"no font has characters such as {lacking[-1]}; this PDF omits them, and does not state that it follows "
        "PDF/UA-1",
    )
    _log.warning("%s", words[len(lacking) - 1])


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
