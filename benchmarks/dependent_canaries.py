"""Scores of canaries that depend on each other, and whether an audit warns of the dependence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from one_run_limits import S
from scipy.special import expit

from dpaudit import audit_scores
from dpaudit.numerics.arrays import Array


def response(seed: int, m: int, runs: int) -> tuple[Array, Any]:
    """Return the scores of the counterexample, (m, runs), and whether a fair coin included each canary."""
    rng = np.random.default_rng(seed)
    included = rng.random((m, runs)) < 0.5
    told = rng.random((m, runs)) < expit(1.5)
    revealed = rng.random(runs) < 0.3937
    return np.where(revealed, np.where(included == told, 1.0, -1.0), 0.0), included


def warned(scores: Array, included: Any, seed: int) -> float:
    """Return 1.0 if an audit with `independence="canaries"` warns of dependence, else 0.0.

    Args:
        scores: (canaries, runs).
        included: (canaries, runs).
        seed: Seed of the audit.
    """
    if np.all(scores == scores[0, 0]):
        return 0.0  # the audit refuses such scores
    scores, included = scores.T, included.T  # all canaries of a run follow each other
    runs = np.broadcast_to(np.arange(len(scores))[:, None], scores.shape)
    result = audit_scores(
        scores[~included],
        scores[included],
        independence="canaries",
        run=(runs[~included], runs[included]),
        seed=seed,
        confidence=1 - S,
    )
    return float(any("canaries depend on each other" in words for words in result.warnings))


ORDERED = ("shard", "drift", "neighbours")


def ordered(kind: str, seed: int, m: int) -> tuple[Array, Any]:
    """Return scores of one run whose dependence shows in the order of canaries, (m, 1), and the inclusions.

    - shard: a quarter of the list reveals its canaries strongly, and the rest does not.
    - drift: the scores grow by two standard deviations along the list.
    - neighbours: each score has a correlation of 1/2 with the next one.
    """
    rng = np.random.default_rng(seed)
    included, noise = rng.random((m, 1)) < 0.5, rng.normal(size=(m, 1))
    match kind:
        case "shard":
            return noise + np.where(np.arange(m)[:, None] < m // 4, 3.0 * included, 0.0), included
        case "drift":
            return noise + included + np.linspace(0.0, 2.0, m)[:, None], included
    return (noise + np.roll(noise, 1, axis=0)) / math.sqrt(2.0) + included, included


def gaussian_runs(m: int, runs: int, seed: int) -> tuple[Array, Any]:
    """Return scores of independent canaries, (m, runs), and whether a fair coin included each canary.

    The shift of the scores differs between canaries, which are in random order.
    """
    rng = np.random.default_rng(seed)
    included = rng.random((m, runs)) < 0.5
    return rng.normal(included * rng.exponential(1.0, (m, 1)), 1.0), included
