"""Scores and arguments that `audit_scores` refuses, with messages that name the place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit import GaussianDP, Verdict, audit_scores
from dpaudit.claims.tabulated import NO_CLAIM
from dpaudit.engine.read_scores import order_doubts
from dpaudit.engine.result_parts import observed_curve
from dpaudit.inference.scores.rank_bounds import Path, RankTest
from dpaudit.inference.scores.rank_laws import Independent
from dpaudit.inference.scores.ranks import Blocks

from .scored import CHOICES, SURE, of_canaries


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

    __hash__ = None  # type: ignore[assignment]


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
