"""Checks the numbers that reports draw or mention: the attack's curve, the refutation, the evidence of each pair."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.inference.sequential.strategy import log_threshold
from dpaudit.numerics.arrays import Array
from dpaudit.result.sequential_evidence import NEARLY
from dpaudit.result.stated import Stated
from dpaudit.text.rounding import count, number

_NO_LESS = "its curve is better for the attack than its counts allow"
_WEAKER = 1000.0  # factor of the significance at which the band of another version is compared
_WEAKEST = 0.5
_FAR_ERROR = 0.02  # errors of other versions may have been computed without bins
_FAR_TIMES, _FAR_NATS = 2.0, math.log(1000.0)  # bets of other versions may differ, but their evidence is not larger


def of_form(result: Stated) -> list[str]:
    """Describe a curve or a moment of the refutation that is impossible whatever the counts are."""
    return [*_of_shape(result), *_of_moment(result)]


def of_far(result: Stated) -> list[str]:
    """Describe a curve or a pair's evidence that is far better than the counts allow.

    The bounds of another version of dpaudit may differ, so the curve is compared with a bound at a lower confidence,
    and the evidence with a multiple.
    """
    found = []
    significance = 1 - result.confidence
    weaker = max(significance, min(_WEAKEST, _WEAKER * significance))  # never stricter than the result's own
    band = result.evidence.band(confidence=1 - weaker, bounds_valid=result.bounds_valid)
    curve = result.curve
    if band is not None and len(curve.alpha):
        alpha, beta, upper = band
        below = _below(alpha, beta, curve.alpha, curve.beta, margin=_FAR_ERROR)
        least = np.interp(curve.alpha, alpha[::-1], upper[::-1]) - _FAR_ERROR
        if below or (result.bounds_valid and np.any(curve.beta_upper < least)):
            found.append(_NO_LESS)
    for i, stated, computed in _of_pairs(result):
        if not stated <= max(0.0, _FAR_TIMES * computed) + _FAR_NATS:
            found.append(_pair_words(i, stated, computed))
            break
    return found


def of_drawn(result: Stated) -> list[str]:
    """Describe differences of the curve, the refutation and the pairs' evidence from those of the counts."""
    found = _of_crossing(result)
    band = result.evidence.band(confidence=result.confidence, bounds_valid=result.bounds_valid)
    stated = (result.curve.alpha, result.curve.beta, result.curve.beta_upper)
    columns = 3 if result.bounds_valid else 2  # reports show no bound if the audit certifies nothing
    if band is not None and not all(map(_equal, stated[:columns], band)):
        found.append("its curve is not the curve of its counts")
    for i, one, computed in _of_pairs(result):
        if not math.isclose(one, computed, rel_tol=NEARLY, abs_tol=NEARLY):
            found.append(_pair_words(i, one, computed))
            break
    return found


def _of_shape(result: Stated) -> list[str]:
    """Check that the curve consists of errors, falls, and bounds no curve if the evidence bounds none."""
    curve = result.curve
    columns = (curve.alpha, curve.beta, curve.beta_upper)
    if not all(np.all((column >= -NEARLY) & (column <= 1 + NEARLY)) for column in columns):
        return ["its curve has errors that do not lie between 0 and 1"]
    if np.any(np.diff(curve.alpha) > NEARLY) or np.any(np.diff(curve.beta) < -NEARLY):
        return ["its curve is no trade-off: both errors fall together"]
    known = result.evidence.band(confidence=result.confidence, bounds_valid=result.bounds_valid) is not None
    return [] if known or np.all(curve.beta_upper >= 1 - curve.alpha - NEARLY) else [_NO_LESS]


def _of_moment(result: Stated) -> list[str]:
    at, used = result.refuted_at, result.trials_used
    if at is None or 0 < at <= used:
        return []
    return [f"refuted_at is {count(at)}, but {count(used)} runs per dataset were made"]


def _of_crossing(result: Stated) -> list[str]:
    """Compare the moment of the refutation with the first interim analysis whose wealth reached the threshold.

    Streams record only some of their analyses, so the moment may lie between two of them.
    """
    at, path = result.refuted_at, result.history
    if at is None or not result.violated:
        return []
    threshold = log_threshold(result.confidence)
    crossed = np.flatnonzero(path.log_e >= threshold - NEARLY)
    if not (result.evidence.anytime and len(crossed)):
        return [f"refuted_at is {count(at)}, but its history does not reach the threshold"]
    surely = np.flatnonzero(path.log_e >= threshold + NEARLY)
    first, last = path.trials[max(0, crossed[0] - 1)], path.trials[(surely if len(surely) else crossed)[0]]
    if first <= at <= last:
        return []
    return [f"refuted_at is {count(at)}, but its history reaches the threshold at {count(int(last))} runs per dataset"]


def _of_pairs(result: Stated) -> list[tuple[int, float, float]]:
    """Return the index, the stated log-wealth and the log-wealth of the counts of each pair whose counts are known."""
    computed = result.evidence.pair_log_e(result.evidence.tested(result.claim))
    rows = zip(result.pairs, computed or (), strict=False)
    return [(i, row.log_e, log_e) for i, (row, log_e) in enumerate(rows)]


def _pair_words(pair: int, stated: float, computed: float) -> str:
    return f"the log-wealth on pairs[{pair}] is {number(stated, 6)}, but its counts give {number(computed, 6)}"


def _equal(stated: Array, computed: Array) -> bool:
    return stated.shape == computed.shape and bool(np.allclose(stated, computed, rtol=NEARLY, atol=NEARLY))


def _below(alpha: Array, beta: Array, stated_alpha: Array, stated_beta: Array, *, margin: float) -> bool:
    """Whether a stated point lies below the curve of the counts by more than a margin.

    Along this curve, beta - alpha rises from -1 to 1.  A point lies below the curve if alpha + beta is smaller than on
    the curve at the same beta - alpha.
    """
    on_curve = np.interp(stated_beta - stated_alpha, beta - alpha, alpha + beta)
    return bool(np.any(stated_alpha + stated_beta < on_curve - margin))
