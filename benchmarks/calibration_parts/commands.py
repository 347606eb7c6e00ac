"""Commands of twelve audits of true claims, which share one guarantee: the commands of `one_promise`."""

from __future__ import annotations

from functools import partial

from one_promise import CONFIDENCE, Known, command, kinds

from calibration_parts import Outcome, Row
from calibration_parts.limit import Limit

CLAIMS, TRIALS = 12, 1000


def rows() -> list[Row]:
    return [
        Row(
            part="commands",
            cells=(f"{CLAIMS} claims, likelihood ratios known", f"{TRIALS:,}"),
            audit=partial(audited, CLAIMS, TRIALS),
            limits={"refuted": Limit(rate=1 - CONFIDENCE)},
            full=200,
            sources=("calibration_parts/commands.py", "one_promise.py"),
        )
    ]


def audited(claims: int, trials: int, seed: int) -> Outcome:
    """Return whether a command refutes any claim."""
    results = command([Known(kind, 1.0) for kind in kinds(claims)], trials=trials, seed=seed)
    return {"refuted": float(any(result.violated for result in results))}
