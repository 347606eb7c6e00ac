"""Every section accepts a result in which its part is missing."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable

import numpy as np
import pytest

from dpaudit.claims import GaussianDP
from dpaudit.inference.grid import EDGES
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance
from dpaudit.result.sequential_evidence import SequentialEvidence
from dpaudit.result.values import Counts
from dpaudit_reports.blocks import (
    Column,
    Columns,
    Facts,
    Figure,
    Heading,
    Items,
    KeyValues,
    NewPage,
    Numbers,
    Paragraph,
    Table,
    Text,
    Verdict,
)
from dpaudit_reports.claimed import certified_profile
from dpaudit_reports.figures.evidence import witness_scores
from dpaudit_reports.sections import SECTIONS, Section
from dpaudit_reports.sections.answer import verdict_text
from dpaudit_reports.sections.details import bounds, provenance

from ..scored import evidence_of
from . import sample


def _text(words: Text) -> str:
    """Return the first words of a text that have a style."""
    first = words[0]
    assert not isinstance(first, str)
    return first.text


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
@pytest.mark.parametrize("make", [sample.empty, sample.violation, sample.inconclusive, sample.hostile])
def test_a_section_begins_with_what_it_is_about(section: Section, make: Callable[[], AuditResult]) -> None:
    if blocks := section(make()):  # a section that does not apply has no blocks
        first, *rest = blocks
        assert isinstance(first, Heading | Verdict | Numbers | Facts | Figure | Columns | Items | NewPage)
        assert rest or not isinstance(first, Heading)


def test_bounds_are_rounded_down_and_marked_where_they_exceed_the_claim() -> None:
    result = dataclasses.replace(sample.violation(), mu_lower=1.04329999)
    table = next(block for block in bounds(result) if isinstance(block, Table))
    assert _text(table.rows[0][1]) == "▲ ≥\u00a01.043"
    assert table.rows[0][2] == "≤\u00a01"


def test_a_bound_just_above_the_claim_is_shown_above_it() -> None:
    result = dataclasses.replace(sample.violation(), mu_lower=1.00024)
    table = next(block for block in bounds(result) if isinstance(block, Table))
    assert _text(table.rows[0][1]) == "▲ ≥\u00a01.00024"


def test_the_fingerprint_can_be_computed_by_a_reader() -> None:
    result = sample.violation()
    text = json.dumps(result.to_dict()["evidence"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    expected = hashlib.sha256(text.encode()).hexdigest()
    rows = dict(next(block for block in provenance(result) if isinstance(block, KeyValues)).rows)
    assert _text(rows["counts"]) == f"sha256:{expected}"


def test_whatever_the_environment_holds_is_shown() -> None:
    held = {"a": None, "b": {"c": 1, "d": {"e": [2]}}, "f": [1, None], "g": {}, "h": True}
    result = dataclasses.replace(sample.violation(), provenance=Provenance.read(held))
    rows = dict(next(block for block in provenance(result) if isinstance(block, KeyValues)).rows)
    assert [rows[key] for key in "bfh"] == ['c 1, d {"e": [2]}', "1, None", "True"]


def test_every_panel_is_described_in_words() -> None:
    blocks = [block for section in SECTIONS for block in section(sample.violation())]
    blocks += [inner for block in blocks if isinstance(block, Columns) for inner in (*block.left, *block.right)]
    panels = [panel for block in blocks if isinstance(block, Figure) for panel in block.panels]
    assert len(panels) == 2
    assert all(len(panel.alt) > 25 for panel in panels)


def test_the_staircase_of_the_profile_is_what_is_certified() -> None:
    result = sample.violation()
    steps = certified_profile(result)
    assert steps
    for epsilon, delta in steps:
        assert result.epsilon_lower(delta) == epsilon
    assert [epsilon for epsilon, _ in steps] == sorted({epsilon for epsilon, _ in steps})
    assert [delta for _, delta in steps] == sorted((delta for _, delta in steps), reverse=True)
    assert certified_profile(dataclasses.replace(result, bounds_valid=False)) == []


def test_a_report_whose_audit_certifies_nothing_says_why() -> None:
    words = [
        block.text
        for block in bounds(dataclasses.replace(sample.violation(), bounds_valid=False))[1:]
        if isinstance(block, Paragraph)
    ]
    assert "Nothing is certified" in _text(words[0])


def test_the_region_in_the_picture_has_the_counts_of_the_witness() -> None:
    result = sample.violation()
    assert result.witness is not None
    assert isinstance(result.evidence, SequentialEvidence)
    counts0, counts1 = result.evidence.counts[0]
    cuts = np.flatnonzero((counts0[1:-1] > 0) & (counts1[1:-1] > 0) & (counts0[2:] > 0))
    assert len(cuts) > 20
    for cut in cuts.tolist():
        x, y = int(counts0[cut + 1 :].sum()), int(counts1[: cut + 1].sum())
        counts = Counts(false_positives=x, n0=int(counts0.sum()), false_negatives=y, n1=int(counts1.sum()))
        found = dataclasses.replace(result.witness, counts=counts, threshold=float(EDGES[cut]))
        scores = witness_scores(dataclasses.replace(result, witness=found))
        assert scores is not None
        assert scores.counts0[scores.threshold + 1 :].sum() == x
        assert scores.counts1[: scores.threshold + 1].sum() == y


def test_one_run_is_no_runs() -> None:
    guesses = evidence_of("inclusion", 50, 2.0, 1, GaussianDP(1.0))
    result = dataclasses.replace(sample.violation(), method=guesses.kind.method, evidence=guesses, trials_used=1)
    assert "per dataset" not in verdict_text(result)


def test_a_table_with_a_cell_too_many_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells"):
        Table((Column("a"),), (("1", "2"),))
