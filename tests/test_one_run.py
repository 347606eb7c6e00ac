"""One run with many canaries as users call it: verdicts, and tests that reject their independence."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

import dpaudit_reports
from dpaudit import AuditResult, GaussianDP, PureDP, Verdict, audit_one_run, audit_scores
from dpaudit.inference.scores import exchangeability
from dpaudit.inference.scores.exchangeability import LEVEL, along_the_list, between_runs

from .scored import SURE, check_agreement


def canaries(m: int, shift: float, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return scores of canaries: Gaussian noise, shifted by `shift` if the canary is included."""
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    return rng.normal(shift * included, 1.0), included


def test_a_leak_is_found_and_the_result_is_kept(tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**9."""
    scores, included = canaries(1000, 2.0, 0)
    result = audit_one_run(scores, included, PureDP(1.0), confidence=SURE, seed=1)
    assert result.verdict is Verdict.VIOLATION
    assert result.method == "scores"
    assert result.trials_used == 1
    assert 1.0 < result.epsilon_lower(0.0) < 6.0
    assert result.mu_lower <= 2.0
    same = audit_scores(scores[~included], scores[included], PureDP(1.0), confidence=SURE, seed=1)
    assert same.evidence.to_json() == result.evidence.to_json()
    result.to_json(tmp_path / "r.json")
    back = AuditResult.from_json(tmp_path / "r.json")
    assert back.to_dict() == result.to_dict()
    assert back.epsilon_lower(1e-5) == result.epsilon_lower(1e-5)
    back.to_pdf(tmp_path / "r.pdf")
    assert (tmp_path / "r.pdf").stat().st_size > 1000


def test_true_claims_are_rarely_refuted() -> None:
    """Makes 12 runs.  Fails by chance < 1 in 10**6 at the stated rate.  benchmarks/score_bounds.py makes thousands."""
    refuted = [audit_one_run(*canaries(60, 1.0, seed), GaussianDP(1.0), confidence=0.95).violated for seed in range(12)]
    assert sum(refuted) <= binom.ppf(1 - 1e-6, 12, 0.05)


def test_detection_limits_of_one_run_are_reported() -> None:
    few = audit_one_run(*canaries(4, 9.0, 0), PureDP(3.0), confidence=0.95)
    assert few.verdict is Verdict.INCONCLUSIVE
    assert any("too few" in warning for warning in few.warnings)
    many = audit_one_run(*canaries(1000, 0.0, 0), "pure(epsilon=1)", confidence=0.95)
    assert many.verdict is Verdict.NO_VIOLATION
    assert many.detectable.claim.startswith("pure(epsilon=1.")


def test_infinite_scores_are_legal() -> None:
    included = np.arange(51) < 25
    scores = np.where(included, math.inf, -math.inf)
    assert audit_one_run(scores, included, PureDP(0.5), confidence=0.95).violated


@pytest.mark.parametrize(
    ("scores", "included", "arguments", "message"),
    [
        ([0.0, math.nan], [True, False], {}, "scores must be numbers, got nan for canary 1"),
        ([0.0, 1.0], [True], {}, "included must be a boolean for each of 2 canaries"),
        ([0.0, 1.0], [0, 2], {}, "included must consist of booleans"),
        ([0.0, 1.0], [True, True], {}, "no canary was left out, so there is nothing to guess"),
        ([0.0, 1.0], [True, False], {"confidence": 1.0}, "confidence must lie strictly between 0 and 1, got 1"),
        ([], [], {}, "at least one canary"),
    ],
)
def test_impossible_input_is_refused(scores: Any, included: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        audit_one_run(scores, included, PureDP(1.0), **arguments)


def test_constant_scores_rarely_refute() -> None:
    """Equal scores are put in a random order: a fixed order refuted 21 % of such claims at 99 %.

    Each of 12 audits refutes with probability 0.01 at most; too many do so by chance < 1 in 10**6.
    """
    rng, refuted = np.random.default_rng(0), 0
    for _ in range(12):
        coins, seed = rng.random(569) < 0.5, int(rng.integers(2**62))
        refuted += audit_one_run(np.zeros(569), coins, "pure(epsilon=0.05)", seed=seed).violated
    assert refuted <= binom.ppf(1 - 1e-6, 12, 0.01)


def test_a_chosen_seed_is_named_where_the_order_of_equal_scores_matters() -> None:
    included = np.arange(200) % 3 == 0
    for scores, named in ((np.zeros(200), True), (np.arange(200), False)):
        result = audit_one_run(scores, included, "gaussian(mu=1)", confidence=SURE, seed=1)
        assert any("the false-alarm guarantee" in warning for warning in result.warnings) == named
        unseeded = audit_one_run(scores, included, "gaussian(mu=1)", confidence=SURE)
        assert not any("the false-alarm guarantee" in warning for warning in unseeded.warnings)
    assert audit_one_run(scores, included, "gaussian(mu=1)", confidence=SURE, seed=7).provenance.seed == 7


def test_runs_with_the_same_coins_prove_nothing() -> None:
    rng = np.random.default_rng(0)
    coins = rng.random(100) < 0.5
    again = np.concatenate([coins, coins])
    run = np.repeat([0, 1], 100)
    scores = rng.normal(5.0 * again)
    same = audit_one_run(scores, again, "gaussian(mu=0.1)", confidence=SURE, run=run)
    assert same.verdict is Verdict.INCONCLUSIVE
    assert "exactly the same canaries" in str(same.warnings[-1])
    fresh = rng.random(200) < 0.5
    assert audit_one_run(rng.normal(5.0 * fresh), fresh, "gaussian(mu=0.1)", confidence=SURE, run=run).violated


def test_drawn_runs_with_the_same_canaries_are_dependent_only_if_there_are_many_choices() -> None:
    """If each of 2 runs includes one of 16 canaries, runs may agree; if each includes half of 30, hardly ever."""
    for canaries, number, dependent in ((16, 1, False), (30, 15, True)):
        run = np.repeat([0, 1], canaries)
        once = np.random.default_rng(0).permutation(canaries) < number
        result = audit_one_run(
            np.random.default_rng(1).normal(size=2 * canaries), np.tile(once, 2), "pure(epsilon=1)", run=run,
            included_at_random="fixed_number", confidence=1 - 1e-12,
        )  # fmt: skip
        assert any("exactly the same canaries" in warning for warning in result.warnings) == dependent


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
        **{"confidence": SURE, **more},
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
