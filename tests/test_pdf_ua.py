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
from pypdf.generic import DictionaryObject

import dpaudit_reports
from dpaudit import audit_scores
from dpaudit.claims import GaussianDP
from dpaudit.result.model import AuditResult
from dpaudit_reports.plots import claim_document

from .reports import sample
from .reports.test_kinds_of_audit import learned, stream
from .reports.test_suites import MIXED, many
from .scored import SURE

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
    return audit_scores(rng.normal(size=200), rng.normal(2.0, 1.0, 200), independence="runs", confidence=SURE, seed=1)


KINDS: dict[str, Callable[[], Any]] = {
    "violation": lambda: [sample.violation()],
    "no violation": lambda: [sample.no_violation()],
    "inconclusive": lambda: [sample.inconclusive()],
    "measurement": lambda: [measurement()],
    "stream": lambda: [stream(2.0, 9)],
    "training": lambda: [learned("sequential")],
    "suite": lambda: many(2),
    "comparison": lambda: dpaudit_reports.comparison(VERSIONS, MISSING),
    "bisection": lambda: dpaudit_reports.comparison(RELEASES),
    "sweep": lambda: dpaudit_reports.sweep_report(MIXED),
    "claim": lambda: claim_document(GaussianDP(1.0)),
}


@cache
def pdf(kind: str, paper: str = "a4") -> bytes:
    return dpaudit_reports.to_pdf(KINDS[kind](), paper=paper)


def checked(content: bytes, folder: Path) -> set[str]:
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


SIMILAR = {"no violation", "inconclusive", "measurement", "stream", "bisection"}
"""Kinds whose parts occur in the other kinds too."""


@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow) if k in SIMILAR else k for k in KINDS])
def test_no_kind_of_pdf_has_a_finding(kind: str, tmp_path: Path) -> None:
    assert checked(pdf(kind), tmp_path) == set()
    assert headings(pdf(kind)) or kind == "claim"  # otherwise the check of empty headings would be empty itself


@pytest.mark.slow
def test_a_pdf_of_us_letter_size_has_no_finding(tmp_path: Path) -> None:
    assert checked(pdf("violation", "letter"), tmp_path) == set()
