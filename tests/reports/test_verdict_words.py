"""Reports make no statement about a verdict and its witness that is not proven."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any, Literal

import pytest

from dpaudit import GaussianDP, PureDP, audit
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Counts
from dpaudit.text import Reason, WarningCode
from dpaudit_reports.figures.evidence import evidence_svg
from dpaudit_reports.figures.tradeoff import point_name, small_errors_svg, tradeoff_svg
from dpaudit_reports.rates import RegionStatus, region_status
from dpaudit_reports.verdicts import why_inconclusive, why_void

from . import sample
from .audits import PAIR, as_fixed, dependent, fixed, laplace, markdown, pure_violation, text_of, words_in


def with_witness(result: AuditResult, **fields: Any) -> AuditResult:
    assert result.witness is not None
    return dataclasses.replace(result, witness=dataclasses.replace(result.witness, **fields))


def counted(x: int, n0: int, y: int, n1: int) -> dict[str, Any]:
    """Return the fields of a region with x of n0 outputs of d0 and y of n1 of d1, under the claim G_1."""
    counts = Counts(false_positives=x, n0=n0, false_negatives=n1 - y, n1=n1)
    claimed = float(GaussianDP(1.0).beta(x / n0))
    return {"counts": counts, "alpha": x / n0, "beta": 1 - y / n1, "claimed_beta": claimed, "threshold": math.nan}


FAR = {**counted(0, 5000, 5, 5000), "p_value": 0.9}
NEAR = {**counted(300, 5000, 1675, 5000), "p_value": 0.1}  # 6 % and 33.5 %: G_1 allows 29 % at 6 %


def test_where_nothing_came_near_a_violation_the_report_says_so_and_shows_no_rates() -> None:
    result = with_witness(sample.no_violation(), **FAR)
    assert region_status(result) is RegionStatus.FAR
    found = text_of(result)
    assert "No counted region came near a violation, so" in found
    assert "allows at most" not in found
    assert "output above 0.52" not in found
    assert "dpaudit replay" not in found.replace("dpaudit.replay", "dpaudit replay")
    assert "closest" not in words_in(tradeoff_svg(result))
    assert point_name(result) == ""


def test_what_came_closest_is_not_called_a_witness_and_not_significant() -> None:
    result = with_witness(sample.no_violation(), **NEAR, counted="moving", alpha_upper=math.nan)
    found = text_of(result)
    assert "Closest to a violation (chosen by these counts; not significant)" in found
    assert "So its rates have no intervals" in found
    legend = words_in(tradeoff_svg(with_witness(sample.no_violation(), **NEAR, **LATER)))
    assert "closest" in legend
    assert "witness" not in legend


LATER = {"counted": "later", "alpha_lower": 0.041, "alpha_upper": 0.083, "beta_lower": 0.61, "beta_upper": 0.72}


def test_a_region_that_was_frozen_during_the_audit_has_the_intervals_that_the_result_states() -> None:
    closest = with_witness(sample.no_violation(), **NEAR, **LATER, allowed_upper=0.36)
    found = text_of(closest)
    assert "Closest to a violation (not significant)" in found
    assert "Region and attack were frozen during the audit, and counted on 5,000 later outputs" in found
    assert "4.1 to 8.3" in found
    assert "28 to 39" in found  # the interval of d1's rate
    assert "which hold whenever the audit stops" in found
    for never in ("do not account", "chosen by these counts", "chosen after looking", "Clopper"):
        assert never not in found
    violation = with_witness(sample.violation(), **LATER, **counted(300, 5000, 1675, 5000), allowed_upper=0.3)
    assert "witness" in words_in(tradeoff_svg(violation))
    assert "chosen by these counts" not in words_in(tradeoff_svg(violation))


def test_counts_of_moving_scores_have_no_intervals() -> None:
    moving = {**NEAR, "counted": "moving", "alpha_upper": math.nan, "allowed_upper": math.nan}
    found = text_of(with_witness(sample.violation(), **moving))
    assert "So its rates have no intervals." in found
    assert "The witness is not drawn, since its score changed while the attack learned" in found
    assert "These counts illustrate the proof, which rests on all runs" in found
    assert "5.35 to 6.7" not in found
    for never in ("upper end", "Clopper", "allows at most", "Diamond"):
        assert never not in found
    assert point_name(with_witness(sample.violation(), **moving)) == ""  # a point in the grey area looks like a proof


def test_rates_have_exact_intervals_and_the_allowance_is_at_their_end() -> None:
    # scipy.stats.binomtest(300, 5000).proportion_ci: 0.05358 to 0.06695
    ends = {"alpha_lower": 0.05358, "alpha_upper": 0.06695, "beta_lower": 0.6517, "beta_upper": 0.6781}
    allowed_upper = 1 - float(GaussianDP(1.0).beta(0.06695))
    found = markdown(as_fixed(with_witness(sample.violation(), **NEAR, **ends, allowed_upper=allowed_upper)))
    assert "| 6 % | 5.35 to 6.7 % |" in found
    assert "| 33.5 % |" in found
    allowed = 100 * (1 - GaussianDP(1.0).beta(0.067))  # at the rate that the text shows
    (shown,) = re.findall(r"allows at most ([\d.]+) % of d1, if the rate of d0 is at most 6.7 % \(the end", found)
    assert allowed <= float(shown) <= allowed + 0.1


ALLOWED = re.compile(r"([\d.]+) % of those of d1[.;] (?:T|t)he claim allows at most ([\d.]+) %")


def test_only_a_frozen_region_has_an_allowance() -> None:
    for make in (sample.violation, sample.no_violation):
        result = with_witness(make(), **NEAR, counted="moving", allowed_upper=0.4)
        for said in (str(result), text_of(result)):
            assert "allows at most" not in said
            assert ("not significant" in said) is not result.violated


@pytest.mark.parametrize(
    ("method", "trials", "seeds"),
    [("sequential", 30, (1,)), pytest.param("sequential", 200, (13,), marks=pytest.mark.slow), ("fixed", 60, (24,))],
)
def test_no_true_claim_is_said_to_allow_less_than_was_observed(
    method: Literal["sequential", "fixed"], trials: int, seeds: tuple[int, ...]
) -> None:
    """Laplace(1) satisfies the claim.  The seeds are fixed, and at most of them d1's rate exceeds the limit."""
    for seed in seeds:
        result = audit(laplace(1.0), PureDP(1.0), PAIR, trials=trials, seed=seed, method=method)
        assert not result.violated
        result = with_witness(result, p_value=0.1)  # near, so that every medium describes the region
        for said in (str(result), markdown(result)):
            assert "not significant" in said
            for observed, allowed in ALLOWED.findall(said):
                assert float(observed) <= float(allowed)


@pytest.mark.parametrize(("p_value", "near"), [(0.01, True), (0.2, True), (0.21, False), (1.0, False)])
def test_the_p_value_of_the_counts_decides_what_is_near(p_value: float, near: bool) -> None:
    result = with_witness(sample.no_violation(), p_value=p_value)
    assert result.witness is not None
    assert (region_status(result) is RegionStatus.CLOSEST) is near


def test_a_violation_found_by_stopping_gives_no_estimate_of_its_size() -> None:
    found = text_of(pure_violation())
    assert "The true loss may be much larger: the audit stopped at its first proof and did not measure" in found
    assert "may be much larger" not in text_of(fixed(0.5))


@pytest.mark.parametrize(
    ("stopped_by", "warnings", "reason"),
    [
        (
            "trials",
            (Reason("30 runs per dataset are too few to see gaussian(mu=1.1)", WarningCode.TOO_FEW), "x"),
            "30 runs per dataset are too few",
        ),
        ("trials", ("attack x was dropped", "d0 and d1 are equal"), "d0 and d1 are equal."),
    ],
)
def test_the_box_of_an_inconclusive_audit_gives_its_reason(stopped_by: Any, warnings: Any, reason: str) -> None:
    result = dataclasses.replace(sample.inconclusive(), stopped_by=stopped_by, warnings=warnings)
    found = markdown(result)
    box = found.split("Confidence:")[0]
    assert reason in box.replace("<!-- -->", "")
    assert "too short or too limited" not in found
    assert len(why_inconclusive(result)) == 1


def test_where_nothing_is_certified_nothing_is_shown_as_evidence() -> None:
    result = dependent()
    found = text_of(result)
    assert "Runs depend on each other: 68 of 237 outputs equal the output 25 runs earlier, on d0." in found
    assert "Nothing is certified: the runs depend on each other." in found
    for never in (
        "With 95 % confidence",
        "e-value",
        "p-value",
        "claim refuted at",
        "allows at most",
        "would have been found with",
        "or were not as many",
    ):
        assert never not in found, never
    assert "not valid: the runs depend on each other" in words_in(evidence_svg(result))
    assert "claim refuted" not in words_in(evidence_svg(result))
    for svg in (tradeoff_svg(result), small_errors_svg(result)):
        assert "stroke-dasharray: 4" not in svg
        assert "#d55e00" not in svg.lower()
    assert "observed, not valid" in words_in(tradeoff_svg(result))


@pytest.mark.parametrize(
    ("stopped_by", "why"),
    [("failure", "the mechanism failed after 900 of 100,000 runs, although the number was fixed beforehand")],
)
def test_a_fixed_audit_that_ended_early_says_so(stopped_by: Any, why: str) -> None:
    result = dataclasses.replace(as_fixed(dependent()), stopped_by=stopped_by, warnings=())
    assert why_void(result) == why
    found = text_of(result)
    assert f"Nothing is certified: {why}." in found
    assert f"There is no valid evidence: {why}." in found
