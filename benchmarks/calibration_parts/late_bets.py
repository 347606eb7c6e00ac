"""Claims that are exactly true, in short audits that mostly place late bets."""

from __future__ import annotations

from functools import partial

from calibration_parts import Outcome, Row, true_claims
from calibration_parts.limit import Limit
from dpaudit import Pair, audit, batched

TRIALS = 300
_CONFIDENCE = 0.9
_NAMES = (
    "Gaussian, mu 1",
    "randomised response, epsilon 1",
    "geometric, epsilon 1",
    "Gaussian, mu 1, three pairs",
    "Gaussian, mu 1, detect mu 1.2",
)
_CASES = {case.name: case for case in true_claims.CASES}


def rows() -> list[Row]:
    limit = Limit(rate=1 - _CONFIDENCE)
    return [
        Row(
            part="late bets",
            cells=(name, f"{TRIALS}"),
            audit=partial(audited, name),
            limits={"refuted": limit, "mu": limit},
            full=1000,
            sources=("calibration_parts/late_bets.py", "calibration_parts/true_claims.py"),
        )
        for name in _NAMES
    ]


def audited(name: str, seed: int) -> Outcome:
    """Run one audit and return whether it refuted the claim, and whether `mu_lower` was too large."""
    case = _CASES[name]
    mechanism = batched(lambda dataset, n, rng: case.draw(dataset[0], n, rng))
    pairs = [Pair([first], [second], label=f"pair {i}") for i, (first, second) in enumerate(case.pairs)]
    result = audit(mechanism, case.claim, pairs, seed=seed, trials=TRIALS, confidence=_CONFIDENCE, **case.settings)
    largest = case.claim.symmetrized().mu() * (1 + 1e-6)  # bounds are rounded down by more than this
    return {"refuted": float(result.violated), "mu": float(result.mu_lower > largest)}
