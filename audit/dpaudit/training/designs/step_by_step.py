"""Step by step: inside one run, a coin for each step decides whether the canary joins the batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.online import OnlineAudit
from dpaudit.learning.attack import Attack
from dpaudit.result.model import AuditResult
from dpaudit.settings.audit import DEFAULTS
from dpaudit.training.designs.checks import doubts_of, with_warnings

Step = Callable[[int], float]
"""A function from the coin, 0 or 1, to the score of the step that it makes."""

_SAME = 50  # steps after which a score that never changed is an error


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
    """Audit the claim of each step while the training runs; stop as soon as it is refuted.

    The guarantee is that of `OnlineAudit`: a step may depend on all earlier ones.  No independence is assumed.  The
    claim is about one step, given the past, with the canary or without it.  The coin includes the canary, not the
    sampling of batches, so the claim is that of a step with a full batch.

    Args:
        step: A function from the coin to a score.  It makes one step, with the canary in the batch if the coin is 1.
            The score must depend on the coin through the release of the step only.
        claim: The claim about a step, or its text, such as `training.claim(noise_multiplier=1.0, steps=1,
            sampling="full")`.
        steps: Maximum number of steps.
        confidence: A true claim is ever called violated with probability at most 1 - confidence.
        seed: Seed of the coins; None draws a fresh one, which the result records.  Do not give it to the training.
        attacks: What learns from the scores, as for `audit`.
        name: Name of the audit in reports.

    Raises:
        ValueError: If the score does not change for 50 steps, or there is no step.
    """
    if steps < 1:
        raise ValueError(f"steps must be >= 1, got {steps}")
    audit = OnlineAudit(claim, confidence=confidence, attacks=attacks, seed=seed)
    seen: set[float] = set()
    diverged = 0
    while audit.steps < steps and not audit.refuted:
        score = float(step(audit.coin()))
        audit.update(score)
        diverged += math.isnan(score)
        if audit.steps <= _SAME:
            seen.add(score)
        if audit.steps == _SAME and len(seen) == 1:
            raise ValueError(
                f"the score was {score:g} in each of {_SAME} steps, so it does not depend on the canary or the noise; "
                "pass the inner product of the noisy gradient with the canary's gradient"
            )
    found = list(doubts_of(step))
    if diverged:
        found.append(f"the score was nan in {diverged:,} of {audit.steps:,} steps: the model diverged")
    return with_warnings(audit.result(name=name), found)
