"""Which bounds a report shows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.numerics.arrays import Array
from dpaudit.result.model import AuditResult

DELTAS = (0.0, 1e-9, 1e-6, 1e-3, 1e-2, 1e-1)


def certified_profile(result: AuditResult) -> list[tuple[float, float]]:
    """(epsilon, delta), largest delta first: the mechanism's own profile exceeds delta wherever it is below epsilon.

    With the audit's confidence.  Of each epsilon the largest delta only; none with epsilon = 0.
    """
    if not (result.bounds_valid and result.evidence.trials):
        return []
    steps: list[tuple[float, float]] = []
    for delta in reversed(DELTAS):
        epsilon = result.epsilon_lower(delta)
        if epsilon > max(0.0, steps[-1][0] if steps else 0.0):
            steps.append((epsilon, delta))
    return steps


@lru_cache(maxsize=1024)
def allowed_epsilon(claim: TradeoffFunction, delta: float) -> float:
    """`claim.epsilon(delta)`; the audits of one report often share a claim, and it is found by bisection."""
    return claim.epsilon(delta)


def has_band(result: AuditResult) -> bool:
    """Whether the result bounds the mechanism's whole curve: beta = 1 - alpha bounds every curve and says nothing."""
    curve = result.curve
    known = np.isfinite(curve.alpha) & np.isfinite(curve.beta_upper)
    if not (result.bounds_valid and result.evidence.of_pairs and known.any()):
        return False
    return bool(np.any(curve.beta_upper[known] < 1 - curve.alpha[known] - 1e-12))


def profile_points(claim: TradeoffFunction, reach: float, least: float) -> tuple[Array, Array]:
    """(epsilon, delta) of a claim's privacy profile up to `reach`, close where it is steep; delta at least `least`.

    A profile that falls to zero falls to `least` here, at the epsilon where it does.
    """
    steep = np.asarray(claim.epsilon(np.geomspace(least, 1.0, 240)))
    even = np.linspace(0.0, reach, 400)
    at = np.concatenate([even, steep[np.isfinite(steep) & (steep <= reach)], [min(reach, claim.epsilon(0.0))]])
    epsilon = np.unique(at)
    return epsilon, np.clip(claim.delta(epsilon), least, 1.0)
