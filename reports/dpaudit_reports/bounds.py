"""The certified and claimed bounds that a report shows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.numerics.arrays import Array
from dpaudit.result.model import AuditResult

DELTAS = (0.0, 1e-9, 1e-6, 1e-3, 1e-2, 1e-1)  # values of delta at which a report shows bounds on epsilon


def certified_profile(result: AuditResult) -> list[tuple[float, float]]:
    """Return the corners of the certified staircase, a lower bound on the mechanism's privacy profile.

    With the audit's confidence, the profile exceeds a corner's delta at all values below the corner's epsilon.
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
    """Return `claim.epsilon(delta)`.  The value is cached, because bisection is slow and audits often share a claim."""
    return claim.epsilon(delta)


def has_band(result: AuditResult) -> bool:
    """Return whether the result bounds the mechanism's whole curve.

    The trivial bound beta <= 1 - alpha holds for every curve and does not count.
    """
    curve = result.curve
    known = np.isfinite(curve.alpha) & np.isfinite(curve.beta_upper)
    if not (result.bounds_valid and result.evidence.of_pairs and known.any()):
        return False
    return bool(np.any(curve.beta_upper[known] < 1 - curve.alpha[known] - 1e-12))


def profile_points(claim: TradeoffFunction, reach: float, least: float) -> tuple[Array, Array]:
    """Return points of a claim's privacy profile, which are denser where the profile is steep."""
    steep = np.asarray(claim.epsilon(np.geomspace(least, 1.0, 240)))
    even = np.linspace(0.0, reach, 400)
    at = np.concatenate([even, steep[np.isfinite(steep) & (steep <= reach)], [min(reach, claim.epsilon(0.0))]])
    epsilon = np.unique(at)
    return epsilon, np.clip(claim.delta(epsilon), least, 1.0)
