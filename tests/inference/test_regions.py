"""Regions that a fixed test freezes, and points where losses saturate.  The pilots have fixed seeds."""

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import ndtr

from dpaudit import Pair, audit
from dpaudit.catalogue.selection import NoisyMax3
from dpaudit.claims import ApproxDP, GaussianDP, LaplaceDP, PureDP, TradeoffFunction
from dpaudit.inference.fixed.evidence import Arc
from dpaudit.inference.fixed.exact_binomial import epsilon_lower, mu_lower
from dpaudit.inference.fixed.regions import (
    best_thresholds,
    delta_of,
    deviations,
    merge_saturated,
    threshold_for_claim,
    threshold_for_epsilon,
    threshold_for_mu,
)
from dpaudit.inference.grid import BINS, CENTRES, EDGES, bin_counts
from dpaudit.inference.sequential.alternatives import Alternative, gaussian_noise, laplace_noise, scaled
from dpaudit.numerics import Array
from dpaudit.result.evidence import FixedEvidence, read_back

Counts = npt.NDArray[np.int64]


def best_threshold(counts0: Counts, counts1: Counts, claim: TradeoffFunction) -> int:
    return best_thresholds(counts0[None], counts1[None], claim)[0]


def divergences(claim: TradeoffFunction, truth: Alternative) -> Array:
    """Return the evidence per trial against the claim at each threshold if `truth` is true."""
    n = 10**6
    x, z = n * np.cumsum(truth.p[::-1])[::-1][1:], n * np.cumsum(truth.q)[:-1]
    return np.asarray(np.minimum(*(arc.evidence(x, n, z, n) for arc in Arc.pair(claim, n, n, 0.0, 1.0))) / n)


CASES = [
    # claim, truth, and the share of the best threshold's evidence without a pilot and with a small one
    pytest.param(GaussianDP(1.0), gaussian_noise(1.1), 0.99, 0.85, id="gaussian, small violation"),
    pytest.param(GaussianDP(0.5), gaussian_noise(1.0), 0.99, 0.95, id="gaussian, large violation"),
    pytest.param(PureDP(1.0), laplace_noise(1.2), 0.99, 0.9, id="pure, Laplace noise"),
    pytest.param(LaplaceDP(1.0), laplace_noise(1.2), 0.99, 0.9, id="Laplace, small violation"),
    pytest.param(LaplaceDP(5.0), laplace_noise(6.0), 0.99, 0.85, id="Laplace, weak promise"),
    pytest.param(PureDP(3.0), laplace_noise(4.0), 0.9, 0.85, id="pure and weak, Laplace noise"),
    pytest.param(PureDP(1.0), gaussian_noise(1.2), 0.8, 0.75, id="pure, Gaussian noise"),  # an untypical violation
]


@pytest.mark.parametrize(("claim", "truth", "without", "with_pilot"), CASES)
def test_the_chosen_threshold_is_nearly_the_best(
    claim: TradeoffFunction, truth: Alternative, without: float, with_pilot: float
) -> None:
    """Tests the choice without a pilot, and the mean over 15 pilots of 200 outputs each."""
    rng, value = np.random.default_rng(5), divergences(claim, truth)
    nothing = np.zeros(BINS, dtype=np.int64)
    assert value[best_threshold(nothing, nothing, claim)] > without * value.max()
    p, q = truth.p / truth.p.sum(), truth.q / truth.q.sum()
    chosen = [best_threshold(rng.multinomial(200, p), rng.multinomial(200, q), claim) for _ in range(15)]
    assert value[chosen].mean() > with_pilot * value.max()


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_without_a_pilot_the_threshold_is_at_the_fixed_point(mu: float) -> None:
    nothing = np.zeros(BINS, dtype=np.int64)
    k = best_threshold(nothing, nothing, GaussianDP(mu))
    alpha = float(gaussian_noise(mu).p[k + 1 :].sum())
    assert alpha == pytest.approx(float(ndtr(-mu / 2)), abs=0.03)


def test_a_strong_pilot_selects_the_region_of_its_evidence() -> None:
    """Only a rare event violates the claim: it has frequency 2 % under d1 and never occurs under d0."""
    claim, rare = PureDP(1.0), int(np.searchsorted(EDGES, 3.0))
    counts0, counts1 = np.zeros(BINS, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    counts0[BINS // 2], counts1[BINS // 2], counts1[rare] = 5_000, 4_900, 100
    k = best_threshold(counts0, counts1, claim)
    assert BINS // 2 <= k < rare


def test_constant_scores_give_a_valid_threshold() -> None:
    counts = np.zeros(BINS, dtype=np.int64)
    counts[BINS // 2] = 100
    assert 0 <= best_threshold(counts, counts, PureDP(1.0)) < BINS - 1


def test_the_region_of_epsilon_divides_the_outputs_of_the_pilot() -> None:
    """Randomised response occupies two bins only, and a region of all or no outputs certifies nothing."""
    rng = np.random.default_rng(0)
    loss = 1.0
    for _ in range(2):
        sides = [np.where(rng.random(500) < 1 / (1 + math.exp(-loss)), sign, -sign) for sign in (-loss, loss)]
        counts = [bin_counts(side.astype(float)) for side in sides]
        k = threshold_for_epsilon(*counts, delta=0.0, trials=18_000, significance=0.05, otherwise=7)
        assert 0 < counts[0][k + 1 :].sum() < 500
        x, y = 18_000 * 0.2689, 18_000 * 0.7311
        assert epsilon_lower(round(x), 18_000, round(y), 18_000, delta=0.0, significance=0.05) > 0.9
    one = np.zeros_like(counts[0])
    one[3] = 500
    assert threshold_for_epsilon(one, one, delta=0.0, trials=100, significance=0.05, otherwise=7) == 7


@pytest.mark.parametrize("mu", [0.3, pytest.param(3.0, marks=pytest.mark.slow)])
def test_the_region_of_mu_gives_nearly_the_largest_bound(mu: float) -> None:
    """Uses pilots of 1,000 outputs and the expected counts of 9,000 outputs."""
    rng, law = np.random.default_rng(1), gaussian_noise(mu)
    p, q = law.p / law.p.sum(), law.q / law.q.sum()

    @cache
    def bound(k: int) -> float:
        x, y = (round(9_000 * float(side[k + 1 :].sum())) for side in (p, q))
        return mu_lower(x, 9_000, y, 9_000, significance=0.05)

    along = [bound(int(k)) for k in np.searchsorted(EDGES, np.linspace(-0.4 * mu, 0.4 * mu, 3))]
    best = max(along)
    assert max(along[0], along[-1]) < best  # thresholds further out are worse
    for _ in range(2):
        counts = rng.multinomial(1_000, p), rng.multinomial(1_000, q)
        k = threshold_for_mu(*counts, trials=9_000, significance=0.05, otherwise=0)
        assert bound(int(k)) > 0.97 * best


def test_the_verdict_and_the_bound_of_the_same_family_use_one_region() -> None:
    rng, law = np.random.default_rng(2), laplace_noise(1.0)
    counts = rng.multinomial(500, law.p / law.p.sum()), rng.multinomial(500, law.q / law.q.sum())
    known: Any = {"trials": 4_500, "significance": 0.05}
    outcome = np.array([rng.multinomial(4_500, side / side.sum()) for side in (law.p, law.q)])
    for delta, claim in ((0.0, PureDP(1.0)), (1e-3, ApproxDP(epsilon=1.0, delta=1e-3))):
        k = threshold_for_claim(*counts, claim, **known)
        evidence = FixedEvidence(pair=0, threshold=k, pilot=np.array(counts), counts=outcome, delta=delta_of(claim))
        x, n0, y, n1 = evidence.outcome
        assert evidence.lower(delta, confidence=0.95) == epsilon_lower(x, n0, y, n1, delta=delta, significance=1 - 0.95)
        again = read_back(evidence.to_json(), claim)
        assert isinstance(again, FixedEvidence)
        assert again.delta == delta
    assert threshold_for_claim(*counts, GaussianDP(1.0), **known) == threshold_for_mu(*counts, otherwise=0, **known)
    assert threshold_for_claim(*counts, LaplaceDP(1.0), **known) == best_threshold(*counts, LaplaceDP(1.0))


@pytest.mark.parametrize(("epsilon", "delta", "true", "pilot"), [(0.5, 0.1, 0.57, 1_000), (1.0, 0.01, 1.12, 300)])
def test_the_region_of_an_epsilon_delta_claim_has_evidence_against_it(
    epsilon: float, delta: float, true: float, pilot: int
) -> None:
    """Outputs that reveal the dataset violate no claim if their probability is delta, whatever the pilot shows.

    At most 3 of 100 pilots freeze a region with less than half of the best region's evidence.
    """
    rng, claim = np.random.default_rng(3), ApproxDP(epsilon=epsilon, delta=delta)
    p, q = (side / side.sum() for side in scaled(ApproxDP(epsilon=true, delta=delta), 1.0))
    n = 9 * pilot
    expected = deviations(claim, n * p, n, n * q, n)
    chosen = [
        threshold_for_claim(rng.multinomial(pilot, p), rng.multinomial(pilot, q), claim, trials=n, significance=0.05)
        for _ in range(100)
    ]
    assert np.sum(expected[chosen] < expected.max() / 2) <= 3


def test_a_mass_clearly_above_delta_is_the_region() -> None:
    """Its frequency is three times what the claim allows, so all of 20 pilots select it as the region."""
    rng, claim = np.random.default_rng(4), ApproxDP(epsilon=1.0, delta=0.02)
    p, q = (side / side.sum() for side in scaled(ApproxDP(epsilon=1.0, delta=0.06), 1.0))
    for _ in range(20):
        counts = rng.multinomial(500, p), rng.multinomial(500, q)
        k = threshold_for_claim(*counts, claim, trials=4_500, significance=0.05)
        assert deviations(claim, 4_500 * p, 4_500, 4_500 * q, 4_500)[k] > 4


def plain(pilot: Counts, unseen: Counts) -> Counts:
    """Try every point of saturation on each side of zero; among equally good ones, take the one that merges least."""
    ends: list[int] = []
    for sign in (1, -1):
        side = [b for b in range(BINS) if sign * CENTRES[b] > 0]
        tried = sorted(side, key=lambda b: -abs(CENTRES[b]))
        outputs0, outputs1 = unseen[:, side]
        size = np.abs(CENTRES[side])
        best, end = math.inf, -1
        for last, scale in itertools.product(tried, np.geomspace(0.4, 1.6, 13)):
            ratio = sign * scale * np.minimum(size, abs(CENTRES[last]))
            loss = outputs0 @ np.log1p(np.exp(ratio)) + outputs1 @ np.log1p(np.exp(-ratio))
            if loss < best - 1e-7:
                best, end = loss, last
        ends.append(end)
    high, low = ends
    merged = np.zeros_like(pilot)
    for d in (0, 1):
        for b in range(BINS):
            merged[d, min(max(b, low), high)] += pilot[d, b]
    return merged


def counts_of(rng: np.random.Generator, n: int, truth: float, noise: float) -> Counts:
    """Return bin counts of noisy scores of outputs whose log-ratio is -truth or truth."""
    sides = []
    for d1 in (False, True):
        for_d1 = rng.random(n) < 1 / (1 + math.exp(-truth if d1 else truth))
        sides.append(bin_counts(np.where(for_d1, truth, -truth) + noise * rng.normal(size=n)))
    return np.array(sides)


@pytest.mark.parametrize("seed", range(6))
def test_points_of_saturation_agree_with_plain_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pilot = rng.integers(0, 50, (2, BINS))
    unseen = counts_of(rng, 20_000, [0.1, 0.5, 2.0][seed % 3], [0.05, 0.5][seed % 2])
    assert np.array_equal(merge_saturated(pilot, unseen), plain(pilot, unseen))


def test_few_outputs_merge_nothing() -> None:
    rng = np.random.default_rng(0)
    pilot = rng.integers(0, 50, (2, BINS))
    assert np.array_equal(merge_saturated(pilot, counts_of(rng, 19_999, 0.5, 1.0)), pilot)
    assert np.array_equal(merge_saturated(pilot, np.zeros((2, BINS), dtype=np.int64)), pilot)


def test_noise_on_two_values_is_merged() -> None:
    """Log-ratios are -1 and 1, and scores reach 2.4; saturation is found at 1 or below."""
    unseen = counts_of(np.random.default_rng(0), 100_000, 1.0, 0.3)
    ends = np.flatnonzero(merge_saturated(unseen, unseen).sum(axis=0))[[0, -1]]
    assert np.all(np.abs(CENTRES[np.flatnonzero(unseen.sum(axis=0))[[0, -1]]]) > 2)
    assert np.all(np.abs(CENTRES[ends]) < 1.1)


@pytest.mark.parametrize(("n", "scale"), [(100_000, 1.0), (20_000, 1.0), (20_000, 1.5), (20_000, 0.6)])
def test_a_growing_ratio_is_not_merged_in_its_bulk(n: int, scale: float) -> None:
    """For N(0, 1) and N(1, 1), also with a wrong scale, bins with 500 outputs further out are not merged."""
    rng = np.random.default_rng(0)
    unseen = np.array([bin_counts(scale * (rng.normal(mean, 1, n) - 0.5)) for mean in (0, 1)])
    merged = merge_saturated(unseen, unseen)
    beyond = np.cumsum(unseen.sum(axis=0))
    inner = (beyond > 500) & (beyond < beyond[-1] - 500)
    assert np.array_equal(merged[:, inner][:, 1:-1], unseen[:, inner][:, 1:-1])


@pytest.mark.slow
def test_the_bound_of_a_bounded_loss_is_near_the_best_region() -> None:
    """The largest loss of the noisy maximum is in a tail, where scores are noisy.

    The best region would give 0.24.  With this seed, the bound is 0 if no bins are merged.
    """
    pair = Pair([1.0] * 5, [2.0] * 5)
    result = audit(NoisyMax3(), "pure(epsilon=0.25)", pair, trials=2_000_000, method="fixed", seed=8, confidence=0.95)
    assert result.epsilon_lower(0.0) > 0.15
