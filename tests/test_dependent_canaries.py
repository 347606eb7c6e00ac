"""Canaries that are assumed to be independent: several runs, and tests that reject independence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

import dpaudit_reports
from dpaudit import AuditResult, GaussianDP, audit_scores
from dpaudit.inference.scores import exchangeability
from dpaudit.inference.scores.exchangeability import LEVEL, along_the_list, between_runs
from dpaudit.result.values import Verdict

from .agreement import check_agreement

LOOKS_DEPENDENT = "canaries depend on each other"


def audited(scores: Any, included: Any, run: Any = None, claim: Any = None, **more: Any) -> AuditResult:
    runs = None if run is None else (run[~included], run[included])
    return audit_scores(
        scores[~included],
        scores[included],
        claim,
        independence="canaries",
        run=runs,
        seed=1,
        **{"confidence": 0.95, **more},
    )


def response(revealed: Any, m: int, seed: int) -> tuple[Any, Any, Any]:
    """Return scores, inclusions and runs of the mechanism that sometimes answers for all records of a run, else 0."""
    rng, run = np.random.default_rng(seed), np.repeat(np.arange(len(revealed)), m)
    included = rng.random(len(run)) < 0.5
    right = rng.random(len(run)) < expit(1.5)
    return np.where(np.array(revealed)[run], np.where(included == right, 1.0, -1.0), 0.0), included, run


def test_runs_of_independent_canaries_count_together() -> None:
    rng = np.random.default_rng(3)
    included, run = rng.random(900) < 0.5, rng.permutation(np.repeat(["a", "b", "c"], 300))
    scores = rng.normal(2.0 * included)
    found, one = audited(scores, included, run, GaussianDP(1.0)), audited(scores, included, None, GaussianDP(1.0))
    assert {**found.evidence.to_json(), "factor": 0} == {**one.evidence.to_json(), "factor": 0, "runs": 3}
    assert found.violated
    assert found.trials_used == 3
    assert "3 runs with 900 canaries" in str(found)


def test_a_state_that_runs_do_not_share_makes_the_result_inconclusive(tmp_path: Path) -> None:
    found = audited(*response((False, True, False), 100, 1), GaussianDP(1.0))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert not found.bounds_valid
    assert (found.mu_lower, found.p_value) == (0.0, 1.0)
    assert any(f"{LOOKS_DEPENDENT}: scores differ between runs" in words for words in found.warnings)
    found.to_json(tmp_path / "r.json")
    back = AuditResult.from_json(tmp_path / "r.json")
    check_agreement(back)
    assert LOOKS_DEPENDENT in dpaudit_reports.to_markdown([back])


def test_a_state_that_all_canaries_of_one_run_share_cannot_be_seen() -> None:
    scores, included, _ = response([True], 400, 2)
    assert not any(LOOKS_DEPENDENT in words for words in audited(scores, included).warnings)


@pytest.mark.parametrize("kind", ["shard", "drift", "neighbours"])
def test_dependence_shows_in_the_order(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, included = ordered(kind)
    monkeypatch.setattr(exchangeability, "_DRAWS", 200)
    assert along_the_list(scores[~included], scores[included], rng=np.random.default_rng(0)) == 1 / 200


def ordered(kind: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    included, noise = rng.random(600) < 0.5, rng.normal(size=601)
    scores = {
        "shard": noise[1:] + np.where(np.arange(600) < 150, 3.0 * included, 0.0),
        "drift": noise[1:] + included + np.linspace(0.0, 2.0, 600),
        "neighbours": (noise[1:] + noise[:-1]) / np.sqrt(2.0) + included,
    }
    return scores[kind], included


def test_an_order_that_is_not_random_makes_the_result_inconclusive() -> None:
    scores, included = ordered("shard")
    found = audited(scores, included)
    assert not found.bounds_valid
    assert any("or are listed by kind: scores differ along the list" in words for words in found.warnings)
    mixed = np.random.default_rng(9).permutation(600)
    assert not any(LOOKS_DEPENDENT in words for words in audited(scores[mixed], included[mixed]).warnings)


def test_sorted_lists_say_nothing_about_dependence() -> None:
    rng = np.random.default_rng(5)
    out, into = np.sort(rng.normal(size=300)), np.sort(rng.normal(1, 1, 310))[::-1]
    assert along_the_list(out, into, rng=rng) == 1.0
    assert along_the_list(rng.normal(size=19), into, rng=rng) == 1.0
    assert between_runs(out, into, np.zeros(300, np.intp), np.zeros(310, np.intp), rng=rng) == 1.0


def test_the_tests_keep_their_level_for_exchangeable_canaries() -> None:
    """Simulates 150 sets of canaries of two kinds in random order.  Fails by chance < 1 in 10**6."""
    rng, found = np.random.default_rng(6), []
    for _ in range(150):
        out, into = (rng.normal(side * rng.exponential(size=30)) * rng.choice([1.0, 9.0], 30) for side in (0, 1))
        run = rng.integers(0, 3, 60)
        found.append((between_runs(out, into, run[:30], run[30:], rng=rng), along_the_list(out, into, rng=rng)))
    for level in (0.5, 0.2, 0.05):
        assert np.all((np.array(found) <= level).sum(axis=0) <= binom.ppf(1 - 1e-7, 150, level))


def test_long_lists_are_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    assert exchangeability._DRAWS == 2 / LEVEL
    monkeypatch.setattr(exchangeability, "_DRAWS", 50)
    scores, included, run = response((True, False), 12_000, 7)
    p_value = between_runs(
        scores[~included], scores[included], run[~included], run[included], rng=np.random.default_rng(0)
    )
    assert p_value == 1 / 50
