"""Scores that others have made, as users audit them; the theorems are tested in tests/inference."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import binom, hypergeom

import dpaudit_reports
from dpaudit import AuditResult, GaussianDP, PureDP, Verdict, audit_scores
from dpaudit.engine.learned_scores import _split, learned_scores
from dpaudit.engine.score_guesses import count_guesses
from dpaudit.inference.scores import confident, runs
from dpaudit.result.consistency import contradictions
from dpaudit.result.evidence import CanaryScoresEvidence
from dpaudit.result.scores_words import CANARIES_ASSUMED
from dpaudit_reports.formats.facts import facts, sentence
from dpaudit_reports.formats.run import Audited

CHOICES = ("runs", "canaries", None)
Arrays = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def of_runs(n: int, shift: float, seed: int | np.random.Generator) -> Arrays:
    """Scores of n runs on each of two datasets, Gaussian noise that moves by `shift`."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.normal(shift, 1.0, n)


def of_canaries(m: int, shift: float, seed: int | np.random.Generator) -> Arrays:
    """The same of m canaries that coins of their own put in."""
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    scores = rng.normal(shift * included, 1.0)
    return scores[~included], scores[included]


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
    assert dpaudit_reports.to_html([back])


def in_common_state(m: int, rng: np.random.Generator) -> Arrays:
    """Scores of canaries of which a common state reveals either nothing or much; the mixture keeps G_1."""
    included = rng.random(m) < 0.5
    right = rng.random(m) < (TELLS if rng.random() < STATE else 0.5)
    scores = np.where(right == included, 1.0, -1.0)
    return scores[~included], scores[included]


STATE, TELLS = 0.3937, float(expit(1.5))  # the probability of the revealing state, and of a right score in it


def test_the_common_state_keeps_the_claim() -> None:
    epsilon = np.linspace(0.0, 3.0, 301)
    assert np.all(STATE * np.asarray(PureDP(1.5).delta(epsilon)) <= np.asarray(GaussianDP(1.0).delta(epsilon)))


def rounded(scores: Arrays) -> Arrays:
    """Scores with many ties."""
    return np.round(scores[0]), np.round(scores[1])


CALIBRATED: dict[str, tuple[Any, Callable[[np.random.Generator], Arrays]]] = {
    "runs": ("runs", lambda rng: of_runs(50, 1.0, rng)),
    "runs with ties": ("runs", lambda rng: rounded(of_runs(50, 1.0, rng))),
    "canaries": ("canaries", lambda rng: of_canaries(100, 1.0, rng)),
    "canaries with ties": ("canaries", lambda rng: rounded(of_canaries(100, 1.0, rng))),
    "canaries of unknown dependence": (None, lambda rng: of_canaries(100, 1.0, rng)),
    "canaries with a common state": (None, lambda rng: in_common_state(100, rng)),
}


@pytest.mark.parametrize("name", CALIBRATED)
def test_true_claims_are_rarely_refuted(name: str) -> None:
    """Simulates 2,000 audits of each kind.  Fails by chance < 1 in 10**6 at the level of the count.

    A verdict depends on the scores only through the number of right guesses.  So the number that refutes the claim is
    computed once.  Its level under the claim is sharper than the significance, since counts are integers.
    """
    independence, made = CALIBRATED[name]
    claim, confidence, audits, rng = GaussianDP(1.0), 0.8, 2000, np.random.default_rng(7)
    whole = count_guesses(*made(rng), independence, None, rng)[0]
    least = whole.least_right(claim, confidence=confidence)
    assert least is not None
    level = whole.chance(claim, least)
    assert level <= 1 - confidence
    right = np.array([count_guesses(*made(rng), independence, None, rng)[0].right for _ in range(audits)])
    refuted = np.count_nonzero(right >= least)
    assert refuted <= binom.ppf(1 - 1e-6, audits, level)
    if name in ("runs", "canaries"):  # the level is attained by likelihood ratios, up to 3 % of rounding
        assert refuted >= binom.ppf(1e-6, audits, level / 1.04)


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
    r = confident.default_confident(500)
    assert right == np.count_nonzero(~into[: r // 2]) + np.count_nonzero(into[500 - (r - r // 2) :])
    assert found.p_value == confident.p_value(GaussianDP(1.0), 500, r, right)
    found = audit_scores(*scores, "gaussian(mu=1)", independence="runs", seed=1)
    n0, n1 = map(len, scores)
    r = runs.default_cut(n0, n1)
    assert found.evidence.right == np.count_nonzero(into[500 - r :])
    assert found.p_value == runs.p_value(GaussianDP(1.0), n0, n1, r, found.evidence.right)


def test_the_assumption_stands_beside_every_verdict() -> None:
    results = [
        audit_scores(*of_canaries(100, 1.0, 0), claim, independence="canaries")
        for claim in ("gaussian(mu=0.1)", "gaussian(mu=1.5)", None)
    ]
    assert {(result.verdict, result.measurement) for result in results} == {
        (Verdict.VIOLATION, False),
        (Verdict.NO_VIOLATION, False),
        (Verdict.INCONCLUSIVE, True),
    }
    assert CANARIES_ASSUMED in dpaudit_reports.to_html(results[:1])
    for result in results:
        outputs = [str(result), repr(result), dpaudit_reports.to_markdown([result])]
        outputs += [sentence(Audited(name="a", result=result)), str(facts(Audited(name="a", result=result)))]
        for text in outputs:
            assert CANARIES_ASSUMED in text
    assert dpaudit_reports.to_html(results).count(CANARIES_ASSUMED) >= 3
    for independence in ("runs", None):
        assert "assumed, not tested" not in str(audit_scores(*of_runs(100, 1.0, 0), independence=independence))


@pytest.mark.parametrize("independence", CHOICES)
def test_without_a_claim_it_is_a_measurement(independence: Any) -> None:
    """Fails by chance < 1 in 10**9: a bound of 0 from 300 scores that are 3 apart."""
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


class Memory:
    """Recognises every output that it was fitted on, and guesses about others by their first letter."""

    name = "memory"
    calibrated = True

    def fit(self, outputs0: list[str], outputs1: list[str], rng: np.random.Generator) -> Callable[[Any], Any]:
        known = dict.fromkeys(outputs0, -9.0) | dict.fromkeys(outputs1, 9.0)
        return lambda outputs: np.array([known.get(o, 1.0 if o.startswith("b") else -1.0) for o in outputs])


def words_and_numbers(n: int, seed: int) -> tuple[list[str], list[str]]:
    """Outputs "a" or "b", which keep epsilon = 1 exactly, each followed by a number that occurs once."""
    rng, keeps = np.random.default_rng(seed), expit(1.0)
    side0, side1 = (
        [f"{'b' if said else 'a'}{side}.{i}" for i, said in enumerate(rng.random(n) < p)]
        for side, p in enumerate((1 - keeps, keeps))
    )
    return side0, side1


@pytest.mark.parametrize("coins", [False, True])
def test_no_score_is_counted_that_was_learned_from(coins: bool) -> None:
    for seed in range(5):
        sides = words_and_numbers(90, seed)
        learned = learned_scores(*sides, Memory(), seed, coins=coins)
        for scores in (learned.scores0, learned.scores1):
            assert set(scores) == {-1.0, 1.0}  # a score of +-9 is of an output that was learned from
        assert len(learned.scores0) + len(learned.scores1) == 120


def test_learned_scores_do_not_refute_a_true_claim_more_often() -> None:
    """Simulates 120 audits with an attack that remembers all it saw; fails by chance < 1 in 10**6."""
    claim, right = PureDP(1.0), []
    for seed in range(120):
        learned = learned_scores(*words_and_numbers(60, seed), Memory(), seed, coins=False)
        evidence, _ = count_guesses(learned.scores0, learned.scores1, "runs", None, np.random.default_rng(seed))
        right.append(evidence.right)
    least = evidence.least_right(claim, confidence=0.8)
    assert least is not None
    assert np.count_nonzero(np.asarray(right) >= least) <= binom.ppf(1 - 1e-6, 120, evidence.chance(claim, least))


def test_the_split_leaves_the_other_coins_fair_and_independent() -> None:
    """Draws 2,000 splits of 90 canaries; fails by chance < 1 in 10**6 (5.5 standard errors of mean and variance).

    If a third of each side were learned from, the variance of the coins that are left would be two thirds of this.
    """
    into = []
    for seed in range(2000):
        n1 = int(np.random.default_rng(seed).binomial(90, 0.5))
        (_, rest0), (_, rest1) = _split(90 - n1, n1, np.random.default_rng([seed, 1]), coins=True)
        assert len(rest0) + len(rest1) == 60
        into.append(len(rest1))
    assert abs(np.mean(into) - 30) < 5.5 * math.sqrt(15 / 2000)
    assert abs(np.var(into) / 15 - 1) < 5.5 * math.sqrt(2 / 2000)


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


def test_masked_and_missing_scores_are_refused() -> None:
    """The number under a mask would otherwise be taken as a score."""
    masked = np.ma.masked_array([0.0, 99.0, 1.0], mask=[False, True, False])
    missing = pd.array([0.5, None, 1.5], dtype="Float64")
    for scores, what in (
        (masked, "masked"),
        (masked[:, None], "masked"),
        (list(masked), "--"),
        (pd.Series(missing), "<NA>|nan"),
        (list(missing), "<NA>"),
        (np.array([0.0, pd.NA], dtype=object), "<NA>"),
        (np.array([0.0, math.nan], dtype=object), "nan"),
    ):
        with pytest.raises(ValueError, match=rf"scores1\[1\] is ({what}); a score must be a number. Decide"):
            audit_scores([0.0, 1.0], scores, independence="runs")


def test_integers_that_no_float_equals_are_refused() -> None:
    for large in (2**53 + 1, -(2**63) + 1, 2**2000):
        for scores in ([0, large], np.array([0, large], dtype=object if abs(large) > 2**64 else np.int64)):
            with pytest.raises(ValueError, match=r"scores0\[1\] is -?\d+.*, an integer beyond 2\*\*53"):
                audit_scores(scores, [0.0, 1.0], independence="runs")
    audit_scores([0, 2**60], [1.0, 1e300], independence="runs")


def test_object_arrays_and_unmasked_arrays_of_numbers_are_scores() -> None:
    plain = audit_scores([0.0, 1.0, 2.0], [3.0, 4.0, 5.0], independence="runs", seed=1)
    kinds = (np.ma.masked_array, lambda side: np.array(side, dtype=object), pd.Series, lambda side: pd.array(side))
    for kind in kinds:
        found = audit_scores(kind([0, 1, 2]), kind([3, 4, 5]), independence="runs", seed=1)
        assert found.evidence.to_json() == plain.evidence.to_json()


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
    scores0, scores1 = of_runs(300, 3.0, 0)
    for independence in ("canaries", None):
        result = audit_scores(scores0[:100], scores1, PureDP(0.5), independence=independence)
        assert result.verdict is Verdict.INCONCLUSIVE
        assert not result.bounds_valid
        assert result.mu_lower == 0
        assert "coins were not fair" in str(result)
    assert audit_scores(scores0[:100], scores1, PureDP(0.5), independence="runs").violated


def _right_if_half_are_included(m: int, r: int, v: int) -> float:
    """Return P[v or more right guesses] by summation, if scores tell nothing and a set of m / 2 canaries is drawn."""
    low, high = r // 2, r - r // 2
    total = 0.0
    for top in range(high + 1):
        below = hypergeom(m - high, m // 2 - top, low)  # included canaries among the lowest, given those on top
        total += hypergeom.pmf(top, m, m // 2, high) * below.cdf(min(low, top + low - v))
    return float(total)


@pytest.mark.parametrize("m", [10, 20, 40])
def test_exactly_half_included_keeps_the_level(m: int) -> None:
    """Coins with a fixed sum depend on each other: without the factor, some p-values are too small."""
    r, claim, too_small = confident.default_confident(m), PureDP(0.0), 0
    for v in range(r // 2, r + 1):
        evidence = CanaryScoresEvidence(m=m, included=m // 2, half=1, guesses=r, right=v)
        exact = _right_if_half_are_included(m, r, v)
        assert evidence.p_value(claim) >= exact
        too_small += evidence.under_coins(claim, v) < 0.99 * exact
    assert too_small > 0


def test_exactly_half_included_is_reported() -> None:
    scores = np.random.default_rng(0).normal(size=(2, 50))
    for independence in ("canaries", None):
        for side, said in ((50, True), (49, True), (48, False)):
            result = audit_scores(scores[0], scores[1][:side], independence=independence)  # type: ignore[arg-type]
            assert ("may have been fixed beforehand, so all p-values are multiplied by 12" in str(result)) == said
    assert "multiplied" not in str(audit_scores(*scores, independence="runs"))
    outputs = words_and_numbers(90, 0)
    learned = audit_scores(*outputs, independence=None, attacks=Memory(), seed=1)
    assert "exactly half of the canaries were included" in str(learned)
    assert learned.evidence.m == 120  # type: ignore[union-attr]


@pytest.mark.parametrize("independence", CHOICES)
def test_equal_scores_are_ordered_by_chance(independence: Any) -> None:
    """Draws 2,000 orders of scores with two values, equally frequent on both sides; fails by chance < 1 in 10**6.

    The number of right guesses is hypergeometric: 40 of the 100 equal scores on top, or 20 of 100 on either end.  The
    mean may differ by 5.5 standard errors.  The variance may differ by 17 %, which is 5.5 of its standard errors.
    """
    scores = np.tile([0.0, 1.0], 50)
    rng = np.random.default_rng(11)
    right = [count_guesses(scores, scores, independence, 40, rng)[0].right for _ in range(2000)]
    law = hypergeom(100, 50, 40 if independence == "runs" else 20)
    variance = law.var() * (1 if independence == "runs" else 2)
    assert abs(np.mean(right) - 20) < 5.5 * math.sqrt(variance / 2000)
    assert abs(np.var(right) / variance - 1) < 5.5 * math.sqrt(2 / 2000)


@pytest.mark.parametrize("independence", CHOICES)
def test_a_file_concatenated_with_itself_certifies_nothing(independence: Any) -> None:
    """The copies are not independent: each score that stands five times refuted a true claim far too often."""
    scores = of_canaries(100, 1.0, 0)
    result = audit_scores(*(np.tile(side, 5) for side in scores), GaussianDP(1.0), independence=independence)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid
    assert result.p_value == 1
    assert "100 of 500 differ" in str(result)
    assert "give one score for each run or canary" in str(result)
    assert audit_scores(*scores, independence=independence).bounds_valid


def test_outputs_that_were_copied_certify_nothing() -> None:
    """Copies of an output that is learned from would be recognised among those that are counted."""
    outputs = words_and_numbers(60, 0)
    doubled = audit_scores(*(side * 2 for side in outputs), PureDP(0.1), independence="runs", attacks=Memory(), seed=1)
    assert "scores were copied" in str(doubled)
    assert not doubled.bounds_valid


def test_few_scores_are_inconclusive() -> None:
    result = audit_scores([0.0, 1.0, 0.5], [4.0, 5.0, 6.0], GaussianDP(1.0), independence="runs")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "too few" in str(result)


def test_infinite_scores_and_columns_are_allowed() -> None:
    result = audit_scores(np.zeros((50, 1)), np.full((50, 1), math.inf), PureDP(1.0), independence="runs")
    assert result.violated
