"""The design "one run": a secret coin decides for each of many canaries whether the canary is included."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.read_scores import read_scores
from dpaudit.engine.score_design import Independence, check_independence
from dpaudit.engine.scores import Design, audit_given
from dpaudit.numerics.arrays import Array, Flags
from dpaudit.result.model import AuditResult
from dpaudit.sampling.store import seed_of
from dpaudit.sampling.streams import stream
from dpaudit.settings.audit import DEFAULTS, AuditSettings, Resume
from dpaudit.settings.limits import shown
from dpaudit.training.claims import is_whole
from dpaudit.training.designs.checks import described, doubts_of, too_few
from dpaudit.training.designs.models import opened, repeated

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

    The bound is about the presence of one record, so the claim must be about "add_remove".

    Args:
        train: A function `(included, rng)` that trains one model with the canaries for which `included`, (m,), is true.
            The function returns a score of each canary, (m,).  A higher score must be stronger evidence that the canary
            was included.  A score must not depend on the coins except through the model.
        canaries: Number of canaries, m.
        claim: The claim about the whole training, or its text.  If None, no claim is tested: the bounds hold, and the
            verdict is INCONCLUSIVE.
        independence: "canaries" or None, as in `audit_scores`.
        confidence: A true claim is reported as violated with probability at most 1 - confidence.
        seed: Seed of the coins and of the training.  If None, the audit uses the seed of an existing `store` or else a
            fresh seed.  The result records the seed.
        store: A file that keeps the scores and the coins.  If the file exists, the training is not repeated.
            `independence` must then be that of the first call.
        resume: As in `many_runs`, but another seed or another number of canaries is always refused.
        name: Name of the audit in reports.

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
    result = audit_given(
        read_scores(scores[~included], scores[included]),
        claim,
        Design(independence=independence, own_coins=True),
        confidence=confidence,
        seed=seed,
        name=name,
        began=began,
    )
    sides = scores[~included], scores[included]
    found = (*doubts_of(train), *words, *too_few(result, canaries, "canaries", independence))
    canary = f"{canaries:,} canaries, {included.sum():,} of them included"
    return described(result, found, "one run", train, canary, *sides)


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
