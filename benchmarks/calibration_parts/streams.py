"""True claims about streams whose state drifts and adapts to the past: the streams of `online_audit`."""

from __future__ import annotations

from functools import partial

import online_audit

from calibration_parts import Outcome, Row
from calibration_parts.limit import Limit

STEPS = 600
_STREAMS = {
    "randomised response, epsilon 1; the answers are swapped whenever the wealth has fallen": "adapting_words",
    "Gaussian, mu 1, around a centre that follows the outputs and the wealth": "drifting_noise",
}


def rows() -> list[Row]:
    return [
        Row(
            part="streams",
            cells=(words, f"{STEPS} steps"),
            audit=partial(audited, function),
            limits={"refuted": Limit(rate=1 - online_audit.CONFIDENCE)},
            full=1000,
            sources=("calibration_parts/streams.py", "online_audit.py"),
        )
        for words, function in _STREAMS.items()
    ]


def audited(function: str, seed: int) -> Outcome:
    return {"refuted": float(getattr(online_audit, function)(seed, STEPS))}
