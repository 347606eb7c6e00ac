"""Scores of canaries that depend on each other: what audits refute, and whether they warn of the dependence.

    python benchmarks/dependent_canaries.py [--seeds 20] [--file FILE]

The mechanism satisfies gaussian(mu=1).  With probability 0.3937, it applies randomised response with epsilon = 1.5 to
all records of a run; otherwise, its output reveals nothing.  The command prints how often audits refute this true claim
at 95 %, with and without the assumption of independent canaries, and how often audits with independence="canaries" warn
of dependence, which a common state of one run cannot show.
"""

from __future__ import annotations

import argparse
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from audit_store import Row, Store
from one_run_limits import S
from scipy.special import expit

from dpaudit import audit_scores
from dpaudit.numerics import Array

CLAIM = "gaussian(mu=1)"


def response(seed: int, m: int, runs: int) -> tuple[Array, Any]:
    """Return the scores of the counterexample, (m, runs), and whether a fair coin included each canary."""
    rng = np.random.default_rng(seed)
    included = rng.random((m, runs)) < 0.5
    told = rng.random((m, runs)) < expit(1.5)
    revealed = rng.random(runs) < 0.3937
    return np.where(revealed, np.where(included == told, 1.0, -1.0), 0.0), included


def audited(scores: Array, included: Any, seed: int, independence: Any = "canaries") -> tuple[float, float]:
    """Return whether an audit refutes the claim, ignoring warnings, and whether it warns of dependence.

    Args:
        scores: (canaries, runs).
        included: (canaries, runs).
        seed: Seed of the audit.
        independence: As in `audit_scores`.
    """
    if np.all(scores == scores[0, 0]):
        return 0.0, 0.0  # the audit refuses such scores
    scores, included = scores.T, included.T  # all canaries of a run follow each other
    runs = np.broadcast_to(np.arange(len(scores))[:, None], scores.shape)
    result = audit_scores(
        scores[~included],
        scores[included],
        CLAIM,
        independence=independence,
        run=(runs[~included], runs[included]),
        seed=seed,
        confidence=1 - S,
    )
    warned = any("canaries depend on each other" in words for words in result.warnings)
    return float(result.evidence.p_value(result.claim) <= S), float(warned)


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


def measured(seed: int, m: int = 1000) -> Row:
    """Return what audits of every kind of scores refute, and whether they warn."""
    scores, included = response(seed, m, 1)
    found = {
        "refuted, canaries": audited(scores, included, seed)[0],
        "refuted, nothing assumed": audited(scores, included, seed, None)[0],
    }
    for runs in (2, 5):
        scores, included = response(seed + 10**6, m, runs)
        if len(np.unique(np.abs(scores[0]))) > 1:  # informative and uninformative runs both occurred
            found[f"warned, common state of each of {runs} runs"] = audited(scores, included, seed)[1]
    for kind in ORDERED:
        found[f"warned, {kind}"] = audited(*ordered(kind, seed, m), seed)[1]
    for runs in (1, 2, 5):
        found[f"warned, independent, {runs} runs"] = audited(*gaussian_runs(m, runs, seed), seed)[1]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--file", type=Path, help="a file of finished audits, to go on with")
    options = parser.parse_args()
    store = Store(options.file)
    rows = [store.row(str(seed), partial(measured, seed)) for seed in range(options.seeds)]
    for key in sorted({key for row in rows for key in row}):
        each = [row[key] for row in rows if key in row]
        print(f"{key}: {sum(each):.0f} of {len(each)}", flush=True)


if __name__ == "__main__":
    main()
