"""Saturation of the likelihood ratio: comparison with plain loops, and bounds of bounded privacy losses."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest

from dpaudit import Pair, audit
from dpaudit.catalogue.selection import NoisyMax3
from dpaudit.inference.fixed.saturation import merge_saturated
from dpaudit.inference.grid import BINS, CENTRES, bin_counts

Counts = npt.NDArray[np.int64]


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
