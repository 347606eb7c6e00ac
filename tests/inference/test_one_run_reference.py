"""Comparison of bounds for one run with the reference values of jax_privacy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtri

from dpaudit.claims import GaussianDP
from dpaudit.inference.one_run import epsilon_lower_exact, mu_lower_one_run
from dpaudit.inference.scores.both_sides import guess
from dpaudit.numerics.arrays import Array

from .plain_one_run import refutes_by_recursion
from .plain_scores import right_guesses


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


@pytest.mark.parametrize(("shift", "one_run", "fdp"), [(1.0, 1.13346, 2.164749), (4.0, 4.395568, 9.133752)])
def test_guessing_both_ends_certifies_more_than_the_reference(shift: float, one_run: float, fdp: float) -> None:
    """The same canaries are guessed at both ends, with one number of guesses that was fixed in advance."""
    included, left_out = quantile_scores(shift)
    answers = guess(np.concatenate([included, left_out]), 2523)
    r, v = right_guesses(answers, np.arange(20_000) < 10_000)
    assert epsilon_lower_exact(20_000, r, v, delta=1e-6, significance=0.05) > 1.5 * one_run
    mu = mu_lower_one_run(20_000, r, v, significance=0.05)
    assert mu < shift
    assert GaussianDP(mu).epsilon(1e-6) > 1.25 * fdp
