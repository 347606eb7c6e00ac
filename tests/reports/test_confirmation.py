"""Reports state what fresh runs say about a violation, and its size from their counts; foreign texts are quotations."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from dpaudit.inference.fixed import exact_binomial
from dpaudit.result.confirmation import Confirmation, sizes_significance
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance
from dpaudit_reports.formats import Run, Screen, github_text, json_text
from dpaudit_reports.sections.advice import claimed, data, mechanism_named
from dpaudit_reports.site.index import Entry, columns
from dpaudit_reports.terminal import table_text
from dpaudit_reports.verdicts import shows_size

from . import sample
from .audits import markdown, text_of

LIE = "which the maintainers have confirmed"


def plain(spans: Any) -> str:
    return "".join(span if isinstance(span, str) else span.text for span in spans)


def recorded(**environment: Any) -> AuditResult:
    return dataclasses.replace(sample.violation(), provenance=Provenance.read({**sample.ENVIRONMENT, **environment}))


def outside(words: str) -> str:
    kept, depth = "", 0
    for letter in words:
        depth += letter == "“"
        kept += letter if depth == 0 else ""
        depth -= letter == "”"
    return kept


def with_outcome(**fields: Any) -> AuditResult:
    result = sample.violation()
    evidence: Any = dataclasses.replace(result.evidence, confirmation=Confirmation(**fields))  # type: ignore[type-var]
    return dataclasses.replace(result, evidence=evidence, stopped_by="evidence")


def test_the_size_is_a_bound_from_the_counts_of_the_fresh_runs() -> None:
    result = sample.confirmed(100, 600)
    bound = exact_binomial.mu_lower(100, 1000, 600, 1000, significance=sizes_significance(0.05))
    assert 1.2 < result.mu_lower <= bound + 1e-3
    assert shows_size(result)
    assert not shows_size(sample.confirmed(3, 13, 20, "consistent"))


@pytest.mark.parametrize("counts", [True, False])
def test_a_foreign_reason_is_a_quotation(counts: bool) -> None:
    result = sample.confirmed(100, 600, outcome="not confirmed") if counts else with_outcome(outcome="not confirmed")
    found = dataclasses.replace(result.confirmation, reason=f"no” {LIE} “")  # type: ignore[type-var]
    evidence: Any = dataclasses.replace(result.evidence, confirmation=found)  # type: ignore[type-var]
    result = dataclasses.replace(result, evidence=evidence)
    words = text_of(result)
    assert LIE in words
    assert LIE not in outside(words)


def test_tables_messages_and_sites_state_the_confirmation() -> None:
    result = sample.confirmed(100, 600)
    run = Run.of([result, sample.violation(), sample.no_violation()])
    assert "proven, claimed 1; confirmed" in table_text(Run.of([result]), Screen())
    assert "The claim μ = 1 is false." in github_text(run, Screen()).splitlines()[0]
    assert [one["confirmation"] for one in json.loads(json_text(run, Screen()))] == ["confirmed", None, None]
    entries = [Entry(one, "", "") for one in (result, sample.violation())]
    assert ["; confirmed" in str(cell) for cell in columns(entries)[0].cells] == [True, False]
    assert markdown(result, sample.violation()).count("; confirmed") == 1


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
