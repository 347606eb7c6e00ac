"""Every section copes with a result in which its part is missing."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest

from dpaudit_reports.blocks import Callout, Column, Figure, Heading, KeyValues, Table
from dpaudit_reports.sections import SECTIONS
from dpaudit_reports.sections.bounds import bounds
from dpaudit_reports.sections.provenance import provenance
from dpaudit_reports.sections.witness import witness

from . import sample


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
@pytest.mark.parametrize("make", [sample.empty, sample.violation, sample.inconclusive, sample.hostile])
def test_a_section_begins_with_what_it_is_about(section, make) -> None:
    first, *rest = section(make())
    assert isinstance(first, Heading | Callout)
    assert rest


def test_without_a_witness_the_report_says_so() -> None:
    _, words = witness(dataclasses.replace(sample.violation(), witness=None))
    assert "No rejection region" in words.text


def test_bounds_are_rounded_down_and_marked_where_they_exceed_the_claim() -> None:
    result = dataclasses.replace(sample.violation(), mu_lower=1.04329999)
    table = next(block for block in bounds(result) if isinstance(block, Table))
    assert table.rows[0][1][0].text == "▲ ≥\u00a01.043"
    assert table.rows[0][2] == "≤\u00a01"


def test_a_bound_just_above_the_claim_is_shown_above_it() -> None:
    result = dataclasses.replace(sample.violation(), mu_lower=1.00024)
    table = next(block for block in bounds(result) if isinstance(block, Table))
    assert table.rows[0][1][0].text == "▲ ≥\u00a01.00024"


def test_the_fingerprint_can_be_computed_by_a_reader() -> None:
    result = sample.violation()
    counts = result.evidence.counts.ravel().tolist()
    expected = hashlib.sha256(b"".join(n.to_bytes(8, "little") for n in counts)).hexdigest()
    rows = dict(next(block for block in provenance(result) if isinstance(block, KeyValues)).rows)
    assert rows["evidence"][0].text == f"sha256:{expected}"


def test_whatever_the_environment_holds_is_shown() -> None:
    held = {"a": None, "b": {"c": 1, "d": {"e": [2]}}, "f": [1, None], "g": {}, "h": True}
    result = dataclasses.replace(sample.violation(), environment=held)
    rows = dict(next(block for block in provenance(result) if isinstance(block, KeyValues)).rows)
    assert [rows[key] for key in "abfgh"] == ["–", 'c 1, d {"e": [2]}', "1, None", "–", "True"]


def test_a_figure_is_described_in_words() -> None:
    figures = [block for section in SECTIONS for block in section(sample.violation()) if isinstance(block, Figure)]
    assert len(figures) == 2
    assert all(len(figure.alt) > 40 for figure in figures)


def test_a_table_with_a_cell_too_many_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells"):
        Table((Column("a"),), (("1", "2"),))
