"""Which bounds a report shows."""

from __future__ import annotations

from functools import lru_cache

from dpaudit.claims import TradeoffFunction
from dpaudit.result import AuditResult

DELTAS = (0.0, 1e-9, 1e-6, 1e-3, 1e-2, 1e-1)


def certified_profile(result: AuditResult) -> list[tuple[float, float]]:
    """(epsilon, delta), largest delta first: the mechanism's own profile exceeds delta wherever it is below epsilon.

    With the audit's confidence.  Of each epsilon the largest delta only; none with epsilon = 0.
    """
    if not result.evidence.trials:
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
