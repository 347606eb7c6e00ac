"""Texts of a stranger's result file are quotations: page 1 shows no foreign sentence as a statement of dpaudit."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from dpaudit.result.consistency import contradictions
from dpaudit.result.model import AuditResult
from dpaudit.result.own_forms import is_feature, own_command, package_words, region_words
from dpaudit.result.provenance import Provenance
from dpaudit_reports.audited import audited
from dpaudit_reports.claim_words import least_found_in_words
from dpaudit_reports.frequencies import frequencies, in_words
from dpaudit_reports.repeat import how_to_repeat
from dpaudit_reports.sections.answers import claimed, data
from dpaudit_reports.unseen import assumption

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


HONEST = [
    "output above 0.5",
    "output at most 3 or missing",
    "output between -1e+10 and 2.5 or above 7 or nan",
    "output in {0, 1, 12}",
    "output in {True}",
    "output in {(1, 2), None}",
    "estimated log-likelihood ratio above 1.5",
    "low-order bits of the numbers: estimated log-likelihood ratio above -0.2",
    "running time: estimated log-likelihood ratio above 0",
    "estimated log-likelihood ratio above 1.5; nearly the same as: output[1] above 3.2",
    "output[1] is odd",
    "output['age'][0] above 40 or missing",
    "place of the largest number below 2.5",
    "not: output is zero",
]
FOREIGN = [
    f"output above 0.5, {LIE} as a leak",
    f"output in {{{LIE}}}",
    f"output above 0.5 or {LIE}",
    f"estimated log-likelihood ratio above 1; nearly the same as: {LIE}",
    f"running time: {LIE}",
    f"output above 0.5\n{LIE}",
    f"output above 0.5” {LIE} “",
]


@pytest.mark.parametrize("region", HONEST)
def test_regions_that_dpaudit_describes_are_no_quotations(region: str) -> None:
    assert region_words(region) == region


@pytest.mark.parametrize("region", FOREIGN)
def test_a_foreign_region_is_a_quotation(region: str) -> None:
    result = sample.violation()
    assert result.witness is not None
    result = dataclasses.replace(result, witness=dataclasses.replace(result.witness, region=region))
    found = frequencies(result)
    assert found is not None
    words = "".join(in_words(result, found))
    assert LIE in words
    assert LIE not in outside(words)
    assert LIE not in outside(str(result))


def test_a_feature_with_a_foreign_name_is_a_quotation() -> None:
    assert is_feature("output[2] above 1e-05")
    assert not is_feature(f"{LIE} above 3")
    assert not is_feature("output[which is confirmed] is odd")


@pytest.mark.parametrize(
    "environment",
    [
        {"claim stated by": f"the config, {LIE}"},
        {"source": f"the manual. dpaudit proves, {LIE}, the claim"},
        {"packages of the mechanism": {"numpy": f"2.4.6, {LIE}"}},
        {"packages of the mechanism": {f"numpy {LIE}": "2.4.6"}},
        {"mechanism": f"a.py:f, {LIE}"},
        {f"sha of the mechanism, {LIE}:": "ab" * 32},
        {"SHA-256 of the mechanism's file": f"abc, {LIE}"},
        {"file of the mechanism": {"path": "a.py", "sha256": LIE}},
    ],
)
def test_a_foreign_author_source_or_package_is_a_quotation(environment: Any) -> None:
    result = recorded(**environment)
    assert LIE not in outside(plain(claimed(result)))
    assert LIE not in outside(plain(audited(result)))


def test_honest_packages_and_hashes_are_no_quotations() -> None:
    assert package_words("opendp", "0.16.0+local.1") == "opendp 0.16.0+local.1"
    honest = {"mechanism": "sums.py:noisy_sum", "SHA-256 of the mechanism's file": "ab" * 32}
    words = plain(claimed(recorded(**honest, **{"claim stated by": "the config"})))
    assert "stated in the config of this audit" in words
    assert f"SHA-256 of the mechanism's file {'ab' * 32}" in words
    assert "“" not in words


def test_a_foreign_relation_or_difference_is_a_quotation() -> None:
    result = sample.violation()
    honest = plain(data(result))
    assert "one record replaced" in honest
    assert "“" not in honest
    changes: list[Any] = [{"relation": f"add remove, {LIE}", "d0": "a", "d1": "b"}, {"difference": f"a row, {LIE}"}]
    for change in changes:
        row = dataclasses.replace(result.pairs[0], **change)
        words = plain(data(dataclasses.replace(result, pairs=(row,))))
        assert LIE in words
        assert LIE not in outside(words)


@pytest.mark.parametrize("claim", [f"gaussian(mu=1.12) # {LIE}", f"gaussian(mu=1.12)\n# {LIE}"])
def test_a_comment_in_a_detectable_violation_is_a_contradiction_and_a_quotation(claim: str) -> None:
    seen = dataclasses.replace(
        sample.no_violation().detectable,
        claim=claim,
        assumption=f"if the mechanism's trade-off curve on this pair is that of {claim} and the attack is optimal",
    )
    result = dataclasses.replace(sample.no_violation(), detectable=seen)
    assert any("its detectable violation is not a claim" in one for one in contradictions(result))
    assert LIE not in outside(plain(least_found_in_words(result)))
    assert LIE not in outside(assumption(result))
    assert LIE not in outside(str(result))


@pytest.mark.parametrize(
    "command",
    [
        "curl -s https://example.org/x | sh",
        "curl -s https://example.org/x | sh # '",
        "sh -c 'dpaudit run a.yaml'",
        "dpaudit run a.yaml\nsh",
        "python -m http.server",
        "",
        "'",
    ],
)
def test_a_command_of_another_program_is_not_recommended(command: str) -> None:
    assert not own_command(command)
    words = plain(how_to_repeat(recorded(command=command)))
    assert "The whole audit" not in words
    assert len(command) < 2 or command not in outside(words)


@pytest.mark.parametrize(
    "command", ["dpaudit run a.yaml", "pytest tests", "python -m pytest -k a", "python3 -m dpaudit run a"]
)
def test_a_command_of_dpaudit_is_recommended(command: str) -> None:
    assert f"The whole audit: {command}." in plain(how_to_repeat(recorded(command=command)))
