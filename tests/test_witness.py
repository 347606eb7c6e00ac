"""The region that a witness shows, and its description."""

import dataclasses
import functools
import math
import re
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpaudit import AuditResult, GaussianDP, Pair, PureDP, audit, batched
from dpaudit.engine.collector import new_collector
from dpaudit.engine.region import best_condition
from dpaudit.engine.sequential import SequentialAudit
from dpaudit.engine.witness import CountedRegion, make_witness
from dpaudit.inference.fixed.exact_binomial import p_value
from dpaudit.inference.grid import BINS, EDGES
from dpaudit.learning import Learner, Settings
from dpaudit.learning.attack import resolve_attacks
from dpaudit.result.summary import witness_words
from dpaudit.result.values import Region, Witness
from dpaudit.running.runs import ExecutionSettings


def test_of_thresholds_that_part_the_outputs_alike_the_middle_one_is_shown() -> None:
    """Then later outputs fall on the side of the most similar outputs."""
    counts0, counts1 = np.zeros(BINS, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    low, high = 100, 201
    counts0[low], counts1[[low, high]] = 40, 20
    witness = make_witness(Learner([], 0, 0), PureDP(1.0), counts0, counts1, pair=PAIR)
    assert witness.threshold == EDGES[(low + high - 1) // 2]
    assert (witness.counts.false_positives, witness.counts.false_negatives) == (0, 20)


def test_no_region_is_named_that_has_outputs_on_one_side_only() -> None:
    counts = np.zeros(BINS, dtype=np.int64)
    counts[10] = 500
    assert make_witness(Learner([], 0, 0), PureDP(0.0), counts, counts, pair=PAIR) is None
    some = counts.copy()
    some[200] = 4
    assert make_witness(Learner([], 0, 0), PureDP(0.0), some, some, pair=PAIR) is None  # too few outputs


@pytest.mark.parametrize("missing", [False, True])
def test_a_condition_says_whether_missing_values_meet_it(missing: bool) -> None:
    column = np.arange(100.0)
    inside = column < 30
    if missing:
        column[:10] = np.nan
    found, agreement = best_condition(("age",), column, inside)
    assert str(found) == ("age at most 29.5 or missing" if missing else "age below 29.5")
    assert agreement == 1.0


# --- what is counted

PAIR = Pair([0], [1])


@batched
def noisy(dataset: list[float], n: int, rng: np.random.Generator) -> Any:
    return rng.normal(dataset[0], 1.0, n)


@functools.cache
def result_of(claim: str) -> AuditResult:
    return audit(noisy, claim, PAIR, attacks="logistic", trials=1000, seed=0, confidence=0.95, confirm="never")


def witness_of(claim: str) -> Witness | None:
    return result_of(claim).witness


@pytest.mark.parametrize(
    "claim",
    [
        "gaussian(mu=1)",
        *(pytest.param(slow, marks=pytest.mark.slow) for slow in ("gaussian(mu=0.7)", "pure(epsilon=3)")),
    ],
)
def test_the_rates_of_a_witness_are_those_of_the_region_that_is_named(claim: str) -> None:
    """Rates are within 5 standard errors of the true rates of the named region.  The seed is fixed."""
    witness = witness_of(claim)
    assert witness.counted == "later"
    name = re.fullmatch(r"output (above|below) (-?[\d.]+)", witness.region)
    tail = norm.sf if name[1] == "above" else norm.cdf
    n = witness.counts.n0
    for rate, mean in ((witness.alpha, 0.0), (1 - witness.beta, 1.0)):
        true = float(tail(float(name[2]) - mean))
        assert abs(rate - true) < 5 * math.sqrt(true * (1 - true) / n) + 2 / n
    words = witness_words(result_of(claim), witness)
    assert f"counted on {n:,} outputs of each dataset that came after the region had been frozen" in words


def _learner(late: float, settings: Settings | None = None) -> Learner:
    """Return a learner of 150 outputs of each dataset; the last 75 outputs of d1 are shifted by `late`."""
    rng = np.random.default_rng(3)
    learner = Learner(resolve_attacks("logistic"), 0, 0, settings=settings or Settings())
    for i in range(30):
        block = rng.normal(size=5), rng.normal(1.5, size=5) + late * (i >= 15)
        if learner.ready:
            learner.score_fresh(*block)
        learner.learn(*block)
    return learner


def test_no_output_that_is_counted_decides_the_region() -> None:
    """The region of the older moment, from outputs 23 to 75, does not depend on later outputs."""
    found = [_learner(late).hindsight()[0] for late in (0.0, -4.0)]
    assert 20 <= found[0].score.trials <= 75
    assert found[0].score.trials == found[1].score.trials
    assert found[0].number == found[1].number
    np.testing.assert_array_equal(found[0].before, found[1].before)
    points = np.linspace(-5, 5, 101)
    np.testing.assert_array_equal(found[0].score(points), found[1].score(points))
    assert not np.array_equal(found[0].after, found[1].after)


@pytest.mark.parametrize("most", [40, 10**6])
def test_counts_are_the_same_where_outputs_are_forgotten_in_between(most: int) -> None:
    whole = _learner(0.0).hindsight()
    few = Settings(
        max_fit_rows=most, max_wide_fit_rows=most, fit_rows_per_column=1, min_fit_rows=1, max_raw_bytes=8 * most
    )
    some = _learner(0.0, few)
    assert (len(some.outputs()[0]) < 150) == (most == 40)
    for moment in some.hindsight():
        assert int(moment.after[0].sum()) == 150 - moment.score.trials
    if most > 150:
        for one, other in zip(whole, some.hindsight(), strict=True):
            np.testing.assert_array_equal(one.after, other.after)


@pytest.mark.parametrize(
    ("weights", "kept"), [((0.7, 0.26, 0.04), [0, 1]), ((0.04, 0.04, 0.92), [2]), ((1, 0, 0), [0])]
)
def test_a_frozen_score_leaves_out_attacks_of_little_weight(weights: tuple[float, ...], kept: list[int]) -> None:
    """Such an attack has just returned from a suspension, and would have to score all later outputs."""
    score = dataclasses.replace(
        _learner(0.0).current(), scorers=dict.fromkeys(range(3), np.ravel), mixture=dict(enumerate(weights))
    ).without_light_attacks(Settings().min_frozen_weight)
    assert list(score.scorers) == kept == list(score.mixture)
    assert sum(score.mixture.values()) == pytest.approx(1.0)
    assert score.mixture[kept[-1]] / score.mixture[kept[0]] == pytest.approx(weights[kept[-1]] / weights[kept[0]])


def _witness_of_an_audit(seed: int) -> Witness | None:
    """Return the witness of a false claim without the rest of the result, which would take half of the time."""
    tested = GaussianDP(0.5).symmetrized()
    collector = new_collector(noisy, [PAIR], "logistic", 3000, seed, 1, ExecutionSettings(), tested)
    run = SequentialAudit(collector, tested, confidence=0.99)
    run.go()
    (counts,) = run.evidence.counts
    return make_witness(collector.learners[0], tested, *counts, pair=PAIR, violated=run.refuted)


@pytest.mark.parametrize("moment", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_intervals_of_a_frozen_region_hold_its_true_rates_at_all_moments_together(moment: int) -> None:
    """Makes 300 audits of one region with 14 interim analyses each, and counts audits in which any interval is wrong.

    The intervals of all moments miss with probability at most 0.05 together, those of this one with at most 0.025 or
    0.0083.  The test fails by chance < 1 in 10**6.  About 0.5 % and 0.1 % miss; with a significance of 0.9 instead of
    0.05, 20 % and 5 % do.
    """
    rng, frozen = np.random.default_rng(moment), _learner(0.0).hindsight()[0]
    runs, looks = 300, np.unique(np.geomspace(5, 1500, 14).astype(int))
    for alpha, beta in ((0.3, 0.4), (0.05, 0.6)):
        counts = rng.binomial(np.diff(looks, prepend=0), [[[alpha]], [[beta]]], (2, runs, len(looks))).cumsum(axis=2)
        before = np.zeros((2, BINS), dtype=np.int64)
        before[0, [10, 20]] = round(40 * (1 - alpha)), round(40 * alpha)
        before[1, [10, 20]] = round(40 * beta), round(40 * (1 - beta))
        missed = np.zeros((2, runs), dtype=bool)
        for n, x, z in zip(looks.tolist(), *np.moveaxis(counts, 2, 1), strict=True):
            for k in np.union1d(x, z).tolist():
                after = np.zeros((2, BINS), dtype=np.int64)
                after[:, 10], after[:, 20] = (n - k, k), (k, n - k)  # k false positives, and k false negatives
                counted = dataclasses.replace(frozen, number=moment, before=before, after=after)
                given = CountedRegion(frozen.score, None, after, 15, "later", counted).intervals(pairs=1)
                assert given is not None
                for side, (found, true, (low, high)) in enumerate(zip((x, z), (alpha, beta), given, strict=True)):
                    missed[side, found == k] |= not low <= true <= high
        allowed = binom.isf(2.5e-7, runs, 0.05 / (moment * (moment + 1)))
        assert missed.sum(axis=1).max() <= allowed


@pytest.mark.parametrize("audits", [1, pytest.param(200, marks=pytest.mark.slow)])
def test_intervals_of_a_sequential_witness_hold_its_true_rates(audits: int) -> None:
    """Makes audits that stop when the outputs are evidence, with two intervals in each audit.

    Each interval misses with probability at most 0.05; too many do so by chance < 1 in 10**6.  Before regions were
    frozen, 13 % and 14 % missed, which 200 audits notice nearly half of the time.  The test above notices a wrong
    significance.  The region is integrated on a grid of 10,000 quantiles.
    """
    quantiles = norm.ppf((np.arange(10_000) + 0.5) / 10_000)
    caught: list[Any] = []
    missed = np.zeros(2, dtype=int)
    with pytest.MonkeyPatch.context() as patch:

        def describe(*given: Any) -> Region:
            caught.append(given)
            return Region()

        patch.setattr("dpaudit.engine.witness.describe_region", describe)
        for seed in range(audits):
            witness = _witness_of_an_audit(seed)
            if witness.counted != "later":
                assert math.isnan(witness.alpha_upper)
                continue
            score, threshold, _ = caught[-1]
            alpha, inside = (float(np.mean(score(quantiles + mean) > threshold)) for mean in (0.0, 1.0))
            missed += [
                not witness.alpha_lower - 1e-4 <= alpha <= witness.alpha_upper + 1e-4,
                not witness.beta_lower - 1e-4 <= 1 - inside <= witness.beta_upper + 1e-4,
            ]
    assert len(caught) == audits
    assert missed.max() <= binom.isf(5e-7, audits, 0.05)


def test_with_more_pairs_to_choose_from_intervals_are_wider() -> None:
    learner = _learner(0.0)
    (counts0, counts1) = learner.hindsight()[0].after
    one, three = (make_witness(learner, GaussianDP(1.0), counts0, counts1, pair=PAIR, pairs=pairs) for pairs in (1, 3))
    assert one.counts == three.counts
    assert three.alpha_lower < one.alpha_lower < one.alpha < one.alpha_upper < three.alpha_upper
    assert three.beta_lower < one.beta_lower < one.beta < one.beta_upper < three.beta_upper


def test_an_attack_that_learns_outputs_by_heart_shows_nothing_on_the_outputs_that_are_counted() -> None:
    """P = Q here: such an attack is always right about outputs of its fit, but not about later outputs."""

    class ByHeart:
        name = "by_heart"
        calibrated = True

        def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
            known0, known1 = set(np.ravel(outputs0)), set(np.ravel(outputs1))
            return lambda outputs: np.array([float(x in known1) - float(x in known0) for x in np.ravel(outputs)]) * 3

    same = batched(lambda dataset, n, rng: rng.normal(size=n))
    result = audit(same, PureDP(1.0), PAIR, trials=120, seed=0, attacks=[ByHeart()])
    assert result.witness is None or not result.witness.near


def test_a_score_that_its_attack_changes_later_is_not_called_frozen() -> None:
    """P = Q here.  `fit` returns a method of the attack, so that earlier scores learn the counted outputs."""

    class Nearest:
        name = "nearest"
        calibrated = True

        def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
            self.known = np.ravel(outputs0), np.ravel(outputs1)
            return self.score

        def score(self, outputs: Any) -> Any:
            near0, near1 = (np.abs(np.ravel(outputs)[:, None] - side).min(axis=1) for side in self.known)
            return np.clip(50 * (near0 - near1), -3, 3)

    same = batched(lambda dataset, n, rng: rng.normal(size=n))
    witness = audit(same, PureDP(1.0), PAIR, trials=120, seed=0, attacks=[Nearest()]).witness
    assert witness is None or witness.counted == "moving"


def test_a_region_that_is_no_nearer_than_chance_is_not_called_near() -> None:
    """P = Q here, and the claim is weak, so that the counts of no region come near a violation."""
    same = batched(lambda dataset, n, rng: rng.normal(size=n))
    result = audit(same, PureDP(1.0), PAIR, trials=300, seed=0, attacks="logistic")
    witness = result.witness
    assert witness.p_value > 0.2
    assert not witness.near
    counts = witness.counts
    inside = counts.false_positives + counts.n1 - counts.false_negatives
    assert 10 <= inside <= counts.n0 + counts.n1 - 10
    assert "the claim allows at most 0 %" not in str(result)


def test_the_claims_allowance_is_taken_at_the_upper_end_of_the_exact_interval() -> None:
    witness = witness_of("gaussian(mu=1)")
    assert witness.alpha < witness.alpha_upper
    assert witness.allowed_upper == 1 - float(GaussianDP(1.0).beta(witness.alpha_upper))
    x, n0, y, n1 = (
        witness.counts.false_positives,
        witness.counts.n0,
        witness.counts.n1 - witness.counts.false_negatives,
        witness.counts.n1,
    )
    assert witness.p_value == p_value(GaussianDP(1.0), x, n0, y, n1)
