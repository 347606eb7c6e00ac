"""The design "many runs": each model is a run of the mechanism "train and return a score"."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.arguments import EQUAL, check_mechanism, claim_of
from dpaudit.engine.read_scores import read_scores
from dpaudit.engine.scores import Design, audit_given
from dpaudit.mechanisms import Mechanism, members
from dpaudit.mechanisms.fingerprint import same_content
from dpaudit.numerics.arrays import AnyArray
from dpaudit.pairs.pair import Pair, check_relation
from dpaudit.result.model import AuditResult
from dpaudit.sampling.store import seed_of
from dpaudit.settings.audit import DEFAULTS, AuditSettings, Resume
from dpaudit.settings.limits import shown
from dpaudit.training.claims import is_whole
from dpaudit.training.designs.checks import (
    dependent,
    described,
    doubts_of,
    enough_equal,
    equal_outputs,
    ignored,
    pooled,
    relation_doubts,
    same_outputs,
    shared_seeds,
    too_few,
    without_nan,
)
from dpaudit.training.designs.models import TrainingProgress, train_models


def many_runs(
    train: Mechanism | Any,
    pair: Pair,
    claim: TradeoffFunction | str | None = None,
    *,
    models: int = 200,
    confidence: float = DEFAULTS.confidence,
    seed: int | None = DEFAULTS.seed,
    jobs: int = DEFAULTS.jobs,
    store: str | Path | None = DEFAULTS.store,
    resume: Resume = DEFAULTS.resume,
    progress: Callable[[TrainingProgress], None] | bool | None = None,
    name: str = "training",
) -> AuditResult:
    """Train half of the models on d0 and half on d1, and test the claim on their scores, exactly and once.

    All scores count, because no threshold is learned from them.  The order of the runs is tested for dependence, as in
    `audit`; most of these tests need 30 models on each dataset.  Repeated scores also count as dependent if they lie on
    no grid and occur on one dataset only.  If runs depend on each other, the result is inconclusive and certifies
    nothing.  The result is also inconclusive if the training seems to ignore its dataset, because many models with
    equal seeds have the same output on d0 as on d1.  `dpaudit.audit` tests the same mechanism sequentially, and learns
    a score from any kind of output.

    Args:
        train: A function `(dataset, rng)` that trains a model and returns its score, or an object with
            `sample(dataset, n, rng)` that trains n models.  A higher score must be stronger evidence that the model was
            trained on d1.  An array of one number is a score too.  Runs must draw all randomness from `rng`.
        pair: The two datasets, usually without and with a canary.
        claim: The claim, or its text.  If None, no claim is tested: the bounds hold, and the verdict is INCONCLUSIVE.
        models: Total number of models, at least 4; an odd number is rounded down.  Four further models are trained
            first, with equal seeds on both datasets, to check whether the training uses its dataset.  If their outputs
            do not differ, more such models are trained, at most as many as `models`.
        confidence: A true claim is reported as violated with probability at most 1 - confidence.
        seed: Seed of all models.  If None, the audit uses the seed of an existing `store` or else a fresh seed.  The
            result records the seed.
        jobs: Number of processes that train models; -1 uses all cores.  The result does not depend on this number.
        store: A file that keeps the output of each model.  If the file exists, its models are not trained again, and
            the result is that of an uninterrupted audit.  `train`, datasets, seed, versions and `models` must be
            unchanged.
        resume: "same" refuses a store in which one of these parts differs.  "anyway" continues such a store, and the
            result has a warning.
        progress: True to show a line with the time left, or a function that is called with a `TrainingProgress` after
            each block of models, such as print.
        name: Name of the audit in reports.

    Returns:
        The result.  Its warnings name models that diverged, runs that share a seed, and a canary without effect.

    Raises:
        MechanismError: If `train` cannot be called as a mechanism, or if a training fails.
        TypeError: If `pair` is not a `Pair`.
        ValueError: If there are too few models, if the two datasets are equal, if the records of the pair contradict
            its relation, if all scores are equal or missing, or if `store` belongs to another audit.  The error is also
            raised if `claim` is that of the reference trainer, and neither dataset is the other dataset plus one
            record.
    """
    began = time.perf_counter()
    check_mechanism(train)
    if not isinstance(pair, Pair):
        raise TypeError(f"pair must be a Pair(d0, d1), got a {type(pair).__name__}")
    if not is_whole(models, least=4):
        raise ValueError(f"models must be a whole number >= 4, got {shown(models)}")
    if same_content(pair.d0, pair.d1):
        raise ValueError(f"pair: {EQUAL}")
    check_relation(pair)
    claim = None if claim is None else claim_of("claim", claim)
    if claim is not None:
        members.check_neighbours(train, pair.d0, pair.d1, claim)
    settings = AuditSettings(confidence=confidence, jobs=jobs, store=store, resume=resume, progress=progress)
    seed = seed_of(store) if seed is None else seed
    found = list(relation_doubts(pair, claim))
    found += doubts_of(train, pair.d0, pair.d1)
    enough = enough_equal(claim, models // 2)
    trained = train_models(train, pair, models // 2, seed, settings, enough)
    compared = len(trained.probes[0])
    unused = equal_outputs(*trained.probes) and 0 < enough <= compared
    sides = [_single(side) for side in trained.outputs]
    same = () if unused else same_outputs(*trained.probes)
    found += [*trained.words, *same, *shared_seeds(*sides)]
    if all(side.ndim == 1 and side.dtype.kind in "biuf" for side in sides):
        if all(np.isnan(side).all() for side in sides):
            raise ValueError(
                "all scores are nan, so every model diverged: use a smaller learning rate, or check the loss"
            )
        for side, scores in enumerate(sides):
            sides[side], diverged = without_nan(scores.astype(np.float64), side)
            found += diverged
    result = audit_given(
        read_scores(sides[0], sides[1]),
        claim,
        Design(independence="runs"),
        confidence=confidence,
        seed=seed,
        name=name,
        began=began,
        dependent=dependent(sides[0], sides[1]) + pooled(sides[0], sides[1], pair),
        ignored=(ignored(compared, claim),) if unused and claim is not None else (),
    )
    found += too_few(result, models, "models", "runs")
    return described(result, found, "many runs", train, str(pair), *sides)


def _single(outputs: AnyArray) -> AnyArray:
    """Return outputs that are arrays of one number as numbers, so that they are treated as scores."""
    return outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 and outputs.dtype.kind in "biuf" else outputs
