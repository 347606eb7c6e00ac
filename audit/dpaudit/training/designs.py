"""The three designs of an audit of training: many runs, one run with many canaries, and step by step."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.comparison import violates
from dpaudit.engine.arguments import EQUAL, check_mechanism, check_neighbours, claim_of
from dpaudit.engine.online import OnlineAudit
from dpaudit.engine.read_scores import order_doubts, read_scores
from dpaudit.engine.result_parts import observed_curve
from dpaudit.engine.score_design import Design, Independence, check_independence
from dpaudit.engine.scores import audit_given
from dpaudit.learning.attack import Attack
from dpaudit.numerics import Array, Flags
from dpaudit.pairs.pair import Pair, check_relation
from dpaudit.result.model import AuditResult
from dpaudit.running import Mechanism
from dpaudit.running.fingerprint import same_content
from dpaudit.running.store import seed_of
from dpaudit.running.streams import stream
from dpaudit.settings import DEFAULTS, AuditSettings, Resume, shown
from dpaudit.training import checks
from dpaudit.training.claims import is_whole
from dpaudit.training.models import TrainingProgress, opened, repeated, train_models


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
    `audit`; most of these tests need 30 models on each dataset.  The result is inconclusive if runs depend on each
    other, also shown by repeated scores on no grid and of one dataset only, or if many models with equal seeds have the
    same output on d0 as on d1.

    Args:
        train: A function `(dataset, rng)` that trains a model and returns its score, or an object with `sample(dataset,
            n, rng)` that trains n models.  A higher score must be stronger evidence that the model was trained on d1.
            Runs must draw all randomness from `rng`.
        pair: The two datasets, usually without and with a canary.
        claim: The claim, or its text.  If None, no claim is tested: the bounds hold, and the verdict is INCONCLUSIVE.
        models: Total number of models, at least 4; an odd number is rounded down.  Four or more further models, at most
            as many as `models`, are trained first, with equal seeds, until they show that the training uses its
            dataset.
        confidence: A true claim is reported as violated with probability at most 1 - confidence.
        seed: Seed of all models, which the result records.  If None, that of an existing `store` or a fresh seed.
        jobs: Number of processes that train models; -1 uses all cores.  The result does not depend on this number.
        store: A file that keeps the output of each model, so that a repeated call trains only the missing models.
            `train`, datasets, seed, versions and `models` must be unchanged.
        resume: "same" refuses a store in which one of these parts differs; "anyway" continues it with a warning.
        progress: True to show a line with the time left, or a function that is called with a `TrainingProgress` after
            each block of models, such as print.

    Returns:
        The result.  Its warnings name models that diverged, runs that share a seed, and a canary without effect.

    Raises:
        MechanismError: If `train` cannot be called as a mechanism, or if a training fails.
        TypeError: If `pair` is not a `Pair`.
        ValueError: If there are too few models, the datasets are equal or contradict the relation of the pair or the
            claim of the reference trainer, all scores are equal or missing, or `store` belongs to another audit.
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
    if claim is not None:
        claim = claim_of("claim", claim)
        check_neighbours(train, [pair], claim)
    settings = AuditSettings(confidence=confidence, jobs=jobs, store=store, resume=resume, progress=progress)
    seed = seed_of(store) if seed is None else seed
    found = [*checks.relation_doubts(pair, claim), *checks.doubts_of(train, pair.d0, pair.d1)]
    enough = checks.enough_equal(claim, models // 2)
    trained = train_models(train, pair, models // 2, seed, settings, enough)
    compared = len(trained.probes[0])
    unused = checks.equal_outputs(*trained.probes) and 0 < enough <= compared
    sides = list(trained.outputs)
    for side, outputs in enumerate(sides):
        if outputs.ndim == 2 and outputs.shape[1] == 1 and outputs.dtype.kind in "biuf":
            sides[side] = outputs[:, 0]  # an array of one number is a score, too
    same = () if unused else checks.same_outputs(*trained.probes)
    found += [*trained.warnings, *same, *checks.shared_seeds(*sides)]
    if all(side.ndim == 1 and side.dtype.kind in "biuf" for side in sides):
        if all(np.isnan(side).all() for side in sides):
            raise ValueError(
                "all scores are nan, so every model diverged: use a smaller learning rate, or check the loss"
            )
        for side, scores in enumerate(sides):
            sides[side], diverged = checks.without_nan(scores.astype(np.float64), side)
            found += diverged
    result = audit_given(
        read_scores(sides[0], sides[1]),
        claim,
        Design(independence="runs"),
        confidence=confidence,
        seed=seed,
        name=name,
        began=began,
        dependent=checks.dependent(sides[0], sides[1]) + checks.pooled(sides[0], sides[1], pair),
        ignored=(checks.ignored(compared, claim),) if unused and claim is not None else (),
    )
    found += checks.too_few(result, models, "models", "runs")
    return checks.described(result, found, "many runs", train, str(pair), *sides)


Train = Callable[[Flags, np.random.Generator], npt.ArrayLike]
"""A function `(included, rng)` that trains one model and returns the score of each canary, (m,)."""


def one_run(
    train: Train,
    canaries: int,
    claim: TradeoffFunction | str | None = None,
    *,
    independence: Independence = None,
    confidence: float = DEFAULTS.confidence,
    seed: int | None = DEFAULTS.seed,
    store: str | Path | None = DEFAULTS.store,
    resume: Resume = DEFAULTS.resume,
    name: str = "training",
) -> AuditResult:
    """Toss a fair coin for each canary, train one model with the included canaries, and guess the coins from scores.

    The bound is about the presence of one record, so the claim must be about "add_remove".  Other arguments are those
    of `many_runs`.

    Args:
        train: A function `(included, rng)` that trains one model with the canaries for which `included`, (m,), is true,
            and returns a score of each canary, (m,).  A higher score must be stronger evidence that the canary was
            included.  A score must not depend on the coins except through the model.
        canaries: Number of canaries, m.
        claim: The claim about the whole training, or its text.
        independence: "canaries" or None, as in `audit_scores`.
        seed: Seed of the coins and of the training.
        store: A file that keeps the scores and the coins, so that a repeated call, with the same `independence`, does
            not repeat the training.
        resume: As in `many_runs`, but another seed or another number of canaries is always refused.

    Raises:
        TypeError: If `train` cannot be called.
        ValueError: If `independence` is "runs", there are too few canaries, a score is missing or nan, or `store`
            belongs to another audit.
    """
    began = time.perf_counter()
    check_independence(independence)
    if independence == "runs":
        raise ValueError('independence="runs" is for many models; the canaries of one run need "canaries" or None')
    if not callable(train):
        raise TypeError(f"train must be a function (included, rng) that returns scores, got {shown(train)}")
    if not is_whole(canaries, least=4):
        raise ValueError(f"canaries must be the number of canaries, a whole number >= 4, got {shown(canaries)}")
    parts = {"design": "one run", "canaries": f"{canaries:,}", "independence": str(independence)}
    settings = AuditSettings(confidence=confidence, store=store, resume=resume)
    seed = seed_of(store) if seed is None else seed
    included = stream(seed, "secret coins").random(canaries) < 0.5
    with opened(train, [], seed, settings, {**parts, "seed of the coins": str(seed)}) as kept:
        earlier = None if kept is None else kept.get(0, 0, 1)
        if earlier is None:
            scores = _checked(train(included.copy(), stream(seed, "training")), canaries)
        else:
            scores, included = _checked(earlier[0][0], canaries), np.asarray(earlier[1][0], dtype=np.bool_)
        if kept is not None:
            kept.put(0, 0, [scores], [included])
        words = () if kept is None else repeated(kept)
        if earlier is not None and kept is not None:
            words = (f"the scores come from a store of {kept.made}", *kept.words(1)[1:], *words)
    sides = scores[~included], scores[included]
    result = audit_given(
        read_scores(*sides),
        claim,
        Design(independence=independence, own_coins=True),
        confidence=confidence,
        seed=seed,
        name=name,
        began=began,
    )
    found = (*checks.doubts_of(train), *words, *checks.too_few(result, canaries, "canaries", independence))
    canary = f"{canaries:,} canaries, {included.sum():,} of them included"
    return checks.described(result, found, "one run", train, canary, *sides)


def _checked(given: npt.ArrayLike, canaries: int) -> Array:
    try:
        scores = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"train must return {canaries} scores, one for each canary, got {shown(given)}") from None
    if scores.shape != (canaries,):
        raise ValueError(f"train must return {canaries} scores, one for each canary, got shape {scores.shape}")
    if np.all(np.isnan(scores)):
        raise ValueError("all scores are nan, so the model diverged: use a smaller learning rate, or check the loss")
    if np.any(np.isnan(scores)):
        raise ValueError(
            f"the score of canary {int(np.argmax(np.isnan(scores)))} is nan; give such canaries a score by a rule that "
            "does not use their coin"
        )
    return scores


Step = Callable[[int], float]
"""A function that makes one step for a given coin, 0 or 1, and returns the score of this step."""

_CONSTANT_STEPS = 50  # steps after which a score that never changed, or was always nan, is an error


def step_by_step(
    step: Step,
    claim: TradeoffFunction | str,
    *,
    steps: int = 5000,
    confidence: float = DEFAULTS.confidence,
    seed: int | None = DEFAULTS.seed,
    attacks: str | Attack | Sequence[str | Attack] = DEFAULTS.attacks,
    name: str = "training",
) -> AuditResult:
    """Audit the claim of each step while the training runs; stop as soon as the claim is refuted.

    The guarantee is that of `OnlineAudit`: a step may depend on all earlier steps.  The claim is about one step, given
    the past, with or without the canary.  The coin, not the sampling, decides whether the canary is in the batch, so it
    is that of a full batch: `reference.StepByStep.claim`.

    Args:
        step: A function that takes the coin, makes one step, with the canary if the coin is 1, and returns a score,
            which must depend on the coin only through the release of the step.
        claim: The claim about a step, or its text, such as `training.claim(noise_multiplier=1.0, steps=1,
            sampling="full")`.
        steps: Maximum number of steps.
        confidence: A true claim is reported as violated, at any step, with probability at most 1 - confidence.
        seed: Seed of the coins, which the training must not use; None draws a fresh seed, which the result records.
        attacks: Attacks that learn from the scores, as for `audit`.

    Raises:
        TypeError: If `step` cannot be called, or does not return a number.
        ValueError: If the score never changes or is always nan in the first 50 steps, `steps` is below 1, or the claim
            is stronger than `step.claim`.
    """
    if not callable(step):
        raise TypeError(f"step must be a function from the coin to the score of a step, got {shown(step)}")
    if not is_whole(steps):
        raise ValueError(f"steps must be a whole number >= 1, got {shown(steps)}")
    claim, own = claim_of("claim", claim), getattr(step, "claim", None)
    if isinstance(own, TradeoffFunction) and violates(own, claim):
        raise ValueError(
            f"{claim.label} is stronger than {own.label}, which a correct step satisfies: the coin decides whether the "
            "canary is in the batch, so the claim about each step is that of a full batch.  Use step.claim, or "
            'sampling="full" and steps=1 in training.claim'
        )
    audit = OnlineAudit(claim, confidence=confidence, attacks=attacks, seed=seed)
    scores: tuple[list[float], list[float]] = ([], [])  # without and with the canary
    diverged = 0
    while audit.steps < steps and not audit.refuted:
        coin = audit.coin()
        score = _number(step(coin))
        scores[coin].append(score)
        audit.update(score)
        diverged += math.isnan(score)
        if audit.steps == diverged == _CONSTANT_STEPS:
            raise ValueError(
                f"all of the first {_CONSTANT_STEPS} scores are nan, so the model diverged: use a smaller learning "
                "rate, or check the loss"
            )
        if audit.steps == _CONSTANT_STEPS and len({*scores[0], *scores[1]}) == 1:
            raise ValueError(
                f"the score was {score:g} in each of the first {_CONSTANT_STEPS} steps, so the score does not depend "
                "on the canary or the noise.  Pass the inner product of the noisy gradient with the canary's gradient"
            )
    found = list(checks.doubts_of(step))
    result = audit.result(name=name)
    if diverged:
        found.append(
            f"the score was nan in {diverged:,} of {audit.steps:,} steps: the model diverged, so the result states no "
            "detectable violation"
        )
        result = replace(result, detectable=replace(result.detectable, claim=""))
    out, into = (np.nan_to_num(np.array(side), nan=-math.inf) for side in scores)
    if not result.violated and result.mu_lower <= 0 and len(out) and len(into):
        hardly = order_doubts(*observed_curve(out, into), (len(out), len(into)), result.claim, runs=False)[1]
        found += filter(None, [hardly])
    canary = f"one canary, in the batches of {len(scores[1]):,} of {audit.steps:,} steps"
    return checks.described(result, found, "step by step", step, canary, *scores)


def _number(score: object) -> float:
    """Return the score of a step; a zero-dimensional array counts as a number."""
    if isinstance(score, np.ndarray) and score.ndim == 0 and score.dtype.kind in "biuf":
        score = score.item()
    if not isinstance(score, numbers.Real):
        got = f"an array of shape {score.shape}" if isinstance(score, np.ndarray) else shown(score)
        raise TypeError(f"step must return one number, got {got}")
    return float(score)
