"""What each kind of report says, and what it must never say.

Audits here have seeds, or are made by hand: nothing in this file can fail by chance.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pypdf
import pytest
from matplotlib.figure import Figure as Canvas
from rich.console import Console

import dpaudit_reports
from dpaudit import ApproxDP, GaussianDP, LaplaceDP, Pair, PureDP, audit, parse_claim
from dpaudit.engine.one_run import audit_one_run
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import promised_together
from dpaudit.result.values import Counts, Verdict, Witness
from dpaudit_reports import rates
from dpaudit_reports.bounds import has_band
from dpaudit_reports.claim_plots import draw_profiles
from dpaudit_reports.claimed import certified_of_claimed, enlarged, headline
from dpaudit_reports.document import document
from dpaudit_reports.figures.evidence import evidence_svg
from dpaudit_reports.figures.profile import profile_svg
from dpaudit_reports.figures.tradeoff import point_name, small_errors_svg, tradeoff_svg
from dpaudit_reports.rates import Standing, standing
from dpaudit_reports.reasons import why_inconclusive, why_void
from dpaudit_reports.terminal import terminal

from . import sample

PAIR = Pair([0.0], [1.0])


def laplace(scale: float) -> Callable[[list[float], np.random.Generator], float]:
    return lambda dataset, rng: float(sum(dataset) + rng.laplace(scale=scale))


def text_of(*results: AuditResult) -> str:
    """All text of the page, which is that of the PDF, with ordinary single spaces; words in figures are left out."""
    page = dpaudit_reports.to_html(list(results))
    page = re.sub(r"<style>.*?</style>|<svg.*?</svg>|<title>.*?</title>", "", page, flags=re.DOTALL)
    inline = re.sub(r"</?(?:code|strong|var|a)\b[^>]*>", "", page)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", inline)).split())


def markdown(*results: AuditResult) -> str:
    return " ".join(dpaudit_reports.to_markdown(list(results)).replace("\u00a0", " ").split())


def words_in(svg: str) -> str:
    return " ".join(
        "".join(text.itertext()) for text in ElementTree.fromstring(svg).iter() if text.tag.endswith("}text")
    )


def with_witness(result: AuditResult, **fields: Any) -> AuditResult:
    assert result.witness is not None
    return dataclasses.replace(result, witness=dataclasses.replace(result.witness, **fields))


def counted(x: int, n0: int, y: int, n1: int) -> dict[str, Any]:
    """A region with x of n0 outputs of d0 and y of n1 of d1, under the claim G_1."""
    counts = Counts(false_positives=x, n0=n0, false_negatives=n1 - y, n1=n1)
    claimed = float(GaussianDP(1.0).beta(x / n0))
    return {"counts": counts, "alpha": x / n0, "beta": 1 - y / n1, "claimed_beta": claimed, "threshold": math.nan}


@functools.cache
def pure_violation() -> AuditResult:
    return audit(laplace(0.6), "pure(epsilon=1.0000000000000022)", PAIR, trials=5000, seed=1, name="pure")


@functools.cache
def fixed(scale: float) -> AuditResult:
    return audit(laplace(scale), "pure(epsilon=1)", PAIR, trials=1000, seed=1, method="fixed", name="fixed")


@functools.cache
def one_run(shift: float) -> AuditResult:
    rng = np.random.default_rng(1)
    included = rng.random(2000) < 0.5
    return audit_one_run(rng.normal(size=2000) + shift * included, included, "gaussian(mu=1)", name="one run")


def dependent() -> AuditResult:
    signs = "68 of 237 outputs equal the output 25 runs earlier, on d0"
    return dataclasses.replace(
        sample.violation(),
        verdict=Verdict.INCONCLUSIVE,
        certified=False,
        p_value=1.0,
        e_value=1.0,
        mu_lower=0.0,
        warnings=("attack x was dropped", f"{signs}: no guarantee holds, since trials must be independent"),
    )


# --- no violation


FAR = counted(0, 5000, 5, 5000)  # 0 % and 0.1 %, where G_1 allows 0 % of d1 at exactly 0 % of d0
NEAR = counted(300, 5000, 1675, 5000)  # 6 % and 33.5 %: G_1 allows 29 % at 6 %


def test_where_nothing_came_near_a_violation_the_report_says_so_and_shows_no_rates() -> None:
    result = with_witness(sample.no_violation(), **FAR)
    assert standing(result) is Standing.FAR
    found = text_of(result)
    assert "No region that was counted came near a violation." in found
    assert "allows at most" not in found
    assert "output above 0.52" not in found
    assert "dpaudit replay" not in found.replace("dpaudit.replay", "dpaudit replay")
    assert "closest" not in words_in(tradeoff_svg(result))
    assert point_name(result) == ""


def test_what_came_closest_is_not_called_a_witness_and_not_significant() -> None:
    result = with_witness(sample.no_violation(), **NEAR)
    found = text_of(result)
    assert "Closest to a violation (chosen after looking; not significant)" in found
    assert "they do not account for that choice" in found
    legend = words_in(tradeoff_svg(result))
    assert "closest" in legend
    assert "witness" not in legend


LATER = {"counted": "later", "alpha_lower": 0.041, "alpha_upper": 0.083, "beta_lower": 0.61, "beta_upper": 0.72}


def test_a_region_that_was_frozen_during_the_audit_has_the_intervals_that_the_result_states() -> None:
    closest = with_witness(sample.no_violation(), **NEAR, **LATER, allowed_upper=0.36)
    found = text_of(closest)
    assert "Closest to a violation (not significant)" in found
    assert "Region and attack were frozen during the audit, and counted on 5,000 outputs" in found
    assert "4.1 to 8.3" in found
    assert "28 to 39" in found  # of d1 in the region
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
    assert "without intervals, since its score moved" in found
    assert "5.35 to 6.7" not in found
    assert "of d1 if the rate on d0 is what was observed" in found
    for never in ("upper end", "Clopper"):
        assert never not in found
    old = text_of(with_witness(sample.violation(), **(moving | {"alpha_upper": 0.067, "allowed_upper": 0.31})))
    assert "5.35 to 6.7" in old  # a file of an earlier version
    assert "they do not account for that choice" in old


def test_rates_have_exact_intervals_and_the_allowance_is_at_their_end() -> None:
    result = with_witness(sample.no_violation(), **NEAR)
    found = markdown(result)
    assert "6 % of the outputs of d0 and 33.5 % of those of d1" in found
    assert "5.35 to 6.7 %" in found  # scipy.stats.binomtest(300, 5000).proportion_ci: 0.05358 to 0.06695
    allowed = 100 * (1 - GaussianDP(1.0).beta(0.066951))
    (shown,) = re.findall(r"allows at most ([\d.]+) % of d1 if the rate on d0 is at the upper end", found)
    assert allowed <= float(shown) <= allowed + 0.1


@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_a_report_never_names_output_anywhere(method: str) -> None:
    for make in (sample.violation, sample.no_violation):
        result = with_witness(dataclasses.replace(make(), method=method), region="output anywhere", threshold=-6.98)
        assert "anywhere" not in text_of(result)


@pytest.mark.parametrize(("p_value", "near"), [(0.01, True), (0.2, True), (0.21, False), (1.0, False)])
def test_the_p_value_of_the_counts_decides_what_is_near(p_value: float, near: bool) -> None:
    class Known:  # a witness of a version that keeps the p-value of its counts
        region, counts = "output above 1", sample.violation().witness.counts  # type: ignore[union-attr]

    Known.p_value = p_value  # type: ignore[attr-defined]
    assert rates.came_near(sample.no_violation(), Known) is near  # type: ignore[arg-type]


def test_a_large_p_value_and_an_e_value_of_1_are_left_out() -> None:
    for result in (dataclasses.replace(sample.no_violation(), p_value=0.9, e_value=0.3), sample.inconclusive()):
        found = markdown(dataclasses.replace(result, p_value=1.0))
        assert "p-value" not in found
        assert "e-value" not in found


def test_the_tested_region_of_a_fixed_audit_has_fresh_counts() -> None:
    found = text_of(fixed(1.0))
    assert "Tested region (not significant)" in found
    assert "frozen before these outputs were drawn" in found
    assert "Witness" not in found


# --- violations


def test_a_violation_found_by_stopping_gives_no_estimate_of_its_size() -> None:
    found = text_of(pure_violation())
    assert "The audit stopped at the first proof: no estimate of the size of the violation." in found
    assert "no estimate of the size" not in text_of(fixed(0.5))


def test_a_violation_does_not_say_that_none_would_have_been_found() -> None:
    seen = dataclasses.replace(pure_violation().detectable, claim="", largest_epsilon=0.435)
    found = text_of(dataclasses.replace(pure_violation(), detectable=seen))
    assert "The audit stopped at its proof; it says nothing about other pairs or attacks." in found
    assert "would have been found" not in found
    assert "could have been certified" not in found  # at most 0.435, beside a certified 1.04


def test_the_witness_of_a_sequential_violation_is_chosen_by_its_counts_and_of_a_fixed_one_is_not() -> None:
    assert "chosen by these counts" in words_in(tradeoff_svg(sample.violation()))
    assert "fresh counts" in words_in(tradeoff_svg(fixed(0.5)))


def test_the_caption_says_which_is_the_evidence_and_that_the_band_is_not() -> None:
    assert has_band(sample.violation())
    found = text_of(sample.violation())
    assert "The dashed line is weaker and may lie above the claim's curve." in found
    assert "The verdict rests on the wealth of the bets (p-value" in found
    assert "the exact test of the witness's fresh counts" in text_of(fixed(0.5))


def test_counts_that_alone_refute_nothing_are_not_shown_as_a_proof() -> None:
    found = markdown(with_witness(sample.violation(), **counted(3, 20, 10, 20)))
    assert "These counts alone do not refute the claim" in found


# --- the claim's own parameter


@pytest.mark.parametrize(
    ("claim", "symbol", "delta"),
    [
        (PureDP(0.5), "ε", 0.0),
        (LaplaceDP(0.5), "ε", 0.0),
        (ApproxDP(epsilon=0.5, delta=1e-5), "ε", 1e-5),
        (GaussianDP(0.5), "μ", None),
        (parse_claim("zcdp(rho=0.1)"), "ε", 0.0),
    ],
)
def test_the_headline_is_the_parameter_of_the_claim(claim: Any, symbol: str, delta: float | None) -> None:
    result = audit(laplace(0.4), claim, PAIR, trials=1000, seed=2, method="sequential")
    assert result.violated
    bound = headline(result)
    if bound is None:  # refuted as a curve
        assert not isinstance(claim, PureDP | ApproxDP | GaussianDP)
        return
    assert bound.symbol == symbol
    assert delta is None or isinstance(claim, type(parse_claim("zcdp(rho=0.1)"))) or bound.delta == delta
    assert bound.exceeds
    certified = float(bound.certified_text().split("\u00a0")[1])
    assert certified >= float(bound.claimed_text())


def test_epsilon_never_stands_without_its_delta_and_claims_are_rounded() -> None:
    found = text_of(pure_violation())
    assert re.search(r"ε ≥ 1\.0\d+ at δ = 0", found)
    assert "ε ≤ 1 at δ = 0" in found
    assert "1.0000000000000022" not in found.split("Provenance")[0]
    assert re.search(r"ε ≥ 1\.0\d+ / 1 at δ = 0", text_of(pure_violation(), fixed(1.0)))


def test_a_bound_just_above_the_claim_is_shown_above_it_and_rounded_down() -> None:
    bound = headline(dataclasses.replace(sample.violation(), mu_lower=1.0000571))
    assert bound is not None
    assert bound.certified_text() == "≥\u00a01.000057"
    assert bound.claimed_text() == "1"


def test_a_refuted_claim_is_exceeded_even_if_the_search_for_the_bound_ends_below_it() -> None:
    bound = headline(dataclasses.replace(sample.violation(), mu_lower=0.99999))
    assert bound is not None
    assert bound.certified_text() == ">\u00a01"


def test_a_claim_that_is_false_as_a_curve_only_has_no_parameter_in_the_headline() -> None:
    result = dataclasses.replace(sample.violation(), claim=parse_claim("zcdp(rho=20)"), mu_lower=0.5)
    assert headline(result) is None
    assert certified_of_claimed(result) == "the curve, no single parameter"
    assert "the claim is false as a curve" in markdown(result)


def test_the_size_that_would_have_been_seen_is_rounded_up() -> None:
    assert enlarged("gaussian(mu=1.27341)") == "gaussian(mu=1.274)"
    assert enlarged("approximate(epsilon=1.15, delta=1e-05)") == "approximate(epsilon=1.15, delta=1e-05)"


# --- inconclusive


@pytest.mark.parametrize(
    ("stopped_by", "warnings", "reason"),
    [
        (
            "failure",
            (
                "attack x was dropped",
                "the mechanism raised RuntimeError: gone on run 199 of d1; the 199 before it are kept",
            ),
            "The mechanism raised RuntimeError: gone on run 199 of d1; the 199 before it are kept.",
        ),
        ("trials", ("30 runs per dataset are too few to see gaussian(mu=1.1)", "x"), "30 runs per dataset are too few"),
        (
            "interruption",
            ("interrupted after 5 of 20 runs per dataset",),
            "Interrupted after 5 of 20 runs per dataset.",
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


def test_warnings_follow_the_verdict_and_only_if_there_are_any() -> None:
    found = markdown(dependent())
    assert "### Warnings - attack x was dropped" in found
    assert found.index("Warnings") < found.index("Certified bounds")
    assert "Warnings" not in markdown(sample.violation())


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
    [
        (
            "interruption",
            "the audit was interrupted after 900 of 100,000 runs, and their number had been fixed beforehand",
        ),
        ("failure", "the mechanism failed after 900 of 100,000 runs, and their number had been fixed beforehand"),
    ],
)
def test_a_fixed_audit_that_ended_early_says_so(stopped_by: Any, why: str) -> None:
    result = dataclasses.replace(dependent(), method="fixed", stopped_by=stopped_by, warnings=())
    assert why_void(result) == why
    found = text_of(result)
    assert f"Nothing is certified: {why}." in found
    assert f"There is no valid evidence: {why}." in found


# --- one run


@pytest.mark.parametrize("shift", [1.0, 4.0])
def test_a_report_of_one_run_tells_guesses_and_nothing_about_pairs(shift: float) -> None:
    result = one_run(shift)
    found = text_of(result)
    guessed = result.evidence
    assert f"{guessed.right} of 449" in found  # type: ignore[attr-defined]
    assert "about 224.5" in found
    assert re.search(r"would refute \d+ or more right guesses", found)
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


def test_the_fewest_right_guesses_that_refute_do_and_one_less_does_not() -> None:
    evidence: Any = one_run(4.0).evidence
    for claim in (GaussianDP(1.0), PureDP(0.3)):
        least = evidence.least_right(claim, confidence=0.99)
        assert dataclasses.replace(evidence, right=least).refutes(claim, confidence=0.99)
        assert not dataclasses.replace(evidence, right=least - 1).refutes(claim, confidence=0.99)
    assert evidence.least_right(PureDP(60.0), confidence=0.99) is None


# --- several audits


def of_command(make: Callable[[], AuditResult], name: str = "a", **differs: Any) -> AuditResult:
    known = {"number of the command": "1a", "audits of the command": 2, "confidence of the command": 0.99}
    environment = {**sample.ENVIRONMENT, **known, **{key.replace("_", " "): value for key, value in differs.items()}}
    return dataclasses.replace(make(), name=name, confidence=0.9951, environment=environment)


def test_audits_of_one_command_share_its_promise() -> None:
    found = text_of(of_command(sample.violation), of_command(sample.no_violation, "b"))
    assert (
        "If all 2 claims were true, this command would refute any of them with probability at most 1 %."
        in found.replace("\u00a0", " ")
    )
    assert "e-BH" not in found
    assert "not all of them at once" not in found
    assert "e-BH" in text_of(sample.violation(), sample.no_violation())


OF_ONE = of_command(sample.violation)


@pytest.mark.parametrize(
    "results",
    [
        [OF_ONE, sample.no_violation()],
        [OF_ONE, of_command(sample.violation, "b", number_of_the_command="2b")],
        [OF_ONE, of_command(sample.violation, "b"), of_command(sample.violation, "c")],  # more than the command had
        [OF_ONE, of_command(sample.violation, "b", audits_of_the_command=3)],
        [of_command(sample.violation, name, audits_of_the_command="2") for name in "ab"],
        [of_command(sample.violation, name, confidence_of_the_command=math.nan) for name in "ab"],
        [dataclasses.replace(of_command(sample.violation, name), confidence=0.95) for name in "ab"],
    ],
)
def test_audits_that_are_not_of_one_command_share_no_promise(results: list[AuditResult]) -> None:
    assert promised_together(results) == ""


def test_runs_on_several_pairs_are_said_to_be_the_sum() -> None:
    result = dataclasses.replace(sample.violation(), pairs=sample.violation().pairs * 10)
    assert "900 in all, 10 pairs" in markdown(result)


# --- what was audited


def test_the_version_of_the_library_and_the_fingerprint_of_its_file_stand_by_the_claim(tmp_path: Path) -> None:
    known = {
        "mechanism": "sums.py:noisy_sum",
        "packages of the mechanism": {"opendp": "0.16.0"},
        "SHA-256 of the mechanism's file": "ab" * 32,
        "claim stated by": "the config",
    }
    result = dataclasses.replace(sample.violation(), environment={**sample.ENVIRONMENT, **known})
    dpaudit_reports.write_pdf([result], tmp_path / "report.pdf")
    first = " ".join(pypdf.PdfReader(tmp_path / "report.pdf").pages[0].extract_text().split())
    for needed in ("sums.py:noisy_sum", "opendp 0.16.0", "the config"):
        assert needed in first
    assert "ab" * 32 in "".join(first.split())


def test_attacks_that_were_not_used_take_one_line_with_their_reason() -> None:
    found = "".join(dpaudit_reports.to_html([audit(laplace(1.0), "pure(epsilon=1)", PAIR, trials=100, seed=1)]))
    (line,) = re.findall(r"Not used: [^<]*", found)
    assert "(too few outputs)" in line
    assert "(does not suit these outputs)" in line
    assert found.count("not used:") == 0
    assert "Assumption" not in found


# --- figures


@pytest.mark.parametrize("claim", [PureDP(1.0), LaplaceDP(1.0), PureDP(0.01)])
def test_the_profile_of_a_pure_claim_falls_to_zero_at_its_epsilon(claim: Any) -> None:
    ax = Canvas().add_subplot()
    draw_profiles(ax, [claim, GaussianDP(1.0)])
    epsilon, delta = ax.lines[0].get_data()
    own = claim.epsilon(0.0)
    below = np.asarray(delta) <= 1e-12
    assert not np.any(np.isnan(delta))
    assert below.any()
    assert np.asarray(epsilon)[below].min() == pytest.approx(own, rel=1e-9)
    assert ax.lines[0].get_label() == claim.label
    ElementTree.fromstring(profile_svg(dataclasses.replace(sample.violation(), claim=claim)))


def test_a_region_is_drawn_with_the_scores_that_the_witness_keeps() -> None:
    from dpaudit_reports.scores import EDGES, witness_scores

    result = sample.violation()
    assert isinstance(result.witness, Witness)

    class Keeping:  # a witness of a version that keeps the scores on which its region was counted
        counts, threshold, pair = result.witness.counts, float(EDGES[150]), "a"  # type: ignore[union-attr]
        scores = (((120, 30), (160, 5)), ((140, 20), (170, 15)))

    class Kept:
        witness = Keeping

    scores = witness_scores(Kept)  # type: ignore[arg-type]
    assert scores is not None
    assert scores.threshold == 150
    assert [int(side.sum()) for side in (scores.counts0, scores.counts1)] == [35, 35]


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_whole_fingerprints(width: int) -> None:
    target = StringIO()
    Console(file=target, width=width).print(*terminal(document([sample.violation()])), sep="\n")
    assert sample.violation().evidence.fingerprint() in "".join(target.getvalue().split())


def test_the_words_for_a_figure_say_when_it_bounds_nothing() -> None:
    target = StringIO()
    Console(file=target, width=80).print(*terminal(document([dependent()])), sep="\n")
    found = " ".join(target.getvalue().split())
    assert "They bound nothing: the runs depend on each other." in found
    assert "Not valid: the runs depend on each other. No evidence follows from it." in found
