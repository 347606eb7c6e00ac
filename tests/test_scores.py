"""Scores that others have made, as users audit them; the theorems are tested in tests/inference."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import dpaudit_reports
from dpaudit import AuditResult, GaussianDP, PureDP, Verdict, audit_scores
from dpaudit.inference.scores import confident, runs
from dpaudit.result.consistency import contradictions
from dpaudit.result.scores_words import CANARIES_ASSUMED
from dpaudit_reports.formats.facts import facts, sentence
from dpaudit_reports.formats.run import Audited

CHOICES = ("runs", "canaries", None)
Arrays = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def of_runs(n: int, shift: float, seed: int) -> Arrays:
    """Scores of n runs on each of two datasets, Gaussian noise that moves by `shift`."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.normal(shift, 1.0, n)


def of_canaries(m: int, shift: float, seed: int) -> Arrays:
    """The same of m canaries that coins of their own put in."""
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    scores = rng.normal(shift * included, 1.0)
    return scores[~included], scores[included]


@pytest.mark.parametrize("independence", CHOICES)
def test_a_leak_is_found_and_the_result_is_kept(independence: Any, tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**9."""
    result = audit_scores(*of_canaries(600, 3.0, 0), PureDP(1.0), independence=independence, confidence=0.95)
    assert result.verdict is Verdict.VIOLATION
    assert result.epsilon_lower(1e-5) > 1.0
    assert result.mu_lower <= 3.0
    assert result.witness is not None
    assert result.provenance.seed is not None
    result.to_json(tmp_path / "r.json")
    back = AuditResult.from_json(tmp_path / "r.json")
    assert back.to_dict() == result.to_dict()
    assert contradictions(back) == []
    assert "VIOLATION" in str(back)
    assert dpaudit_reports.to_html([back])


@pytest.mark.parametrize(("independence", "made"), [("runs", of_runs), ("canaries", of_canaries), (None, of_canaries)])
def test_true_claims_are_rarely_refuted(independence: Any, made: Callable[[int, float, int], Arrays]) -> None:
    """15 audits each; fails by chance < 1 in 10**6 at the promised rate."""
    refuted = [
        audit_scores(
            *made(50, 1.0, seed),
            claim=GaussianDP(1.0),
            independence=independence,
            confidence=0.8,
            guesses=30,
            seed=seed,
        ).violated
        for seed in range(15)
    ]
    assert sum(refuted) <= binom.ppf(1 - 1e-6, 15, 0.2)


def test_counts_are_those_of_the_theorems() -> None:
    scores = of_canaries(500, 1.0, 3)
    found: Any = audit_scores(*scores, "gaussian(mu=1)", independence="canaries", seed=1)
    right = found.evidence.right
    order = np.argsort(np.concatenate(scores))
    into = order >= len(scores[0])
    r = confident.default_confident(500)
    assert right == np.count_nonzero(~into[: r // 2]) + np.count_nonzero(into[500 - (r - r // 2) :])
    assert found.p_value == confident.p_value(GaussianDP(1.0), 500, r, right)
    found = audit_scores(*scores, "gaussian(mu=1)", independence="runs", seed=1)
    n0, n1 = map(len, scores)
    r = runs.default_cut(n0, n1)
    assert found.evidence.right == np.count_nonzero(into[500 - r :])
    assert found.p_value == runs.p_value(GaussianDP(1.0), n0, n1, r, found.evidence.right)


def test_the_assumption_stands_beside_every_verdict() -> None:
    for claim in ("gaussian(mu=0.1)", "gaussian(mu=1)", None):
        result = audit_scores(*of_canaries(400, 1.0, 0), claim, independence="canaries")
        outputs = [str(result), repr(result), dpaudit_reports.to_html([result]), dpaudit_reports.to_markdown([result])]
        outputs += [sentence(Audited(name="a", result=result)), str(facts(Audited(name="a", result=result)))]
        outputs.append(dpaudit_reports.to_html([result, result]))
        for text in outputs:
            assert CANARIES_ASSUMED in text
    for independence in ("runs", None):
        assert "assumed, not tested" not in str(audit_scores(*of_runs(100, 1.0, 0), independence=independence))


@pytest.mark.parametrize("independence", CHOICES)
def test_without_a_claim_it_is_a_measurement(independence: Any) -> None:
    """Fails by chance < 1 in 10**9: a bound of 0 from 600 scores that are 3 apart."""
    result = audit_scores(*of_canaries(600, 3.0, 1), independence=independence)
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


def test_learned_scores_do_not_refute_a_true_claim_more_often() -> None:
    """24 audits of text that tells the dataset as the claim allows; fails by chance < 1 in 10**6."""
    refuted = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        keeps = math.exp(1) / (1 + math.exp(1))
        side0, side1 = (["a" if truth else "b" for truth in rng.random(150) < p] for p in (1 - keeps, keeps))
        refuted += audit_scores(side0, side1, PureDP(1.0), independence="runs", confidence=0.9, seed=seed).violated
    assert refuted <= binom.ppf(1 - 1e-6, 24, 0.1)


def test_independence_must_be_chosen() -> None:
    with pytest.raises(ValueError, match="it was left out") as error:
        audit_scores([0.0, 1.0], [0.0, 1.0])
    for part in ("'runs': every score", "'canaries': all scores", "None: all scores"):
        assert part in str(error.value)
    with pytest.raises(ValueError, match="got 'none'"):
        audit_scores([0.0, 1.0], [0.0, 1.0], independence="none")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scores0", "scores1", "words"),
    [
        ([0.0, math.nan], [1.0, 2.0], r"scores0\[1\] is nan"),
        ([0.0, 1.0], [1.0, 2.0, math.nan], r"scores1\[2\] is nan"),
        ([1.0, 1.0], [1, 1], "all 4 scores are 1"),
        ([1.0], [1.0, 2.0], "scores0 must hold at least 2 scores, got 1"),
        ([], [1.0, 2.0], "scores0 must hold at least 2 scores, got 0"),
        ([1.0, 2.0], ["a", "b"], "scores0 are numbers, but scores1 are not, such as 'a'"),
        (["a", "b"], [1.0, 2.0], "scores1 are numbers, but scores0 are not"),
        (["a"] * 40, ["b"] * 40, "too few to learn"),
    ],
)
def test_scores_that_cannot_be_used(scores0: list[Any], scores1: list[Any], words: str) -> None:
    for kind in (list, np.array):
        with pytest.raises(ValueError, match=words):
            audit_scores(kind(scores0), kind(scores1), independence="runs")


def test_arguments_of_a_wrong_type() -> None:
    with pytest.raises(TypeError, match="scores0 must be an array"):
        audit_scores("scores", [1.0, 2.0], independence="runs")
    with pytest.raises(TypeError, match="scores1 must be an array"):
        audit_scores([1.0, 2.0], 3.0, independence="runs")
    with pytest.raises(ValueError, match="OnlineAudit"):
        audit_scores([1.0, 2.0], [1.0, 3.0], independence="runs", method="sequential")
    with pytest.raises(ValueError, match="confidence"):
        audit_scores([1.0, 2.0], [1.0, 3.0], independence="runs", confidence=99)


def test_coins_that_were_not_fair_certify_nothing() -> None:
    scores0, scores1 = of_runs(900, 3.0, 0)
    for independence in ("canaries", None):
        result = audit_scores(scores0[:300], scores1, PureDP(0.5), independence=independence)
        assert result.verdict is Verdict.INCONCLUSIVE
        assert not result.bounds_valid
        assert result.mu_lower == 0
        assert "coins were not fair" in str(result)
    assert audit_scores(scores0[:300], scores1, PureDP(0.5), independence="runs").violated


def test_equal_scores_are_ordered_by_chance() -> None:
    """Two values only, equally frequent on both sides: 200 orders; fails by chance < 1 in 10**6."""
    scores = np.tile([0.0, 1.0], 50)
    for independence in CHOICES:
        right = [
            audit_scores(scores, scores, independence=independence, guesses=40, seed=seed).evidence.guessed.right  # type: ignore[union-attr, arg-type]
            for seed in range(60)
        ]
        assert 20 - 5 * 3.2 / math.sqrt(60) < np.mean(right) < 20 + 5 * 3.2 / math.sqrt(60)
        assert len(set(right)) > 1


def test_few_scores_are_inconclusive() -> None:
    result = audit_scores([0.0, 1.0, 0.5], [4.0, 5.0, 6.0], GaussianDP(1.0), independence="runs")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "too few" in str(result)


def test_infinite_scores_and_columns_are_allowed() -> None:
    result = audit_scores(np.zeros((50, 1)), np.full((50, 1), math.inf), PureDP(1.0), independence="runs")
    assert result.violated
