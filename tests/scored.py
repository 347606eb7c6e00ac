"""Scores and outputs for several tests of `audit_scores`, and the agreement of a result with its file."""

import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from dpaudit import AuditResult
from dpaudit.claims import TradeoffFunction
from dpaudit.engine.score_design import Coins, sorted_evidence
from dpaudit.result.scores_evidence import Line, ScoresEvidence

CHOICES = ("runs", "canaries", None)
SURE = 1 - 1e-6  # the number of right guesses decides at this level, without simulations of the order of scores
Arrays = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def of_runs(n: int, shift: float, seed: int | np.random.Generator) -> Arrays:
    """Return scores of n runs on each of two datasets: Gaussian noise with means that differ by `shift`."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.normal(shift, 1.0, n)


def of_canaries(m: int, shift: float, seed: int | np.random.Generator) -> Arrays:
    """Return such scores of m canaries, each of which a fair coin included or left out."""
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    scores = rng.normal(shift * included, 1.0)
    return scores[~included], scores[included]


@cache
def evidence_of(
    line: Line, n: int, shift: float, seed: int, claim: TradeoffFunction, confidence: float = 0.95
) -> ScoresEvidence:
    """Return the evidence of such scores of n runs on each dataset, or of 2 n canaries."""
    sides = of_runs(n, shift, seed) if line == "runs" else of_canaries(2 * n, shift, seed)
    return sorted_evidence(
        *sides,
        line,
        Coins(0.5, 1.0, ""),
        runs=2 * n if line == "runs" else 1,
        claim=claim,
        significance=1 - confidence,
        rng=np.random.default_rng(seed),
    )


class Memory:
    """An attack that recognises every output of its fit, and scores all other outputs by their first letter."""

    name = "memory"
    calibrated = True

    def fit(self, outputs0: list[str], outputs1: list[str], rng: np.random.Generator) -> Callable[[Any], Any]:
        known = dict.fromkeys(outputs0, -9.0) | dict.fromkeys(outputs1, 9.0)
        return lambda outputs: np.array([known.get(o, 1.0 if o.startswith("b") else -1.0) for o in outputs])


def words_and_numbers(n: int, seed: int) -> tuple[list[str], list[str]]:
    """Return outputs "a" or "b", which are exactly 1-DP, each followed by a number that occurs only once."""
    rng, keeps = np.random.default_rng(seed), expit(1.0)
    side0, side1 = (
        [f"{'b' if said else 'a'}{side}.{i}" for i, said in enumerate(rng.random(n) < p)]
        for side, p in enumerate((1 - keeps, keeps))
    )
    return side0, side1


def read_again(result: AuditResult) -> AuditResult:
    return AuditResult.from_dict(json.loads(json.dumps(result.to_dict())))


def check_agreement(result: AuditResult) -> AuditResult:
    """Return the result as it is read back.  The history holds the wealth that decided when the audit ended."""
    wealth = result.history.log_e
    if result.evidence.kind.anytime and result.bounds_valid and len(wealth):
        assert result.p_value == pytest.approx(math.exp(-max(0.0, *wealth, 0.0)), rel=1e-6, abs=1e-300)
        if result.stopped_by != "failure":
            assert math.log(result.e_value) == pytest.approx(wealth[-1], rel=1e-6, abs=1e-6) or wealth[-1] > 700
    back = read_again(result)
    assert back.to_dict() == result.to_dict()
    return back
