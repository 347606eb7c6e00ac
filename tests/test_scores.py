"""Audits of given scores from the point of view of users; tests/inference tests the theorems."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit_reports
from dpaudit import ApproxDP, AuditResult, GaussianDP, PureDP, Verdict, audit_one_run, audit_scores
from dpaudit.inference.scores import confident, levels, runs
from dpaudit.result.checks import contradictions
from dpaudit.result.words import CANARIES_ASSUMED
from dpaudit_reports.formats.facts import Audited, facts, sentence

from .scored import CHOICES, Memory, of_canaries, of_runs, words_and_numbers


@pytest.mark.parametrize("independence", CHOICES)
def test_a_leak_is_found_and_the_result_is_kept(independence: Any, tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**7: the bound is above the truth with probability 1e-8."""
    result = audit_scores(*of_canaries(500, 3.0, 0), PureDP(1.0), independence=independence, confidence=1 - 1e-8)
    assert result.verdict is Verdict.VIOLATION
    assert result.epsilon_lower() > 1.0
    assert result.mu_lower <= 3.0
    assert result.witness is not None
    assert result.provenance.seed is not None
    result.to_json(tmp_path / "r.json")
    back = AuditResult.from_json(tmp_path / "r.json")
    assert back.to_dict() == result.to_dict()
    assert contradictions(back) == []
    assert "VIOLATION" in str(back)
    if independence == "runs":  # tests/test_evidence.py makes the reports of the other kinds
        assert dpaudit_reports.to_html([back])


@pytest.mark.parametrize("independence", CHOICES)
@pytest.mark.parametrize("shift", [0.0, 4.0])
def test_the_verdict_is_that_of_the_count(independence: Any, shift: float) -> None:
    """Fails by chance < 1 in 10**6."""
    claim = PureDP(0.5)
    result: Any = audit_scores(*of_canaries(200, shift, 2), claim, independence=independence, confidence=0.999999)
    least = result.evidence.least_right(claim, confidence=0.999999)
    assert result.violated == (result.evidence.right >= least) == (shift > 0)


def test_counts_are_those_of_the_theorems() -> None:
    scores = of_canaries(500, 1.0, 3)
    found: Any = audit_scores(*scores, "gaussian(mu=1)", independence="canaries", seed=1)
    right = found.evidence.right
    order = np.argsort(np.concatenate(scores))
    into = order >= len(scores[0])
    rights = [
        int(np.count_nonzero(~into[: r // 2]) + np.count_nonzero(into[500 - (r - r // 2) :])) for r in (80, 310, 500)
    ]
    assert found.evidence.rights == tuple(rights)
    assert right == 2 * rights[0] + 2 * rights[1] + rights[2]
    assert found.p_value == levels.p_value(GaussianDP(1.0), 500, (80, 310), right)
    for claim in (PureDP(0.5), ApproxDP(epsilon=0.5, delta=1e-5)):  # levels do not suit these claims
        found = audit_scores(*scores, claim, independence="canaries", seed=1)
        assert (found.evidence.guesses, found.evidence.right) == (310, rights[1])
        assert found.p_value == confident.p_value(claim, 500, 310, rights[1])
    found = audit_scores(*scores, "gaussian(mu=1)", independence="canaries", guesses=310, seed=1)
    assert found.p_value == confident.p_value(GaussianDP(1.0), 500, 310, rights[1])
    found = audit_scores(*scores, "gaussian(mu=1)", independence="runs", seed=1)
    n0, n1 = map(len, scores)
    r = runs.default_cut(n0, n1)
    assert found.evidence.right == np.count_nonzero(into[500 - r :])
    assert found.p_value == runs.p_value(GaussianDP(1.0), n0, n1, r, found.evidence.right)


def test_the_assumption_stands_beside_every_verdict() -> None:
    results = [
        audit_scores(*of_canaries(80, 1.5, 0), claim, independence="canaries")
        for claim in ("gaussian(mu=0.1)", "gaussian(mu=1.5)", None)
    ]
    assert {(result.verdict, result.measurement) for result in results} == {
        (Verdict.VIOLATION, False),
        (Verdict.NO_VIOLATION, False),
        (Verdict.INCONCLUSIVE, True),
    }
    for result in results:
        outputs = [str(result), repr(result), dpaudit_reports.to_markdown([result])]
        outputs += [sentence(Audited(name="a", result=result)), str(facts(Audited(name="a", result=result)))]
        for text in outputs:
            assert CANARIES_ASSUMED in text
    assert dpaudit_reports.to_html(results).count(CANARIES_ASSUMED) >= 3
    scores = of_runs(100, 1.0, 0)
    assert "assumed, not tested" not in str(audit_scores(*scores, independence=None))
    assert "assumed, not tested: runs are independent of each other" in str(audit_scores(*scores, independence="runs"))


@pytest.mark.parametrize("independence", CHOICES)
def test_without_a_claim_it_is_a_measurement(independence: Any) -> None:
    """Fails by chance < 1 in 10**9: only if 300 scores with means 3 apart give the bound 0."""
    result = audit_scores(*of_canaries(300, 3.0, 1), independence=independence)
    assert result.measurement
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.p_value == 1
    assert result.bounds_valid
    assert 0 < result.mu_lower <= 3
    assert "measurement" in str(result)
    assert "inconclusive" not in str(result)
    assert "Measurement" in dpaudit_reports.to_markdown([result])
    assert AuditResult.from_dict(result.to_dict()).measurement


@pytest.mark.parametrize("independence", CHOICES)
def test_outputs_that_are_no_numbers_get_a_learned_score(independence: Any) -> None:
    """Fails by chance < 1 in 10**9."""
    rng = np.random.default_rng(0)
    included = rng.random(1200) < 0.5
    said = [{"says": "yes" if truth == (rng.random() < 0.95) else "no"} for truth in included]
    outputs0, outputs1 = (
        [s for s, i in zip(said, included, strict=True) if bool(i) is wanted] for wanted in (False, True)
    )
    result = audit_scores(outputs0, outputs1, PureDP(1.0), independence=independence, seed=1, confidence=0.95)
    assert result.violated
    assert result.evidence.guessed is not None
    assert result.evidence.guessed.canaries == 800  # two thirds are counted
    assert {row.name for row in result.attacks} != {"scores"}


def test_coins_that_were_not_fair_certify_nothing() -> None:
    scores0, scores1 = of_runs(150, 3.0, 0)
    for independence in ("canaries", None):
        result = audit_scores(scores0[:50], scores1, PureDP(0.5), independence=independence)
        assert result.verdict is Verdict.INCONCLUSIVE
        assert not result.bounds_valid
        assert result.mu_lower == 0
        assert "coins were not fair" in str(result)
    assert audit_scores(scores0[:50], scores1, PureDP(0.5), independence="runs").violated


def test_exactly_half_included_is_reported() -> None:
    scores = np.random.default_rng(0).normal(size=(2, 50))
    independence: Any
    for independence in ("canaries", None):
        for side, said in ((50, True), (49, True), (48, False)):
            result = audit_scores(scores[0], scores[1][:side], independence=independence)
            assert (
                "so the p-value is divided by the probability with which fair coins include this number, 0.07"
                in str(result)
            ) == said
    assert "divided" not in str(audit_scores(*scores, independence="runs"))
    outputs = words_and_numbers(90, 0)
    learned: Any = audit_scores(*outputs, independence=None, attacks=Memory(), seed=1)
    assert "half of the canaries were included (rounded if their number is odd)" in str(learned)
    assert learned.evidence.m == 120


@pytest.mark.parametrize("independence", CHOICES)
def test_a_file_concatenated_with_itself_certifies_nothing(independence: Any) -> None:
    """The copies are not independent: with five copies of each score, true claims were refuted far too often."""
    scores = of_canaries(100, 1.0, 0)
    copies = np.tile(scores[0], 5), np.tile(scores[1], 5)
    result = audit_scores(*copies, GaussianDP(1.0), independence=independence)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid
    assert result.p_value == 1
    assert "100 of 500 differ" in str(result)
    assert "give one score for each run or canary" in str(result)
    assert audit_scores(*scores, independence=independence).bounds_valid


def test_outputs_that_were_copied_certify_nothing() -> None:
    """If an output is learned from, its copies would be recognised among the counted outputs."""
    side0, side1 = words_and_numbers(60, 0)
    doubled = audit_scores(side0 * 2, side1 * 2, PureDP(0.1), independence="runs", attacks=Memory(), seed=1)
    assert "scores seem to be copied" in str(doubled)
    assert not doubled.bounds_valid


@pytest.mark.parametrize(("independence", "share"), [("canaries", 0.1), ("canaries", 0.5), (None, 0.1)])
def test_a_fixed_number_of_canaries(independence: Any, share: float, tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**6: few guesses are wrong if scores are 6 apart, and bounds are far below the truth."""
    rng = np.random.default_rng(5)
    included = rng.permutation(150) < round(150 * share)
    scores = rng.normal(6.0 * included)
    sides = scores[~included], scores[included]
    if share != 0.5:
        assert "the coins were not fair" in str(audit_scores(*sides, independence=independence))
    result = audit_scores(
        *sides, GaussianDP(0.05), independence=independence, included_at_random="fixed_number", confidence=0.9999
    )
    assert result.verdict is Verdict.VIOLATION
    assert result.bounds_valid
    assert 0.05 < result.mu_lower <= 6.0
    assert "may have been fixed" not in str(result)
    assert ("given which canaries were included" in str(result)) == (independence == "canaries")
    result.to_json(tmp_path / "r.json")
    back = AuditResult.from_json(tmp_path / "r.json")
    assert contradictions(back) == []
    assert "fixed number" in dpaudit_reports.to_html([back])


def test_designs_that_are_impossible_are_refused() -> None:
    sides: Any = ([0.0, 1.0, 2.0], [3.0, 4.0])
    with pytest.raises(ValueError, match="'fixed_number': a fixed number of canaries was drawn"):
        audit_scores(*sides, independence=None, included_at_random="half")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="any number of runs on each dataset"):
        audit_scores(*sides, independence="runs", included_at_random="fixed_number")
    with pytest.raises(ValueError, match="run states which canaries share a run"):
        audit_scores(*sides, independence="runs", run=([1, 1, 2], [1, 2]))
    with pytest.raises(ValueError, match="independent canaries of several runs must be included by coins"):
        audit_scores(*sides, independence="canaries", included_at_random="fixed_number", run=([1, 1, 2], [1, 2]))
    with pytest.raises(ValueError, match=r"run\[1\] must name the run of each of 2 scores"):
        audit_scores(*sides, independence=None, run=([1, 1, 2], [1, 2, 2]))
    with pytest.raises(TypeError, match="run must be two lists"):
        audit_scores(*sides, independence=None, run=[1, 1, 2, 1, 2])
    with pytest.raises(ValueError, match="by numbers on both sides, or by text"):
        audit_scores(*sides, independence=None, run=([1, 1, 2], ["a", "b"]))
    with pytest.raises(ValueError, match="without missing values"):
        audit_scores(*sides, independence=None, run=([1, 1, math.nan], [1, 2]))
    with pytest.raises(ValueError, match="0 of 1 canaries of run 2"):
        audit_scores(*sides, independence=None, included_at_random="fixed_number", run=([1, 1, 2], [1, 1]))
    words: Any = (["a", "b", "c"], ["d", "e"])
    with pytest.raises(ValueError, match="scores of several runs must be numbers"):
        audit_scores(*words, independence=None, run=([1, 1, 2], [1, 2]))


@pytest.mark.parametrize("inclusion", ["coins", "fixed_number"])
def test_several_runs_certify_more_than_one(inclusion: Any, tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**6: bounds are above the truth with probability 1e-7, and the others differ widely."""
    rng = np.random.default_rng(6)
    drawn = inclusion == "fixed_number"
    included = np.tile(rng.permutation(150) < 50, 3) if drawn else rng.random(450) < 0.5
    run = np.repeat(["a", "b", "c"], 150)
    scores = rng.normal(4.0 * included)
    sides, runs_ = (scores[~included], scores[included]), (run[~included], run[included])
    arguments: Any = {"independence": None, "included_at_random": inclusion, "confidence": 1 - 1e-7, "guesses": 50}
    found = audit_scores(*sides, GaussianDP(0.05), run=runs_, **arguments)
    one = audit_scores(scores[(run == "a") & ~included], scores[(run == "a") & included], **arguments)
    assert one.mu_lower < found.mu_lower <= 4.0
    assert found.violated
    assert found.trials_used == 3
    assert "3 runs" in str(found.witness)
    again = audit_one_run(
        scores, included, GaussianDP(0.05), run=run, included_at_random=inclusion, confidence=1 - 1e-7, guesses=50
    )
    assert again.evidence.to_json() == found.evidence.to_json()
    found.to_json(tmp_path / "r.json")
    back = AuditResult.from_json(tmp_path / "r.json")
    assert back.to_dict() == found.to_dict()
    assert contradictions(back) == []


def test_one_label_for_all_is_one_run() -> None:
    scores = of_canaries(100, 1.0, 4)
    labelled = audit_scores(*scores, independence=None, run=([7] * len(scores[0]), [7] * len(scores[1])))
    assert labelled.evidence.to_json() == audit_scores(*scores, independence=None).evidence.to_json()


def test_runs_that_all_include_half_and_runs_with_unfair_coins_are_reported() -> None:
    rng = np.random.default_rng(1)
    run: Any = [np.repeat(np.arange(5), 20)] * 2
    found = audit_scores(rng.normal(size=100), rng.normal(size=100), independence=None, run=run)
    assert "half of the canaries of every run were included (rounded if their number is odd)" in str(found)
    uneven: Any = [np.repeat([0, 1], [10, 90]), np.repeat([0, 1], [90, 10])]
    found = audit_scores(rng.normal(size=100), rng.normal(size=100), independence=None, run=uneven)
    assert "the coins were not fair" in str(found)
    assert not found.bounds_valid


def test_runs_of_few_canaries_of_which_coins_often_include_half_are_not_suspicious() -> None:
    """Coins include 1 or 2 of 3 canaries with probability 3/4, and so in each of 8 runs with probability 0.1."""
    labels = np.arange(8)
    run = np.repeat(labels, 1 + labels % 2), np.repeat(labels, 2 - labels % 2)
    found = audit_scores(np.zeros(12), np.arange(1, 13), PureDP(0.1), independence=None, run=run, guesses=2)
    assert "half of the canaries" not in str(found)
    assert found.violated  # at the former factor of 8/3 for each run, not even 16 right guesses of 16 refuted any claim


def test_few_scores_are_inconclusive() -> None:
    result = audit_scores([0.0, 1.0, 0.5], [4.0, 5.0, 6.0], GaussianDP(1.0), independence="runs")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "too few" in str(result)


def test_infinite_scores_and_columns_are_allowed() -> None:
    result = audit_scores(np.zeros((50, 1)), np.full((50, 1), math.inf), PureDP(1.0), independence="runs")
    assert result.violated
