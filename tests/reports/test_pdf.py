"""The PDF states the content of the result as searchable text, on pages without overflow."""

import dataclasses
import io
import re
from collections.abc import Callable, Iterator, Sequence
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
from dpaudit.result.provenance import Provenance
from dpaudit_reports.plots import claim_document

from ..scored import SURE
from . import sample
from .test_kinds_of_audit import learned, stream
from .test_suites import MIXED, many


def pages(results: list[AuditResult], folder: Path) -> pypdf.PdfReader:
    known = tuple(map(id, results))  # Samples are made once, so their reports are, too.
    if known not in _WRITTEN:
        dpaudit_reports.write_pdf(results, folder / "report.pdf")
        _WRITTEN[known] = results, (folder / "report.pdf").read_bytes()
    return pypdf.PdfReader(BytesIO(_WRITTEN[known][1]))


_WRITTEN: dict[tuple[int, ...], tuple[list[AuditResult], bytes]] = {}  # kept with their results, so that no id recurs


def text(reader: pypdf.PdfReader) -> str:
    """Return the text of the pages with single spaces, since these tests ignore line breaks."""
    assert isinstance(reader.stream, BytesIO)
    return _text(reader.stream.getvalue())


@cache
def _text(content: bytes) -> str:
    """Return the text of a PDF.  Reading takes longer than writing, so equal files are read once."""
    return " ".join(" ".join(page.extract_text() for page in pypdf.PdfReader(BytesIO(content)).pages).split())


def tight(words: str) -> str:
    return "".join(words.split())


_CONFIG = """\
name: opendp-gaussian-sum
source: OpenDP, make_sum >> make_gaussian; rho from the measurement's privacy map
claim: gaussian(mu=1)
mechanism:
  python: quickstart.py:OpenDPSum
  params:
    noise: gaussian
    scale: 1.0
    size: 3
pairs:
- d0: [0, 0, 1]
  d1: [0, 1, 1]
  relation: replace_one
trials: 20000
confidence: 0.95
"""


@cache
def ordinary(make: Callable[[], AuditResult]) -> AuditResult:
    return dataclasses.replace(make(), provenance=dataclasses.replace(make().provenance, audit=_CONFIG))


def titles(outline: Sequence[object], depth: int = 0) -> Iterator[tuple[int, str]]:
    for item in outline:
        if isinstance(item, list):
            yield from titles(item, depth + 1)
        else:
            yield depth, item["/Title"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (sample.violation, "▲ The claim μ = 1 is false. The output is above 0.52 in 404 of 700 runs"),
        (sample.no_violation, "○ No violation found. 20,200 runs per dataset did not refute Gaussian"),
        (sample.inconclusive, "◇ This audit decides nothing. It cannot tell whether the claim of Gaussian"),
    ],
)
def test_an_ordinary_audit_has_two_pages_that_begin_with_its_verdict(
    make: Callable[[], AuditResult], sentence: str, tmp_path: Path
) -> None:
    reader = pages([ordinary(make)], tmp_path)
    assert len(reader.pages) == 2
    assert sentence in text(reader)
    assert reader.stream.seek(0, io.SEEK_END) < 200_000


def test_what_an_auditor_needs_can_be_found_in_the_text(tmp_path: Path) -> None:
    result = sample.violation()
    found = text(pages([result], tmp_path))
    for needed in (
        result.witness.region,
        result.witness.pair,
        result.witness.attack,
        "μ ≥ 1.043",
        "δ = 10⁻⁶",
        "dpaudit run configs/quickstart.yaml --seed 7",
        "opendp 0.14.2",
        "2026-03-01T12:30:00+00:00",
        "sha256:",
    ):
        assert tight(needed) in tight(found)


def test_no_report_says_that_a_mechanism_is_private(tmp_path: Path) -> None:
    """The overview of three audits is read together, and the pages of each audit alone."""
    each = [ordinary(make) for make in (sample.violation, sample.no_violation, sample.inconclusive)]
    summary = pages(each, tmp_path).pages[0].extract_text()
    found = " ".join([summary, *(text(pages([one], tmp_path)) for one in each)]).lower()
    for word in ("is private", "passed", "is safe", "success", "compliant"):
        assert word not in found


def test_many_audits_begin_with_a_summary_and_have_a_part_each(tmp_path: Path) -> None:
    reader = pages([sample.violation(), sample.no_violation(), sample.inconclusive()], tmp_path)
    first = " ".join(reader.pages[0].extract_text().split())
    assert "▲ 1 of 3 claims refuted." in first
    assert all(f"{sign} opendp-gaussian-sum" in first for sign in "▲◇○")
    top = [title for depth, title in titles(reader.outline) if depth == 0]
    assert top[1:] == ["opendp-gaussian-sum"] * 3 + ["Details"], "after the verdict"
    assert len(reader.pages) <= 4


def test_there_is_no_report_about_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one result"):
        dpaudit_reports.write_pdf([], tmp_path / "report.pdf")
    assert not (tmp_path / "report.pdf").exists()


def test_the_same_result_gives_the_same_bytes_also_from_its_file(tmp_path: Path) -> None:
    result = AuditResult.from_dict(sample.violation().to_dict())
    result.to_json(tmp_path / "result.json")
    for name, each in {"a": result, "b": AuditResult.from_json(tmp_path / "result.json")}.items():
        dpaudit_reports.write_pdf([each], tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("word", [sample.HOSTILE, sample.LONG, "]] </text> Механизм ελληνικά"])
def test_names_print_as_they_are_and_never_as_markup(word: str, tmp_path: Path) -> None:
    reader = pages([sample.hostile(word)], tmp_path)
    assert reader.metadata.title == word
    assert tight(text(reader)).count(tight(word)) >= 14


def test_a_script_without_a_font_here_still_gives_a_report_and_what_has_no_shape_is_written_out(tmp_path: Path) -> None:
    reader = pages([sample.hostile("高斯机制 a\x00\u202eb\ud800")], tmp_path)
    assert len(reader.pages) == 2
    assert "a\\x00\\u202eb\\ud800" in text(reader)


def test_a_result_in_which_everything_is_missing_has_a_report(tmp_path: Path) -> None:
    found = text(pages([sample.empty()], tmp_path))
    assert "no pair was tried" in found
    assert "not known" in found
    assert not re.search(r"\b(nan|inf)\b", found)


def test_of_many_pairs_those_with_the_most_evidence_are_listed(tmp_path: Path) -> None:
    reader = pages([sample.crowded(200)], tmp_path)
    assert len(reader.pages) == 2
    assert "197 more pairs are in the result file" in text(reader)


def test_hundreds_of_long_words_and_modules_do_not_keep_a_pdf_from_being_made(tmp_path: Path) -> None:
    """Typst fails if hundreds of matches of one show rule follow each other.  There is no chance in this test."""
    modules = {f"/home/me/project/package/module_{i}.py": "a1b2c3d4" * 8 for i in range(500)}
    packages = {f"a-package-with-a-long-name-{i}": "1.0" for i in range(30)}
    config = "\n".join(f"k{i}: [0.{i:017}]" for i in range(1000))
    result = sample.violation()
    result = dataclasses.replace(
        result,
        provenance=Provenance.read(
            {
                **result.environment,
                "modules of the mechanism": modules,
                "packages of the mechanism": packages,
                "audit": config,
            }
        ),
        warnings=(" ".join(modules),),
    )
    written = pages([result], tmp_path).pages
    said = tight("".join(page.extract_text() for page in written))
    assert "500,listedintheresultfile" in said
    assert "30,listedintheresultfile" in said
    assert "module_499.py" in said  # a file that the warning names
    assert "976morelinesareintheresultfile" in said


# --- every kind of PDF is checked against a part of PDF/UA-1 by pdfua, which does not use Typst


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


@pytest.mark.parametrize("kind", ["suite", "comparison", "sweep"])
def test_reports_of_many_audits_answer_on_a_page_of_at_most_300_words(kind: str) -> None:
    assert len(pypdf.PdfReader(BytesIO(pdf(kind))).pages[0].extract_text().split()) <= 300


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
