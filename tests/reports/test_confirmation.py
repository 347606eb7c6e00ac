"""Reports state what fresh runs say about a violation, and its size from their counts; no sentence contradicts them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from dpaudit.inference.fixed import exact_binomial
from dpaudit.result.confirmation import Confirmation, sizes_significance
from dpaudit.result.model import AuditResult
from dpaudit_reports.formats.facts import Run, Screen
from dpaudit_reports.formats.programs import github_text, json_text
from dpaudit_reports.formats.table import table_text
from dpaudit_reports.sections.pictures import beside
from dpaudit_reports.site.index import Entry, columns
from dpaudit_reports.verdicts import shows_size

from . import sample
from .audits import markdown, text_of
from .test_foreign_words import LIE, outside

CAVEATS = (
    "illustrate",
    "exaggerate",
    "look worse",
    "much larger",
    "stopped at",
    "chosen by these counts",
    "changed while",
    "so it may lie above",
    "rests on",
    "measure: true",
    "measure=True",
    "before you report it",
    "contains no confirmation",
)


def with_outcome(**fields: Any) -> AuditResult:
    """Return a violation without fresh counts."""
    result = sample.violation()
    evidence: Any = dataclasses.replace(result.evidence, confirmation=Confirmation(**fields))  # type: ignore[type-var]
    return dataclasses.replace(result, evidence=evidence, stopped_by="evidence")


def test_a_confirmed_violation_has_the_size_and_the_counts_of_the_fresh_runs_and_no_caveat() -> None:
    result = sample.confirmed(100, 600)
    p_value = exact_binomial.p_value(result.claim, 100, 1000, 600, 1000)
    bound = exact_binomial.mu_lower(100, 1000, 600, 1000, significance=sizes_significance(0.05))
    found = text_of(result).replace("\u00a0", " ")
    assert 1.2 < result.mu_lower <= bound + 1e-3
    assert f"▲ Violation: μ ≥ {int(1000 * result.mu_lower) / 1000}, claimed at most 1 " in found
    assert "600 of 1,000 fresh runs with the record 1 and in 100 of 1,000 with 0 in its place; the claim" in found
    assert "Refuted at 95 % confidence after 900 runs per dataset (p ≤" in found
    assert "Confirmed by 1,000 fresh runs per dataset in 8 new processes: p ≤" in found
    assert p_value < 1e-6
    for caveat in CAVEATS:
        assert caveat not in found, caveat
    panel, _ = beside(result)
    assert panel is not None
    assert "the claim allows at most with 1: " in panel.svg()


def test_counts_that_are_too_few_for_the_size_come_with_the_number_of_runs_that_would_do() -> None:
    result = sample.confirmed(3, 13, 20, "consistent")
    needed = result.runs_for_size
    assert not shows_size(result)
    assert needed is not None
    assert 20 < needed < 1000
    found = markdown(result)
    assert "▲ Violation: the claim is refuted</b>" in found
    assert f"μ is more than claimed; how much more is not measured (about {needed:.0f} fresh runs would)." in found
    assert f"confirm={needed:.0f}" in found
    assert "Consistent with 20 fresh runs per dataset in 8 new processes, which are too few to confirm it" in found
    assert "before you report it" in found
    for never in ("The exact test of both", "measure=True", "much larger", "illustrate", "exaggerate"):
        assert never not in found, never


def test_fresh_counts_without_a_violation_are_not_said_to_prove_it() -> None:
    result = sample.confirmed(300, 310, outcome="not confirmed")
    found = markdown(result)
    assert result.runs_for_size == float("inf")
    assert "how much more is not measured." in found
    assert "These counts alone do not refute the claim." in found
    assert "confirm=" not in found
    assert "The exact test" not in found


def test_without_fresh_counts_the_reason_joins_the_caveats() -> None:
    found = markdown(with_outcome(outcome="not confirmed", reason="no run was left"))
    assert "Not confirmed: “no run was left”." in found
    for kept in ("much larger", "measure=True", "before you report it", "so it may lie above"):
        assert kept in text_of(with_outcome(outcome="not confirmed", reason="no run was left")), kept
    assert "fresh runs with" not in found


@pytest.mark.parametrize("counts", [True, False])
def test_a_foreign_reason_is_a_quotation(counts: bool) -> None:
    result = sample.confirmed(100, 600, outcome="not confirmed") if counts else with_outcome(outcome="not confirmed")
    found = dataclasses.replace(result.confirmation, reason=f"no” {LIE} “")  # type: ignore[type-var]
    evidence: Any = dataclasses.replace(result.evidence, confirmation=found)  # type: ignore[type-var]
    result = dataclasses.replace(result, evidence=evidence)
    for words in (text_of(result), table_text(Run.of([result]), Screen())):
        assert LIE in words
        assert LIE not in outside(words)


def test_tables_messages_and_sites_state_the_confirmation() -> None:
    result = sample.confirmed(100, 600)
    run = Run.of([result, sample.violation(), sample.no_violation()])
    words = "onfirmed by 1,000 fresh runs per dataset in 8 new processes: p\u00a0≤"
    shown = table_text(Run.of([result]), Screen())
    assert words in shown
    assert "much larger" not in shown
    assert words in github_text(run, Screen()).splitlines()[0]
    assert [one["confirmation"] for one in json.loads(json_text(run, Screen()))] == ["confirmed", None, None]
    entries = [Entry(one, "", "") for one in (result, sample.violation())]
    assert ["; confirmed" in str(cell) for cell in columns(entries)[0].cells] == [True, False]
    assert markdown(result, sample.violation()).count("; confirmed") == 1
