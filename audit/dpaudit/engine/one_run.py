"""The audit of a single run with many canaries, such as one training run of a model, or of several such runs."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.claims import TradeoffFunction
from dpaudit.engine.read_scores import Given
from dpaudit.engine.score_design import Inclusion, check_design
from dpaudit.engine.scores import Design, audit_given
from dpaudit.numerics import AnyArray, Array
from dpaudit.result.model import AuditResult
from dpaudit.settings import DEFAULTS

_BY_CHANCE = 1e-6  # runs that included the same canaries are called dependent if this coincidence is less probable


def audit_one_run(
    scores: npt.ArrayLike,
    included: npt.ArrayLike,
    claim: TradeoffFunction | str | None = None,
    *,
    confidence: float = DEFAULTS.confidence,
    included_at_random: Inclusion = "coins",
    run: Any = None,
    seed: int | None = DEFAULTS.seed,
    name: str = "one run",
) -> AuditResult:
    """Try to refute a claim from one output of a mechanism whose data included each of m canaries at random.

    The function equals `audit_scores` with `independence=None`: scores may depend on each other in any way.

    Args:
        scores: (m,), how strongly the output suggests that each canary was included.  Higher scores mean a stronger
            suggestion; +-inf is allowed.
        included: (m,), booleans: whether each canary was included.  The scores may depend on the inclusion only through
            the output.
        claim: The claim to test, or text for `parse_claim`; None to measure only.  The claim is about adding or
            removing one canary; see `inference.one_run` for the theorems.
        confidence: Between 0 and 1.  A true claim is called violated with probability at most 1 - confidence.
        included_at_random: "coins" if an independent fair coin decided for each canary; "fixed_number" if a fixed
            number of canaries was drawn at random, without replacement.
        run: (m,), the name or number of each canary's run, if the canaries come from several independent runs.  Each
            run must have fresh coins.
        seed: Seed of the order of equal scores; see `audit_scores`.  If None, the result records a fresh seed.
        name: Name of the audit in reports.

    Returns:
        The result, without a certified trade-off curve, because a single run bounds no curve.

    Raises:
        ValueError: If a score is NaN, no canary was included or all were, the arrays differ in length, or the
            confidence is not allowed.
    """
    began = time.perf_counter()
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(included)
    _check(values, truth)
    into = truth.astype(bool)
    dependent: tuple[str, ...] = ()
    if run is not None:
        labels = np.asarray(run)
        if labels.shape != values.shape:
            raise ValueError(f"run must name the run of each of {len(values)} canaries, got shape {labels.shape}")
        dependent = _same_coins(labels, into, drawn=included_at_random == "fixed_number")
        run = (labels[~into], labels[into])
    inclusion = check_design(None, included_at_random)
    given = Given(([], []), (values[~into], values[into]))
    design = Design(independence=None, inclusion=inclusion, run=run)
    return audit_given(
        given,
        claim,
        design,
        confidence=confidence,
        seed=seed,
        name=name,
        began=began,
        chosen_seed=seed is not None,
        dependent=dependent,
    )


def _same_coins(run: AnyArray, included: AnyArray, *, drawn: bool) -> tuple[str, ...]:
    """Name two runs that included exactly the same canaries, if this coincidence is improbable (`_BY_CHANCE`).

    A run whose canaries are sorted by inclusion is skipped, because their order carries no information.
    """
    names = np.unique(run)
    seen: dict[bytes, Any] = {}
    for label in names:
        coins = included[run == label]
        m, choices = len(coins), 2 ** len(coins)
        if drawn:
            choices = math.comb(m, int(coins.sum()))
        if np.count_nonzero(coins[1:] != coins[:-1]) < 2 or len(names) ** 2 > _BY_CHANCE * choices:
            continue
        if (same := seen.setdefault(coins.tobytes(), label)) is not label:
            return (
                f"the runs {same} and {label} included exactly the same canaries: runs are independent only if each "
                "run has fresh coins",
            )
    return ()


def _check(scores: Array, included: AnyArray) -> None:
    """Raise ValueError unless there are canaries, and each of them has a score other than NaN and a boolean."""
    if scores.ndim != 1:
        raise ValueError(f"scores must be one number for each canary, got an array of shape {scores.shape}")
    if np.any(np.isnan(scores)):
        raise ValueError(f"scores must be numbers, got nan for canary {int(np.argmax(np.isnan(scores)))}")
    if included.shape != scores.shape:
        raise ValueError(f"included must be a boolean for each of {len(scores)} canaries, got shape {included.shape}")
    if not np.all((included == 0) | (included == 1)):
        raise ValueError("included must consist of booleans (or 0 and 1)")
    if not len(scores):
        raise ValueError("scores must hold the score of at least one canary, got none")
