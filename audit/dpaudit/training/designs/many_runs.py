"""Many runs: each model is a run of the mechanism "train and return a score"."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.arguments import check_mechanism, claim_of
from dpaudit.engine.plan_scores import fewest_scores
from dpaudit.engine.scores import audit_scores
from dpaudit.mechanisms import Mechanism
from dpaudit.numerics.arrays import AnyArray
from dpaudit.pairs.pair import Pair, doubts
from dpaudit.result.model import AuditResult
from dpaudit.sampling.streams import fresh_seed, stream, trial_streams
from dpaudit.settings.audit import DEFAULTS
from dpaudit.text.reasons import About, is_about
from dpaudit.training.designs.checks import doubts_of, same_outputs, shared_seeds, with_warnings, without_nan
from dpaudit.values import Dataset

_PROBES = 2  # models on each dataset, with equal seeds, whose outputs are compared but not counted


def many_runs(
    train: Mechanism | Any,
    pair: Pair,
    claim: TradeoffFunction | str | None = None,
    *,
    models: int = 200,
    confidence: float = DEFAULTS.confidence,
    seed: int | None = DEFAULTS.seed,
    name: str = "training",
) -> AuditResult:
    """Train half of the models on d0 and half on d1, and test the claim on their scores, exactly and once.

    All scores count: no threshold is learned from them.  `dpaudit.audit` tests the same mechanism sequentially, keeps a
    store, and learns a score from any kind of output.

    Args:
        train: A function `(dataset, rng)` that trains a model and returns its score, higher for models more likely
            trained on d1; or an object with `sample(dataset, n, rng)` that trains n models.  Runs must draw all
            randomness from `rng`.
        pair: The two datasets, usually without and with a canary.
        claim: The claim, or its text; None for a measurement.
        models: Number of models in all, at least 4.
        confidence: A true claim is called violated with probability at most 1 - confidence.
        seed: Seed of all models; None draws a fresh one, which the result records.
        name: Name of the audit in reports.

    Returns:
        The result.  Its warnings name models that diverged, runs that share a seed, and a canary without effect.

    Raises:
        MechanismError: If `train` cannot be called as a mechanism.
        ValueError: If there are too few models, or all scores are equal.
    """
    check_mechanism(train)
    if models < 4:
        raise ValueError(f"models must be at least 4, got {models}")
    claim = None if claim is None else claim_of("claim", claim)
    seed = fresh_seed() if seed is None else seed
    found = [text for text in (doubts(pair),) if text]
    found += doubts_of(train, pair.d0, pair.d1)
    found += same_outputs(*(_outputs(train, d, _PROBES, seed, "probe") for d in (pair.d0, pair.d1)))
    sides = [_outputs(train, d, models // 2, seed, "models", side) for side, d in enumerate((pair.d0, pair.d1))]
    found += shared_seeds(*sides)
    if all(side.ndim == 1 and side.dtype.kind in "biuf" for side in sides):
        for side, scores in enumerate(sides):
            sides[side], diverged = without_nan(scores.astype(np.float64), side)
            found += diverged
    result = audit_scores(sides[0], sides[1], claim, independence="runs", confidence=confidence, seed=seed, name=name)
    if claim is not None and any(is_about(warning, About.TOO_FEW) for warning in result.warnings):
        found.append(_more(claim, models, confidence))
    return with_warnings(result, found)


def _outputs(train: Any, dataset: Dataset, n: int, seed: int, *path: str | int) -> AnyArray:
    """Train n models; return their outputs, (n, ...)."""
    if isinstance(train, Mechanism):
        outputs = train.sample(dataset, n, stream(seed, *path))
    else:
        outputs = [train(dataset, rng) for rng in trial_streams(seed, *path, start=0, stop=n)]
    if len(outputs) != n:
        raise ValueError(f"train was to return the outputs of {n} models, and returned {len(outputs)}")
    return np.asarray(outputs)


def _more(claim: TradeoffFunction, models: int, confidence: float) -> str:
    fewest = fewest_scores(claim, independence="runs", confidence=confidence)
    return f"{models} models could not refute {claim.label}, whatever their scores: at {confidence:g} confidence " + (
        f"at least {fewest:,} models are needed" if fewest else "no feasible number of models could"
    )
