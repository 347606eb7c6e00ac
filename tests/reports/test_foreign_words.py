"""Texts of a stranger's result file are quotations: page 1 shows no foreign sentence as a statement of dpaudit."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance
from dpaudit_reports.sections.advice import claimed, data, mechanism_named

from . import sample

LIE = "which the maintainers have confirmed"


def plain(spans: Any) -> str:
    """Return the text of spans."""
    return "".join(span if isinstance(span, str) else span.text for span in spans)


def recorded(**environment: Any) -> AuditResult:
    """Return a violation with other entries in its provenance."""
    return dataclasses.replace(sample.violation(), provenance=Provenance.read({**sample.ENVIRONMENT, **environment}))


def outside(words: str) -> str:
    """Return the parts of a text outside quotation marks."""
    kept, depth = "", 0
    for letter in words:
        depth += letter == "“"
        kept += letter if depth == 0 else ""
        depth -= letter == "”"
    return kept


@pytest.mark.parametrize(
    "environment",
    [
        {"claim stated by": f"the config, {LIE}"},
        {"source": f"the manual. dpaudit proves, {LIE}, the claim"},
        {"mechanism": f"a.py:f, {LIE}"},
    ],
)
def test_a_foreign_author_source_or_mechanism_is_a_quotation(environment: Any) -> None:
    result = recorded(**environment)
    assert LIE not in outside(plain(claimed(result)))
    assert LIE not in outside(mechanism_named(result))


def test_a_foreign_difference_is_a_quotation() -> None:
    result = sample.violation()
    honest = plain(data(result))
    assert "one record replaced" in honest
    assert "“" not in honest
    row = dataclasses.replace(result.pairs[0], difference=f"a row, {LIE}")
    words = plain(data(dataclasses.replace(result, pairs=(row,))))
    assert LIE in words
    assert LIE not in outside(words)
