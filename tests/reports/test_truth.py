"""Reports make no statement about one run, several audits or the audited code that is not proven."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pypdf
import pytest

import dpaudit_reports
from dpaudit.engine.scores import audit_one_run
from dpaudit.result.model import AuditResult
from dpaudit.result.provenance import Provenance
from dpaudit.result.suite import promised_together
from dpaudit_reports.figures.tradeoff import point_name, tradeoff_svg

from . import sample
from .audits import markdown, text_of, words_in


@functools.cache
def one_run(shift: float) -> AuditResult:
    rng = np.random.default_rng(1)
    included = rng.random(600) < 0.5
    return audit_one_run(rng.normal(size=600) + shift * included, included, "gaussian(mu=1)", name="one run")


@pytest.mark.parametrize("shift", [1.0, 4.0])
def test_a_report_of_one_run_tells_guesses_and_nothing_about_pairs(shift: float) -> None:
    result = one_run(shift)
    found = text_of(result)
    if result.violated:
        guessed = result.evidence
        assert f"{guessed.right} of the {guessed.n1} highest scores are of included canaries" in found  # type: ignore[attr-defined]
    for never in (
        "d0",
        "d1",
        "No pair",
        "No attack",
        "Runs per dataset",
        "learned from the same runs",
        "Closest to a violation",
        "Witness",
        "allows at most",
        "pairs",
    ):
        assert not re.search(rf"\b{never}\b", found), never
    assert point_name(result) == ""
    assert "#d55e00" not in tradeoff_svg(result).lower()
    assert "upper bound" not in words_in(tradeoff_svg(result))


def of_command(make: Callable[[], AuditResult], name: str = "a", **differs: Any) -> AuditResult:
    known = {"number of the command": "1a", "audits of the command": 2, "confidence of the command": 0.99}
    environment = {**sample.ENVIRONMENT, **known, **{key.replace("_", " "): value for key, value in differs.items()}}
    provenance = Provenance.read(environment)
    return dataclasses.replace(make(), name=name, confidence=0.9951, _computed_at=None, provenance=provenance)


def test_audits_of_one_command_share_its_promise() -> None:
    found = text_of(of_command(sample.violation), of_command(sample.no_violation, "b"))
    assert (
        "If all 2 claims were true, this command would refute one or more of them with probability at most 1 %."
        in found.replace("\u00a0", " ")
    )
    assert "e-BH" not in found
    assert "the verdicts do not hold jointly" not in found
    separate = text_of(sample.violation(), sample.no_violation())
    assert "e-BH" in separate
    assert "the verdicts do not hold jointly" in separate


@pytest.mark.parametrize(
    "make",
    [
        lambda one: [one, sample.no_violation()],
        lambda one: [one, of_command(sample.violation, "b", number_of_the_command="2b")],
        lambda one: [one, of_command(sample.violation, "b", audits_of_the_command=3)],
    ],
)
def test_audits_that_are_not_of_one_command_share_no_promise(make: Callable[[AuditResult], list[AuditResult]]) -> None:
    assert promised_together(make(of_command(sample.violation))) == ""


def test_runs_on_several_pairs_are_said_to_be_the_sum() -> None:
    result = dataclasses.replace(sample.violation(), pairs=sample.violation().pairs * 10)
    assert "900 runs per dataset in total, over 10 pairs" in markdown(result)


def test_the_version_of_the_library_stands_by_the_claim(tmp_path: Path) -> None:
    known = {
        "mechanism": "sums.py:noisy_sum",
        "packages of the mechanism": {"opendp": "0.16.0"},
        "SHA-256 of the mechanism's file": "ab" * 32,
        "claim stated by": "the config",
    }
    result = dataclasses.replace(sample.violation(), provenance=Provenance.read({**sample.ENVIRONMENT, **known}))
    dpaudit_reports.write_pdf([result], tmp_path / "report.pdf")
    first = " ".join(pypdf.PdfReader(tmp_path / "report.pdf").pages[0].extract_text().split())
    for needed in ("sums.py:noisy_sum", "opendp 0.16.0", "the config"):
        assert needed in first
