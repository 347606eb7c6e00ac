"""Comparison of bounds for one run with the reference values of jax_privacy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtri

from dpaudit.claims import GaussianDP
from dpaudit.inference.scores.rank_bounds import Path, RankTest
from dpaudit.inference.scores.rank_laws import Inclusion
from dpaudit.inference.scores.ranks import Blocks
from dpaudit.numerics import Array

from .plain_one_run import refutes_by_recursion


def quantile_scores(shift: float) -> tuple[Array, Array]:
    quantiles = ndtri((np.arange(10_000) + 0.5) / 10_000)
    return shift + quantiles, quantiles


def corners(included: Array, left_out: Array) -> tuple[Array, Array]:
    """Return (guesses, right guesses) at the corners of the concave hull of all thresholds."""
    thresholds = np.append(np.unique(np.concatenate([included, left_out])), np.inf)[::-1]
    right = len(included) - np.searchsorted(np.sort(included), thresholds)
    wrong = len(left_out) - np.searchsorted(np.sort(left_out), thresholds)
    kept: list[tuple[int, int]] = []
    for point in zip(wrong.tolist(), right.tolist(), strict=True):
        while len(kept) > 1 and (kept[-1][0] - kept[-2][0]) * (point[1] - kept[-2][1]) >= (
            kept[-1][1] - kept[-2][1]
        ) * (point[0] - kept[-2][0]):
            kept.pop()
        kept.append(point)
    found = np.array(kept)
    return found.sum(axis=1), found[:, 1]


@pytest.mark.parametrize(("shift", "expected"), [(1.0, 2.164749), (4.0, 9.133752)])
def test_the_recursion_agrees_with_the_reference_values(shift: float, expected: float) -> None:
    """epsilon_one_run_fdp is the epsilon at delta of the largest Gaussian claim that is refuted at some corner."""
    guesses, right = corners(*quantile_scores(shift))
    level = 0.05 / len(guesses)

    def refuted_somewhere(epsilon: float) -> bool:
        mu = brentq(lambda mu: float(GaussianDP(mu).delta(epsilon)) - 1e-6, 0.01, 20.0, xtol=1e-14)
        return any(
            refutes_by_recursion(GaussianDP(mu), 20_000, int(r), int(v), significance=level)
            for r, v in zip(guesses, right, strict=True)
            if v
        )

    assert refuted_somewhere(expected * (1 - 1e-4))
    assert not refuted_somewhere(expected * (1 + 1e-5))


@pytest.mark.parametrize(("shift", "expected"), [(1.0, 1.13346), (4.0, 4.395568)])
def test_the_order_of_scores_certifies_more_than_the_reference(shift: float, expected: float) -> None:
    """Nothing is assumed about the scores."""
    scores = np.concatenate(quantile_scores(shift))
    blocks = Blocks(10_000, 10_000)
    right = tuple(blocks.right(np.argsort(-scores, kind="stable") < 10_000).tolist())
    assert RankTest(Inclusion(blocks), right, Path(1e-6), 0.05).epsilon_lower(1e-6, significance=0.05) > 1.5 * expected
