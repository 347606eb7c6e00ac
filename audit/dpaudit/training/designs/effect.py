"""Finds signs that a training ignores its dataset, or that the scores do not show the canary."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.numerics.arrays import AnyArray, Array
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict

UNLIKELY = 1e-6
"""Maximum probability of equal outputs, for a training at the limit of its claim, that makes an audit inconclusive."""

MODELS, CANARIES = ("on d0", "on d1"), ("without the canary", "with the canary")
"""Names of the two sides of scores, for `no_effect`."""

_CLEAR = 6.0  # a training at the limit of its claim must have at least this expected rank statistic
_HARDLY = 3.0  # below this rank statistic, scores are hardly higher with the canary
_MIDDLES = (np.arange(200) + 0.5) / 200  # type I errors at which the claim's curve is averaged


def enough_equal(claim: TradeoffFunction | None, most: int) -> int:
    """Return how many models with equal seeds must have equal outputs on d0 and d1, so that chance does not explain it.

    Theorem:
        Let t be the total variation distance of a pair of laws with the trade-off function `claim`.  If the laws of the
        outputs on d0 and d1 have this distance, k pairs of models with equal seeds all have equal outputs with
        probability at most (1 - t)^k, however a seed determines an output.

    Proof:
        Two random variables with these laws differ with probability at least t, in every joint distribution.

    Args:
        claim: The claim about the training; None if there is no claim.
        most: Maximum number of models to train for this purpose.

    Returns:
        The smallest k with (1 - t)^k <= `UNLIKELY`; 0 if k exceeds `most`, or there is no claim.
    """
    distance = 0.0 if claim is None else float(claim.delta(0.0))
    if distance <= 0:
        return 0
    needed = 1 if distance >= 1 else math.ceil(math.log(UNLIKELY) / math.log1p(-distance))
    return needed if needed <= most else 0


def equal_outputs(outputs0: AnyArray, outputs1: AnyArray) -> bool:
    """Return whether models on both datasets, trained with equal seeds, have equal outputs."""
    return np.array_equal(outputs0, outputs1, equal_nan=outputs0.dtype.kind == "f")


def same_outputs(outputs0: AnyArray, outputs1: AnyArray) -> tuple[str, ...]:
    """Return a warning if models on both datasets, trained with equal seeds, have equal outputs."""
    if not equal_outputs(outputs0, outputs1):
        return ()
    return (
        f"with the same seed, {len(outputs0)} models have the same output on d0 as on d1: the training may ignore "
        "its dataset, or the canary has no gradient or is in no batch.  If the canary is rarely in a batch, train for "
        "more steps",
    )


def ignored(models: int, claim: TradeoffFunction) -> str:
    """Return the reason why an audit is inconclusive if `models` models with equal seeds have equal outputs."""
    return (
        f"with the same seed, all {models} compared models have the same output on d0 as on d1.  If the scores were at "
        f"the limit of {claim.label}, the probability of this would be below one in a million.  So the training seems "
        "to ignore its dataset, or its score does not show the canary, and the claim was not tested"
    )


def no_effect(result: AuditResult, out: AnyArray, into: AnyArray, sides: tuple[str, str]) -> tuple[str, ...]:
    """Return a warning if scores are hardly higher with the canary, although the claim allows a clear difference.

    The rank statistic is the share of pairs of scores in the right order, minus one half, in standard errors of equal
    laws.  At the limit of a symmetric claim, the likelihood ratio puts a share of 1 minus the area below the trade-off
    curve in the right order.  The warning is given if this share is worth at least 6 standard errors, and the scores
    have less than 3.  A training that protects its records better than claimed may have such scores too.
    """
    sizes = len(out), len(into)
    if result.verdict is Verdict.VIOLATION or result.measurement or result.mu_lower > 0 or min(sizes) == 0:
        return ()
    if any(side.ndim != 1 or side.dtype.kind not in "biuf" for side in (out, into)):
        return ()
    error = math.sqrt((sum(sizes) + 1) / 12 / (sizes[0] * sizes[1]))
    share = _in_order(out.astype(np.float64), into.astype(np.float64))
    if (share - 0.5) / error >= _HARDLY:
        return ()
    limit = 1 - float(np.mean(result.claim.symmetrized().beta(_MIDDLES)))
    if (limit - 0.5) / error < _CLEAR:
        return ()
    return (
        f"scores are hardly higher {sides[1]} than {sides[0]}: {100 * share:.0f} % of all pairs of scores are in "
        "this order, and chance gives 50 %.  Check that the training uses the canary, and that a higher score is "
        f"evidence for runs {sides[1]}",
    )


def _in_order(out: Array, into: Array) -> float:
    """Return the share of pairs of a score of each side in which the score of `into` is larger; ties count half."""
    out, into = (np.where(np.isnan(side), -np.inf, side) for side in (out, into))
    ordered = np.sort(out)
    below = np.searchsorted(ordered, into, side="left") + np.searchsorted(ordered, into, side="right")
    return float(below.mean() / 2 / len(out))
