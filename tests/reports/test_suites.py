"""A report of several audits is short: an overview, a third of a page for each audit, and everything else once."""

from __future__ import annotations

import dataclasses
from functools import cache
from io import BytesIO

import numpy as np
import pypdf
import pytest

import dpaudit_reports
from dpaudit import audit_scores
from dpaudit.claims import GaussianDP, PureDP, TradeoffFunction, ZeroConcentratedDP
from dpaudit.claims.tabulated import NO_CLAIM
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance
from dpaudit_reports.blocks import Document, Entries, Picture, Table
from dpaudit_reports.claimed import Ranges, ranges
from dpaudit_reports.document import document
from dpaudit_reports.sections.several_audits import overview

from . import audits, sample

CONFIG = "name: a\nclaim: gaussian(mu=1)\nmechanism: quickstart.opendp_sum:gaussian\n" + "- one line of a config\n" * 15


@cache
def kinds() -> tuple[AuditResult, ...]:
    about = Provenance.read({**sample.ENVIRONMENT, "audit": CONFIG})
    made = (sample.violation(), sample.no_violation(), sample.inconclusive())
    return tuple(dataclasses.replace(result, provenance=about) for result in made)


def many(number: int) -> list[AuditResult]:
    """Return results of all verdicts.  Equal results are the same object, since each computes its bounds once."""
    return [kinds()[i % 3] for i in range(number)]


@pytest.mark.parametrize(("number", "most"), [(12, 10), pytest.param(50, 35, marks=pytest.mark.slow)])
def test_a_suite_has_few_pages(number: int, most: int) -> None:
    assert len(pypdf.PdfReader(BytesIO(dpaudit_reports.to_pdf(many(number)))).pages) <= most


def test_pages_may_be_of_us_letter_size() -> None:
    for paper, size in (("letter", (612, 792)),):
        pages = pypdf.PdfReader(BytesIO(dpaudit_reports.to_pdf(many(2), paper=paper))).pages
        assert all((round(page.mediabox.width), round(page.mediabox.height)) == size for page in pages)
    with pytest.raises(ValueError, match="paper must be one of a4, letter, got 'a3'"):
        dpaudit_reports.to_pdf(many(1), paper="a3")


@cache
def twelve() -> Document:
    return audits.undrawn(document(many(12)))


def test_shared_facts_are_stated_once() -> None:
    page = dpaudit_reports.to_html(twelve())
    assert page.count("opendp 0.14.2") == 1
    assert page.count("one line of a config") == 12 * 15
    assert page.count("Not covered") == 12
    assert "404 of 700 runs" in page


def test_the_full_form_has_every_section_of_every_audit() -> None:
    full = document(many(2), full=True)
    alone = [document([result]).parts[0].blocks for result in many(2)]
    assert [list(map(type, part.blocks)) for part in full.parts] == [list(map(type, blocks)) for blocks in alone]
    assert not full.dense


def test_a_report_of_one_audit_is_not_short() -> None:
    assert not document([sample.violation()]).dense
    assert not document([sample.violation()]).back


def test_fifty_audits_fit_into_one_comment() -> None:
    text = dpaudit_reports.to_markdown(many(50))
    assert text.count("<details>") == 50
    assert "do not fit" not in text
    assert "certified 0.871 times the claim; blind up to 1.12 times the claim" in text


def test_the_ranges_are_multiples_of_the_claim() -> None:
    assert ranges(sample.no_violation()) == Ranges(0.8719, 1.12)
    assert ranges(sample.violation()) == Ranges(1.0432, float("inf"))
    assert ranges(sample.inconclusive()) == Ranges(0.0, float("inf"))
    assert ranges(audits.dependent()) == Ranges(0.0, float("inf"))


def test_a_claim_of_another_family_than_its_detectable_violation_has_a_blind_range() -> None:
    """The expected value is epsilon at delta = 10^-6 of both curves, from the claims themselves."""
    claim = ZeroConcentratedDP(0.5)
    result = dataclasses.replace(sample.no_violation(), claim=claim)
    found = ranges(result)
    assert found is not None
    assert found.blind_until == pytest.approx(max(1.0, GaussianDP(1.12).epsilon(1e-6) / claim.epsilon(1e-6)))


@pytest.mark.parametrize("claim", [NO_CLAIM, PureDP(0.0)])
def test_what_has_no_place_on_the_scale_is_said_in_words(claim: TradeoffFunction) -> None:
    result = dataclasses.replace(sample.inconclusive(), claim=claim)
    assert ranges(result) is None
    table = next(block for block in document([result, sample.violation()]).front if isinstance(block, Table))
    assert [type(row[1]) for row in table.rows] == [tuple, str]


def test_long_names_configs_and_warnings_do_not_fill_pages() -> None:
    about = Provenance.read({"audit": "\n".join(f"k{i}: [{i}]" for i in range(5000))})
    loud = dataclasses.replace(sample.long(), warnings=("w" * 5000,) * 50, provenance=about)
    report = document([loud, sample.hostile()])
    entries = next(block for block in report.back if isinstance(block, Entries))
    assert len(entries.parts) == 2
    assert len(dpaudit_reports.to_markdown([loud, loud])) < 20_000
    shown = dpaudit_reports.to_html(audits.undrawn(report))
    assert "47 more warnings are in the result file" in shown
    assert "4,976 more lines are in the result file" in shown


def test_a_measurement_states_its_bound_without_a_claimed_value() -> None:
    rng = np.random.default_rng(1)
    result = audit_scores(rng.normal(size=50), rng.normal(2, 1, 50), independence="runs", seed=1)
    table = next(block for block in overview([result, sample.violation()]) if isinstance(block, Table))
    words = ["".join(span if isinstance(span, str) else span.text for span in row[2]) for row in table.rows]
    assert "/" not in words[0]
    assert "∞" not in words[0]
    assert "/" in words[1]


def test_each_strip_is_described() -> None:
    table = next(block for block in twelve().front if isinstance(block, Table))
    words = {cell.text for row in table.rows for cell in row[1] if isinstance(cell, Picture)}
    assert words == {
        "certified 1.04 times the claim",
        "certified 0 times the claim; no violation would have been found",
        "certified 0.871 times the claim; blind up to 1.12 times the claim",
    }
    assert [part.title for part in twelve().parts] == ["opendp-gaussian-sum"] * 12
