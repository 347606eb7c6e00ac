"""Levels of audits of scores of exactly true claims, and the numbers of scores that plans state."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import binom

from dpaudit import GaussianDP, PureDP, Verdict, audit_scores, plan_scores
from dpaudit.claims.tabulated import NO_CLAIM
from dpaudit.engine.read_scores import learned_scores, order_doubts, split_outputs
from dpaudit.engine.result_parts import observed_curve
from dpaudit.engine.score_design import Coins, Inclusion, Independence, fewest_scores, sorted_evidence
from dpaudit.inference.one_run import half_by_chance
from dpaudit.inference.scores.rank_bounds import Path, RankTest
from dpaudit.inference.scores.rank_laws import Independent
from dpaudit.inference.scores.ranks import Blocks

from .scored import CHOICES, SURE, Arrays, Memory, of_canaries, of_runs, words_and_numbers


def in_common_state(m: int, rng: np.random.Generator) -> Arrays:
    """Return scores of canaries with a common state that reveals either nothing or much; the mixture satisfies G_1."""
    included = rng.random(m) < 0.5
    right = rng.random(m) < (TELLS if rng.random() < STATE else 0.5)
    scores = np.where(right == included, 1.0, -1.0)
    return scores[~included], scores[included]


STATE, TELLS = 0.3937, float(expit(1.5))  # the probability of the revealing state, and of a right score in it


def test_the_common_state_keeps_the_claim() -> None:
    epsilon = np.linspace(0.0, 3.0, 301)
    assert np.all(STATE * np.asarray(PureDP(1.5).delta(epsilon)) <= np.asarray(GaussianDP(1.0).delta(epsilon)))


def rounded(scores: Arrays) -> Arrays:
    return np.round(scores[0]), np.round(scores[1])


CALIBRATED: dict[str, tuple[Any, Callable[[np.random.Generator], Arrays]]] = {
    "runs": ("runs", lambda rng: of_runs(50, 1.0, rng)),
    "runs with ties": ("runs", lambda rng: rounded(of_runs(50, 1.0, rng))),
    "canaries": ("canaries", lambda rng: of_canaries(100, 1.0, rng)),
    "canaries with ties": ("canaries", lambda rng: rounded(of_canaries(100, 1.0, rng))),
    "canaries of unknown dependence": (None, lambda rng: of_canaries(100, 1.0, rng)),
    "canaries with a common state": (None, lambda rng: in_common_state(100, rng)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "runs with ties" else pytest.mark.slow) for name in CALIBRATED]
)
def test_true_claims_are_rarely_refuted(name: str) -> None:
    """Makes 20 tests at 80 %; fails by chance < 1 in 10**6.  benchmarks/score_bounds.py makes thousands."""
    independence, made = CALIBRATED[name]
    claim, audits, rng, refuted = GaussianDP(1.0), 20, np.random.default_rng(7), 0
    for _ in range(audits):
        scores = made(rng)
        coins = Coins(0.5, 1.0, "")
        evidence = sorted_evidence(
            *scores, independence or "inclusion", coins, runs=1, claim=claim, significance=0.2, rng=rng
        )
        refuted += evidence.refutes(claim, confidence=0.8)
    assert refuted <= binom.ppf(1 - 1e-6, audits, 0.2)


@pytest.mark.parametrize("independence", ["runs", "canaries", None])
@pytest.mark.parametrize("claim", [PureDP(0.0), GaussianDP(0.0)])
def test_a_claim_of_no_loss_is_not_refuted_by_noise(independence: Any, claim: Any) -> None:
    """Each of three audits refutes with probability 1e-3, so all three do by chance with 1e-9."""
    rng = np.random.default_rng(3)
    refuted = [
        audit_scores(rng.normal(size=30), rng.normal(size=31), claim, independence=independence, confidence=0.999)
        for _ in range(3)
    ]
    assert sum(result.violated for result in refuted) < 3


@pytest.mark.parametrize("coins", [False, True])
def test_no_score_is_counted_that_was_learned_from(coins: bool) -> None:
    for seed in range(5):
        sides = words_and_numbers(90, seed)
        learned = learned_scores(*sides, Memory(), seed, coins=coins)
        for scores in (learned.scores0, learned.scores1):
            assert set(scores) == {-1.0, 1.0}  # a score of +-9 is of an output that was learned from
        assert len(learned.scores0) + len(learned.scores1) == 120


def test_learned_scores_do_not_refute_a_true_claim_more_often() -> None:
    """Makes 15 audits with an attack that memorises all outputs of its fit; fails by chance < 1 in 10**6 at 80 %."""
    claim, refuted = PureDP(1.0), 0
    for seed in range(15):
        learned = learned_scores(*words_and_numbers(60, seed), Memory(), seed, coins=False)
        evidence = sorted_evidence(
            learned.scores0,
            learned.scores1,
            "runs",
            Coins(0.5, 1.0, ""),
            runs=1,
            claim=claim,
            significance=0.2,
            rng=np.random.default_rng(seed),
        )
        refuted += evidence.refutes(claim, confidence=0.8)
    assert refuted <= binom.ppf(1 - 1e-6, 15, 0.2)


def test_the_split_leaves_the_other_coins_fair_and_independent() -> None:
    """Draws 2,000 splits of 90 canaries; fails by chance < 1 in 10**6 (5.5 standard errors of mean and variance).

    If a third of each side were learned from, the variance of the coins that are left would be two thirds of this.
    """
    into = []
    for seed in range(2000):
        n1 = int(np.random.default_rng(seed).binomial(90, 0.5))
        (_, rest0), (_, rest1) = split_outputs(90 - n1, n1, np.random.default_rng([seed, 1]), coins=True)
        assert len(rest0) + len(rest1) == 60
        into.append(len(rest1))
    assert abs(np.mean(into) - 30) < 5.5 * math.sqrt(15 / 2000)
    assert abs(np.var(into) / 15 - 1) < 5.5 * math.sqrt(2 / 2000)


def test_equal_scores_are_ordered_by_chance() -> None:
    """Draws 2,000 orders of scores with two values, equally frequent on both sides.

    The highest score is of d1 half of the time.  The share may differ by 5.5 standard errors: < 1 in 10**6 by chance.
    """
    scores = np.tile([0.0, 1.0], 25)
    rng = np.random.default_rng(11)
    right = [
        sorted_evidence(
            scores, scores, "runs", Coins(0.5, 1.0, ""), runs=1, claim=PureDP(1.0), significance=0.2, rng=rng
        ).ranked[0]
        for _ in range(2000)
    ]
    assert abs(np.mean(right) - 0.5) < 5.5 * math.sqrt(0.25 / 2000)


@pytest.mark.parametrize(
    ("independence", "truth", "inclusion"),
    [
        pytest.param("runs", 1.6, "coins", marks=pytest.mark.slow),
        pytest.param(None, 3.0, "coins", marks=pytest.mark.slow),
        pytest.param(None, 4.0, "fixed_number", marks=pytest.mark.slow),
    ],
)
def test_the_number_of_scores_is_enough(independence: Any, truth: float, inclusion: Any) -> None:
    """Audits scores at the planned number, and at a third of it.  Fails by chance < 1 in 10**6 if plans are right."""
    n = plan_scores(
        "gaussian(mu=1)", GaussianDP(truth), independence=independence, included_at_random=inclusion, confidence=0.95
    )
    assert n is not None
    rng, audits, found = np.random.default_rng(2), 40, []
    fixed = independence == "runs" or inclusion == "fixed_number"
    for size in (n, n // 3):
        refuted = 0
        for _ in range(audits):
            included = rng.permutation(size) >= size // 2 if fixed else rng.random(size) < 0.5
            scores = rng.normal(truth * included)
            evidence = audit_scores(
                scores[~included],
                scores[included],
                "gaussian(mu=1)",
                independence=independence,
                included_at_random=inclusion,
                confidence=0.95,
            )
            refuted += evidence.violated
        found.append(refuted)
    assert found[0] >= binom.ppf(1e-6, audits, 0.9)
    assert found[1] <= 0.9 * audits


def test_a_larger_violation_needs_fewer_scores_and_a_weaker_assumption_more() -> None:
    numbers = [
        plan_scores(PureDP(0.5), PureDP(epsilon), independence="canaries", confidence=SURE) for epsilon in (2.0, 4.0)
    ]
    assert numbers == sorted(numbers, reverse=True)
    strong, weak = (
        plan_scores("gaussian(mu=1)", GaussianDP(3.0), independence=independence, confidence=SURE)  # type: ignore[arg-type]
        for independence in CHOICES[1:]
    )
    assert strong < weak


def test_nothing_to_refute_needs_no_number_of_scores() -> None:
    assert plan_scores("gaussian(mu=1)", "gaussian(mu=1)", independence="runs") is None
    assert plan_scores("gaussian(mu=1)", "gaussian(mu=0.5)") is None


@pytest.mark.parametrize("independence", CHOICES)
def test_wrong_arguments_are_explained(independence: Any) -> None:
    for power in (0.0, 0.9999, 1):
        with pytest.raises(ValueError, match=rf"power must lie in \(0, 0\.97\], got {power}"):
            plan_scores("gaussian(mu=1)", "gaussian(mu=2)", independence=independence, power=power)
    with pytest.raises(ValueError, match="confidence"):
        plan_scores("gaussian(mu=1)", "gaussian(mu=2)", independence=independence, confidence=99)


def test_coins_often_include_half_of_few_canaries() -> None:
    assert half_by_chance(4) == pytest.approx(6 / 16)
    assert half_by_chance(5) == pytest.approx(20 / 32)


@pytest.mark.parametrize("independence", ["runs", None])
def test_the_fewest_scores_refute_if_all_guesses_are_right(independence: Any) -> None:
    n = fewest_scores(PureDP(1.0), independence=independence, confidence=0.95)
    assert n is not None

    def refuted(n: int) -> bool:
        n0 = n // 2 if independence == "runs" else (n + 1) // 2 + 1  # fair coins, not exactly half
        perfect = np.arange(float(n))
        return audit_scores(
            perfect[:n0], perfect[n0:], PureDP(1.0), independence=independence, confidence=0.95
        ).violated

    assert refuted(n + 4)
    assert not refuted(n // 2)


@pytest.mark.parametrize(("independence", "tries"), [("runs", 20), ("canaries", 20), (None, 1)])
def test_rare_events_are_told_from_the_smaller_side(independence: Independence, tries: int) -> None:
    """An event that reveals an included canary has one chance for each included canary."""
    scores = np.random.default_rng(0).normal(size=500)
    inclusion: Inclusion = "coins" if independence == "runs" else "fixed_number"
    result = audit_scores(
        scores[20:],
        scores[:20],
        "gaussian(mu=1)",
        independence=independence,
        included_at_random=inclusion,
        confidence=SURE,
    )
    assert result.detectable.rule_of_three_rate == pytest.approx(1 - 0.05 ** (1 / tries))


def test_a_result_says_how_many_scores_would_find_a_violation_by_a_fifth() -> None:
    scores = np.random.default_rng(0).normal(size=401)
    found = audit_scores(scores[200:], scores[:200], "gaussian(mu=1)", independence="canaries", confidence=0.95)
    words = found.detectable.needed
    assert words.endswith("would find gaussian(mu=1.2)")
    number = int(words.split()[1].replace(",", ""))
    planned = plan_scores("gaussian(mu=1)", "gaussian(mu=1.2)", independence="canaries", confidence=0.95)
    assert planned is not None
    assert planned / 2 <= number <= 2 * planned


# --- scores and arguments that `audit_scores` refuses, with messages that name the place


def test_an_unknown_assumption_is_explained() -> None:
    with pytest.raises(ValueError, match="got 'none'") as error:
        audit_scores([0.0, 1.0], [0.0, 1.0], independence="none")  # type: ignore[arg-type]
    for part in ("'runs': every score", "'canaries': canaries were included", "None: only the random inclusion"):
        assert part in str(error.value)


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
        with pytest.raises(ValueError, match=rf"scores1\[1\] is ({what}); a score must be a number; give such runs"):
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


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (None, r"scores0\[7\] is None; a score must be a number; .* give text in its place"),
        ("n/a", r"scores0\[7\] is 'n/a', but 399 of 400 values are numbers"),
        ([1.0], r"scores0\[7\] is \[1.0\], but 399 of 400 values are numbers"),
    ],
)
def test_few_values_that_are_no_numbers_do_not_switch_to_learned_scores(wrong: Any, words: str) -> None:
    values = np.random.default_rng(0).normal(size=400).tolist()
    values[7] = wrong
    with pytest.raises(ValueError, match=words):
        audit_scores(values[:200], values[200:], independence="runs")


def test_a_confidence_is_taken_for_a_percentage_only_if_it_can_be_one() -> None:
    for confidence, hint in ((2, ""), (49, ""), (50, "; did you mean 0.5\\?"), (95, "; did you mean 0.95\\?")):
        with pytest.raises(ValueError, match=rf"between 0 and 1, got {confidence}{hint}$"):
            audit_scores([1.0, 2.0], [3.0, 4.0], independence="runs", confidence=confidence)


class Unhashable(GaussianDP):
    """A claim of a user's own class may have a field that cannot be hashed."""

    __hash__ = None


@pytest.mark.parametrize("independence", CHOICES)
def test_a_claim_that_cannot_be_hashed_is_tested_all_the_same(independence: Any) -> None:
    scores = of_canaries(60, 3.0, 5)
    found = [
        audit_scores(*scores, claim(0.5), independence=independence, confidence=SURE, seed=1)
        for claim in (GaussianDP, Unhashable)
    ]
    assert found[0].p_value == found[1].p_value < 1


def test_simulations_for_a_claim_that_cannot_be_hashed_are_those_for_an_equal_claim() -> None:
    blocks = Blocks(10, 10)
    test = RankTest(Independent(blocks), tuple(blocks.sizes.tolist()), Path(None), 0.2)
    known, unhashable = (test.p_value(claim(0.5), roughly=True) for claim in (GaussianDP, Unhashable))
    assert known == unhashable < 0.2


@pytest.mark.parametrize("independence", CHOICES)
@pytest.mark.parametrize("claim", [None, "gaussian(mu=1)"])
def test_losses_are_named_in_the_verdict(independence: Any, claim: str | None) -> None:
    rng = np.random.default_rng(0)
    out, into = rng.normal(size=200), rng.normal(1, 1, 201)
    losses = audit_scores(into, out, claim, independence=independence, confidence=SURE, seed=1)
    assert "negate it" in str(losses).splitlines()[0]
    assert losses.verdict is Verdict.INCONCLUSIVE
    assert not losses.bounds_valid
    right = audit_scores(out, into, claim, independence=independence, confidence=SURE, seed=1)
    assert "negate it" not in str(right)


def test_a_few_revealed_canaries_count_if_all_others_score_lower() -> None:
    rng = np.random.default_rng(0)
    out, into = rng.normal(1, 1, 190), rng.normal(size=211)
    into[:60] = 9
    assert audit_scores(out, into, "pure(epsilon=0.5)", seed=1).violated


@pytest.mark.parametrize("n", [200, 500])
def test_losses_are_told_from_scores(n: int) -> None:
    """200 scores of N(1, 1) and of N(0, 1) are named with all but a chance of 0.1 %; the seeds are fixed."""
    rng = np.random.default_rng(n)

    def named(first: Any, second: Any) -> bool:
        return bool(order_doubts(*observed_curve(first, second), (len(first), len(second)), NO_CLAIM, runs=True)[0])

    for _ in range(100):
        out, into = rng.normal(size=n), rng.normal(1, 1, n)
        assert named(into, out)
        for sides in ((out, into), (out, rng.normal(size=n)), (np.sign(out), np.sign(into))):
            assert not named(*sides)
