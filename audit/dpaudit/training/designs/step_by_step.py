"""The design "step by step": inside one run, a coin for each step decides whether the canary joins the batch."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.claims.comparison import violates
from dpaudit.engine.arguments import claim_of
from dpaudit.engine.online import OnlineAudit
from dpaudit.engine.read_scores import order_doubts
from dpaudit.engine.rows import observed_curve
from dpaudit.learning.attack import Attack
from dpaudit.result.model import AuditResult
from dpaudit.settings.audit import DEFAULTS
from dpaudit.settings.limits import shown
from dpaudit.training.claims import is_whole
from dpaudit.training.designs.checks import described, doubts_of

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

    The guarantee is that of `OnlineAudit`: a step may depend on all earlier steps, and no independence is assumed.
    The claim is about one step, given the past, with or without the canary.  The coin, not the sampling, decides
    whether the canary is in the batch.  Therefore the claim about each step is that of a full batch:
    `reference.StepByStep.claim`.

    Args:
        step: A function that takes the coin, makes one step, and returns a score.  The canary is in the batch if the
            coin is 1.  The score must depend on the coin only through the release of the step.
        claim: The claim about a step, or its text, such as `training.claim(noise_multiplier=1.0, steps=1,
            sampling="full")`.
        steps: Maximum number of steps.
        confidence: A true claim is reported as violated, at any step, with probability at most 1 - confidence.
        seed: Seed of the coins; None draws a fresh seed, which the result records.  The training must not use `seed`.
        attacks: Attacks that learn from the scores, as for `audit`.
        name: Name of the audit in reports.

    Raises:
        TypeError: If `step` cannot be called, or does not return a number.
        ValueError: If the score never changes or is always nan in the first 50 steps; later steps are not checked.
            The error is also raised if `steps` is below 1, or if the claim is stronger than `step.claim`.
    """
    if not callable(step):
        raise TypeError(f"step must be a function from the coin to the score of a step, got {shown(step)}")
    if not is_whole(steps):
        raise ValueError(f"steps must be a whole number >= 1, got {shown(steps)}")
    claim = claim_of("claim", claim)
    _check_claim(step, claim)
    audit = OnlineAudit(claim, confidence=confidence, attacks=attacks, seed=seed)
    seen: set[float] = set()
    scores: tuple[list[float], list[float]] = ([], [])  # without and with the canary
    diverged = 0
    while audit.steps < steps and not audit.refuted:
        coin = audit.coin()
        score = _number(step(coin))
        scores[coin].append(score)
        audit.update(score)
        diverged += math.isnan(score)
        if audit.steps <= _CONSTANT_STEPS:
            seen.add(score)
        if audit.steps == diverged == _CONSTANT_STEPS:
            raise ValueError(
                f"all of the first {_CONSTANT_STEPS} scores are nan, so the model diverged: use a smaller learning "
                "rate, or check the loss"
            )
        if audit.steps == _CONSTANT_STEPS and len(seen) == 1:
            raise ValueError(
                f"the score was {score:g} in each of the first {_CONSTANT_STEPS} steps, so the score does not depend "
                "on the canary or the noise.  Pass the inner product of the noisy gradient with the canary's gradient"
            )
    found = list(doubts_of(step))
    result = audit.result(name=name)
    if diverged:
        found.append(
            f"the score was nan in {diverged:,} of {audit.steps:,} steps: the model diverged, so the result states no "
            "detectable violation"
        )
        limit = dataclasses.replace(result.detectable, claim="")
        result = dataclasses.replace(result, detectable=limit)
    out, into = (np.nan_to_num(np.array(side), nan=-math.inf) for side in scores)
    if not result.violated and result.mu_lower <= 0 and len(out) and len(into):
        hardly = order_doubts(*observed_curve(out, into), (len(out), len(into)), result.claim, runs=False)[1]
        found += filter(None, [hardly])
    canary = f"one canary, in the batches of {len(scores[1]):,} of {audit.steps:,} steps"
    return described(result, found, "step by step", step, canary, *scores)


def _number(score: object) -> float:
    """Return the score of a step; a zero-dimensional array counts as a number."""
    if isinstance(score, np.ndarray) and score.ndim == 0 and score.dtype.kind in "biuf":
        score = score.item()
    if not isinstance(score, numbers.Real):
        got = f"an array of shape {score.shape}" if isinstance(score, np.ndarray) else shown(score)
        raise TypeError(f"step must return one number, got {got}")
    return float(score)


def _check_claim(step: Any, claim: TradeoffFunction) -> None:
    """Raise ValueError if `step` states its claim, and `claim` is stronger somewhere."""
    own = getattr(step, "claim", None)
    if not isinstance(own, TradeoffFunction) or not violates(own, claim):
        return
    raise ValueError(
        f"{claim.label} is stronger than {own.label}, which a correct step satisfies: the coin decides whether the "
        "canary is in the batch, so the claim about each step is that of a full batch.  Use step.claim, or "
        'sampling="full" and steps=1 in training.claim'
    )
