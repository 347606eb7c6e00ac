"""Every kind of PDF is checked against a part of PDF/UA-1 by pdfua, which does not use Typst.

pdfua 0.1.3 has 12 checks, which cover 16 of the 106 rules of veraPDF's profile of PDF/UA-1.  Its check of empty
headings raises an exception on our PDFs, so a check in this file replaces it.  No test fails by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pdfua
import pypdf
import pytest
from pypdf.generic import DictionaryObject, NameObject

import dpaudit_reports
from dpaudit import audit_scores
from dpaudit.claims import GaussianDP
from dpaudit.result.model import AuditResult
from dpaudit_reports.claim_document import claim_document

from .reports import sample
from .reports.test_kinds_of_audit import stream
from .reports.test_suites import many
from .reports.test_sweep_reports import MIXED
from .reports.test_training import learned

HEADINGS = "UA-14-001"
"""pdfua's check of empty headings, which raises an exception if a heading has a list of contents."""

VERSIONS = {
    "sum": {f"1.{i}": result for i, result in enumerate([sample.violation(), sample.no_violation()])},
    "count": {"1.1": sample.inconclusive()},
}
MISSING = {("count", "1.0"): "installing it failed"}
RELEASES = {"sum": {f"1.{i}": result for i, result in enumerate(many(7))}}


def measurement() -> AuditResult:
    rng = np.random.default_rng(1)
    return audit_scores(rng.normal(size=200), rng.normal(2.0, 1.0, 200), independence="runs", seed=1)


KINDS: dict[str, Callable[[], Any]] = {
    "violation": lambda: [sample.violation()],
    "no violation": lambda: [sample.no_violation()],
    "inconclusive": lambda: [sample.inconclusive()],
    "nothing recorded": lambda: [sample.empty()],
    "measurement": lambda: [measurement()],
    "stream": lambda: [stream(2.0, 9)],
    "training": lambda: [learned("sequential")],
    "suite": lambda: many(5),
    "comparison": lambda: dpaudit_reports.comparison(VERSIONS, MISSING),
    "comparison --full": lambda: dpaudit_reports.comparison({"sum": {"1.0": sample.violation()}}, full=True),
    "bisection": lambda: dpaudit_reports.comparison(RELEASES),
    "sweep": lambda: dpaudit_reports.sweep_report(MIXED),
    "claim": lambda: claim_document(GaussianDP(1.0)),
}


@cache
def pdf(kind: str, paper: str = "a4") -> bytes:
    return dpaudit_reports.to_pdf(KINDS[kind](), paper=paper)


def checked(content: bytes, folder: Path) -> set[str]:
    """Return the numbers of the checks that find a fault."""
    (folder / "report.pdf").write_bytes(content)
    report = pdfua.validate(str(folder / "report.pdf"))
    assert len(report.outcomes) >= 12
    assert {outcome.rule_id for outcome in report.skipped} <= {HEADINGS}
    own = {HEADINGS} if any(not has_content(heading) for heading in headings(content)) else set()
    return {finding.rule_id for finding in report.findings} | own


def headings(content: bytes) -> list[Any]:
    tree = pypdf.PdfReader(BytesIO(content)).root_object.get("/StructTreeRoot")
    roles = {f"/H{level}" for level in range(1, 7)}
    return [node for node in below(tree and tree.get_object()) if node.get("/S") in roles]


def below(node: Any) -> Iterator[Any]:
    """Yield the elements of a structure tree, and the descriptions of page content, in reading order."""
    if isinstance(node, DictionaryObject):
        yield node
        for child in children(node):
            yield from below(child)


def children(node: Any) -> list[Any]:
    inside = node.get("/K")
    parts = inside.get_object() if inside is not None else []
    return [part.get_object() for part in (parts if isinstance(parts, list) else [parts])]


def has_content(element: Any) -> bool:
    """Whether an element contains content of a page, which is a number or a dictionary of type MCR."""
    return any(isinstance(child, int) for node in below(element) for child in children(node)) or any(
        node.get("/Type") == "/MCR" for node in below(element)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_pdf_has_a_finding(kind: str, tmp_path: Path) -> None:
    assert checked(pdf(kind), tmp_path) == set()
    assert headings(pdf(kind)) or kind == "claim"  # otherwise the check of empty headings would be empty itself


def test_a_pdf_of_us_letter_size_has_no_finding(tmp_path: Path) -> None:
    assert checked(pdf("violation", "letter"), tmp_path) == set()


def changed(change: Callable[[Any], None], kind: str = "violation") -> bytes:
    """Return a PDF after a change."""
    writer = pypdf.PdfWriter(clone_from=BytesIO(pdf(kind)))
    change(writer)
    target = BytesIO()
    writer.write(target)
    return target.getvalue()


def elements(writer: Any, role: str) -> list[Any]:
    return [node for node in below(writer.root_object["/StructTreeRoot"]) if node.get("/S") == role]


def without(key: str) -> Callable[[Any], None]:
    return lambda writer: writer.root_object.pop(NameObject(key))


def untitled(writer: Any) -> None:
    writer.metadata = {}


def undescribed(writer: Any) -> None:
    del elements(writer, "/Figure")[0]["/Alt"]


def headless(writer: Any) -> None:
    for cell in elements(writer, "/TH"):
        cell[NameObject("/S")] = NameObject("/TD")


def hollow(writer: Any) -> None:
    del elements(writer, "/H1")[0]["/K"]


def outside(writer: Any) -> None:
    """Add text that belongs to no element."""
    contents = writer.pages[0]["/Contents"].get_object()
    contents.set_data(contents.get_data() + b"\nBT (word) Tj ET")


def unlabelled(writer: Any) -> None:
    for page in writer.pages:
        for link in page.get("/Annots", []):
            del link.get_object()["/Contents"]


FAULTS: dict[str, tuple[Callable[[Any], None], str]] = {
    "no structure": (without("/StructTreeRoot"), "UA-01-005"),
    "not marked as tagged": (without("/MarkInfo"), "UA-01-002"),
    "text outside the structure": (outside, "UA-01-003"),
    "no language": (without("/Lang"), "UA-06-001"),
    "no title": (untitled, "UA-07-001"),
    "the title is not displayed": (without("/ViewerPreferences"), "UA-07-002"),
    "a figure without a description": (undescribed, "UA-13-004"),
    "an empty heading": (hollow, HEADINGS),
    "tables without header cells": (headless, "UA-15-003"),
    "not identified as PDF/UA": (without("/Metadata"), "UA-28-004"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found(fault: str, tmp_path: Path) -> None:
    """Without this test, checks that never find anything would go unnoticed."""
    change, expected = FAULTS[fault]
    assert expected in checked(changed(change), tmp_path)


def test_links_without_descriptions_are_found(tmp_path: Path) -> None:
    assert "UA-18-005" in checked(changed(unlabelled, "suite"), tmp_path)


def test_an_unchanged_copy_has_no_finding(tmp_path: Path) -> None:
    """The findings above come from the changes and not from the copying."""
    assert checked(changed(lambda writer: None), tmp_path) == set()
