"""Audits of given scores from the point of view of users; tests/inference tests the theorems."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit_reports
from dpaudit import ApproxDP, AuditResult, GaussianDP, PureDP, Verdict, audit_one_run, audit_scores
from dpaudit.engine.score_design import Coins, coins_of
from dpaudit.inference.one_run import half_by_chance, number_factor
from dpaudit.inference.scores.rank_bounds import Path as Claims
from dpaudit.inference.scores.rank_bounds import RankTest
from dpaudit.inference.scores.rank_laws import Independent
from dpaudit.inference.scores.ranks import Blocks
from dpaudit.result.words import CANARIES_ASSUMED
from dpaudit_reports.formats import Audited, facts, sentence

from .scored import CHOICES, SURE, Memory, check_agreement, of_canaries, of_runs, words_and_numbers


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
    check_agreement(back)
    assert "VIOLATION" in str(back)
    if independence == "runs":  # tests/test_evidence.py makes the reports of the other kinds
        assert dpaudit_reports.to_html([back])


def test_counts_are_those_of_the_sorted_scores() -> None:
    out, into = of_canaries(300, 1.0, 3)
    found: Any = audit_scores(out, into, "gaussian(mu=1)", independence="canaries", seed=1, confidence=0.95)
    blocks = Blocks(len(into), len(out))
    of_d1 = (np.argsort(np.concatenate([out, into])) >= len(out))[::-1]
    assert found.evidence.ranked == tuple(blocks.right(of_d1))
    assert found.evidence.right == of_d1[: len(into)].sum()
    halves = Blocks(150, 150)
    assert found.evidence.halved == tuple(halves.right(of_d1))
    test = RankTest(Independent(blocks), found.evidence.ranked, Claims(None), found.evidence.significance)
    assert found.p_value == test.p_value(GaussianDP(1.0))
    assert found.mu_lower == test.mu_lower(significance=found.evidence.significance)


def test_the_table_shows_every_assumption_and_the_verdict_rests_on_one() -> None:
    out, into = of_canaries(300, 2.0, 3)
    rows = audit_scores(out, into, independence="canaries", seed=1, confidence=SURE).bounds
    assert [row.verdict for row in rows] == [False, True, False]
    rows = audit_scores(out, into, seed=1, confidence=0.95).bounds
    assert [row.verdict for row in rows] == [True, False, False]
    assert all(0 < row.epsilon <= row.most for row in rows)
    assert rows[1].epsilon == rows[2].epsilon
    assert all(row.claimed == math.inf and row.delta == 1e-5 for row in rows)
    found = audit_scores(out, into, ApproxDP(epsilon=2.0, delta=1e-3), independence="runs", seed=1, confidence=0.95)
    assert [(row.delta, row.claimed) for row in found.bounds] == [(1e-3, 2.0)]
    assert found.bounds[0].epsilon == found.epsilon_lower(1e-3)
    assert found.bounds_at(1e-5)[0].delta == 1e-5
    assert "different sources" not in str(audit_scores(out, into, independence="runs", confidence=SURE, seed=1))
    assert "different sources prove nothing" in str(audit_scores(out, into, confidence=SURE, seed=1))


def test_the_assumption_stands_beside_every_verdict() -> None:
    results = [
        audit_scores(*of_canaries(200, 1.5, 0), claim, independence="canaries", confidence=SURE)
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
    assert "assumed, not tested" not in str(audit_scores(*scores, independence=None, confidence=SURE))
    runs = audit_scores(*scores, independence="runs", confidence=SURE)
    assert "assumed, not tested: runs are independent of each other" in str(runs)


@pytest.mark.parametrize("independence", CHOICES)
def test_without_a_claim_it_is_a_measurement(independence: Any) -> None:
    """Fails by chance < 1 in 10**9: only if 300 scores with means 3 apart give the bound 0."""
    result = audit_scores(*of_canaries(300, 3.0, 1), independence=independence, confidence=SURE)
    assert result.measurement
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.p_value == 1
    assert result.bounds_valid
    assert 0 < result.mu_lower <= 3
    assert "measurement" in str(result)
    assert "inconclusive" not in str(result)
    assert "No claim was given" in dpaudit_reports.to_markdown([result])
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
    result = audit_scores(outputs0, outputs1, PureDP(1.0), independence=independence, seed=1, confidence=SURE)
    assert result.violated
    assert result.evidence.to_json()["n0"] + result.evidence.to_json()["n1"] == 800  # two thirds are counted
    assert {row.name for row in result.attacks} != {"scores"}


def test_numbers_that_may_be_fixed_cost_power_without_an_assumption_only() -> None:
    scores0, scores1 = of_runs(150, 3.0, 0)
    uneven, half = scores0[:50], scores0
    for first, said in ((uneven, "150 of 200 canaries were included"), (half, "half of the canaries were included")):
        result = audit_scores(first, scores1, GaussianDP(0.1), confidence=SURE)
        assert f"{said}, so this number may have been fixed beforehand" in str(result)
        assert result.bounds_valid
        assert "fixed" not in str(audit_scores(first, scores1, independence="runs", confidence=SURE))
    assert "fixed" not in str(audit_scores(scores0[:144], scores1, GaussianDP(0.1), confidence=SURE))


def test_the_factor_of_a_fixed_number() -> None:
    """Its theorem: given the number, p-values of coins with this share are divided by its probability."""
    assert coins_of(None, (30, 10), "fixed_number") == Coins(0.25, number_factor(40, 10, 0.25), "")
    by_chance = half_by_chance(40)
    found = coins_of(None, (20, 20), "coins")
    assert found.share == 0.5
    assert found.factor == pytest.approx(number_factor(40, 20) * (1 + by_chance), rel=1e-5)
    assert coins_of(None, (22, 18), "coins").factor == pytest.approx(1 + by_chance, rel=1e-5)
    assert coins_of(None, (20, 20), "coins", tossed=True) == Coins(0.5, 1.0, "")
    part = coins_of(None, (60, 60), "coins", counted=(42, 38))  # scores were learned from the others
    assert part.factor == pytest.approx(number_factor(80, 38) * (1 + half_by_chance(120)), rel=1e-5)
    runs = np.repeat([0, 1], [30, 10]), np.repeat([0, 1], [10, 30])
    both = coins_of(runs, (40, 40), "fixed_number")
    assert both.factor == pytest.approx(number_factor(40, 10) * number_factor(40, 30))


@pytest.mark.parametrize("independence", CHOICES)
def test_a_file_concatenated_with_itself_certifies_nothing(independence: Any) -> None:
    """The copies are not independent: with five copies of each score, true claims were refuted far too often."""
    scores = of_canaries(100, 1.0, 0)
    copies = np.tile(scores[0], 5), np.tile(scores[1], 5)
    result = audit_scores(*copies, GaussianDP(1.0), independence=independence, confidence=SURE)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid
    assert result.p_value == 1
    assert "100 of 500 differ" in str(result)
    assert "give one score for each run or canary" in str(result)
    assert audit_scores(*scores, independence=independence, confidence=SURE).bounds_valid


def test_outputs_that_were_copied_certify_nothing() -> None:
    """If an output is learned from, its copies would be recognised among the counted outputs."""
    side0, side1 = words_and_numbers(60, 0)
    sides = side0 * 2, side1 * 2
    doubled = audit_scores(*sides, PureDP(0.1), independence="runs", attacks=Memory(), confidence=SURE, seed=1)
    assert "scores seem to be copied" in str(doubled)
    assert not doubled.bounds_valid


@pytest.mark.parametrize(("independence", "share"), [("canaries", 0.1), (None, 0.5), (None, 0.1)])
def test_a_fixed_number_of_canaries(independence: Any, share: float, tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**6: few guesses are wrong if scores are 6 apart, and bounds are far below the truth."""
    rng = np.random.default_rng(5)
    included = rng.permutation(150) < round(150 * share)
    scores = rng.normal(6.0 * included)
    result = audit_scores(
        scores[~included],
        scores[included],
        GaussianDP(0.05),
        independence=independence,
        included_at_random="fixed_number",
        confidence=0.99 if share == 0.5 else SURE,
    )
    assert result.verdict is Verdict.VIOLATION
    assert 0.05 < result.mu_lower <= 6.0
    assert "may have been fixed" not in str(result)
    assert ("given which canaries were included" in str(result)) == (independence == "canaries")
    result.to_json(tmp_path / "r.json")
    check_agreement(AuditResult.from_json(tmp_path / "r.json"))


def test_designs_that_are_impossible_are_refused() -> None:
    sides: Any = ([0.0, 1.0, 2.0], [3.0, 4.0])
    with pytest.raises(ValueError, match="'fixed_number': a fixed number of canaries was drawn"):
        audit_scores(*sides, independence=None, included_at_random="half")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="any number of runs on each dataset"):
        audit_scores(*sides, independence="runs", included_at_random="fixed_number")
    with pytest.raises(ValueError, match="run states which canaries share a run"):
        audit_scores(*sides, independence="runs", run=([1, 1, 2], [1, 2]))
    with pytest.raises(ValueError, match=r"run\[1\] must name the run of each of 2 scores"):
        audit_scores(*sides, independence=None, run=([1, 1, 2], [1, 2, 2]))
    with pytest.raises(TypeError, match="run must be two lists"):
        audit_scores(*sides, independence=None, run=[1, 1, 2, 1, 2])
    with pytest.raises(ValueError, match="by numbers on both sides, or by text"):
        audit_scores(*sides, independence=None, run=([1, 1, 2], ["a", "b"]))
    with pytest.raises(ValueError, match="without missing values"):
        audit_scores(*sides, independence=None, run=([1, 1, math.nan], [1, 2]))
    words: Any = (["a", "b", "c"], ["d", "e"])
    with pytest.raises(ValueError, match="scores of several runs must be numbers"):
        audit_scores(*words, independence=None, run=([1, 1, 2], [1, 2]))


@pytest.mark.parametrize("inclusion", ["coins", "fixed_number"])
def test_several_runs_count_together(inclusion: Any, tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**6: the bound of 450 scores that are 4 apart is far from 0.05 and from 4."""
    rng = np.random.default_rng(6)
    included = np.tile(rng.permutation(150) < 50, 3) if inclusion == "fixed_number" else rng.random(450) < 0.5
    run = np.repeat(["a", "b", "c"], 150)
    scores = rng.normal(4.0 * included)
    sides, runs_ = (scores[~included], scores[included]), (run[~included], run[included])
    options: Any = {"included_at_random": inclusion, "confidence": SURE, "seed": 1}
    found = audit_scores(*sides, GaussianDP(0.05), run=runs_, **options)
    assert found.violated
    assert 0.05 < found.mu_lower <= 4.0
    assert found.trials_used == 3
    assert "3 runs with 450 canaries" in str(found)
    again = audit_one_run(scores, included, GaussianDP(0.05), run=run, **options)
    assert again.evidence.to_json() == found.evidence.to_json()
    found.to_json(tmp_path / "r.json")
    back = AuditResult.from_json(tmp_path / "r.json")
    assert back.to_dict() == found.to_dict()
    check_agreement(back)


def test_one_label_for_all_is_one_run() -> None:
    scores = of_canaries(100, 1.0, 4)
    labelled = audit_scores(*scores, confidence=SURE, run=([7] * len(scores[0]), [7] * len(scores[1])))
    assert labelled.evidence.to_json() == audit_scores(*scores, confidence=SURE).evidence.to_json()


def test_runs_that_all_include_half_are_reported() -> None:
    rng = np.random.default_rng(1)
    run: Any = [np.repeat(np.arange(5), 20)] * 2
    found = audit_scores(rng.normal(size=100), rng.normal(size=100), run=run, confidence=SURE)
    assert "half of the canaries of every run were included" in str(found)
    assert [row.verdict for row in found.bounds] == [True]  # labels of different runs cannot be exchanged
    inclusion: Any
    for inclusion in ("coins", "fixed_number"):
        with pytest.raises(ValueError, match="independent canaries of several runs must be included by coins"):
            audit_scores(
                rng.normal(size=100),
                rng.normal(size=100),
                independence="canaries",
                included_at_random=inclusion,
                run=run,
            )
    labels = np.arange(8)  # coins include 1 or 2 of 3 canaries in each of 8 runs with probability 0.1
    run = np.repeat(labels, 1 + labels % 2), np.repeat(labels, 2 - labels % 2)
    assert "fixed" not in str(audit_scores(np.zeros(12), np.arange(1, 13), PureDP(0.1), run=run, confidence=SURE))


def test_few_scores_are_inconclusive() -> None:
    result = audit_scores([0.0, 1.0], [4.0, 5.0], GaussianDP(1.0), independence="runs")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "too few" in str(result)


def test_infinite_scores_and_columns_are_allowed() -> None:
    result = audit_scores(
        np.zeros((50, 1)), np.full((50, 1), math.inf), PureDP(1.0), independence="runs", confidence=SURE
    )
    assert result.violated


def test_more_scores_of_d1_than_of_d0_have_bounds_at_any_confidence() -> None:
    """Fails by chance < 1 in 10**9: 150 scores with means 3 apart from 50 others prove more than nothing."""
    rng = np.random.default_rng(0)
    for confidence in (0.9995, SURE):
        scores = rng.normal(size=50), rng.normal(3.0, 1.0, 150)
        result = audit_scores(*scores, "gaussian(mu=1)", independence="runs", confidence=confidence, seed=1)
        assert result.mu_lower > 0
