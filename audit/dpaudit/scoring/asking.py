"""Asking a scorer, which may be anybody's and fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.claims import Array
from dpaudit.outputs import Outputs
from dpaudit.registry import Scorer
from dpaudit.scoring.calibration import rows_of

_CERTAIN = 60.0  # nats; a score of +-inf is worth this much in the mean
_PIECE = 65_536  # outputs


def asked(scorer: Scorer, view: Any) -> tuple[Array, str]:
    """A scorer's values, 0 for outputs on which it fails, and what it did wrong, if anything."""
    try:
        values = np.asarray(scorer(view), dtype=np.float64)
        failure = "" if values.shape == (len(view),) else f"returned scores of shape {values.shape}"
    except Exception as error:  # an attack's mistake must not end the audit
        values, failure = np.zeros(0), f"raised {type(error).__name__} when scoring: {error}"
    if failure and len(view) > 1:  # find out on which outputs, one by one
        values = np.concatenate([asked(scorer, view[i : i + 1])[0] for i in range(len(view))])
    elif failure:
        values = np.zeros(len(view))
    elif np.isnan(values).any():
        failure = "returned NaN"
        values = np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return np.clip(values, -_CERTAIN, _CERTAIN), failure


def pointwise(scorer: Scorer, view: Any) -> bool:
    """Whether a few outputs get the same scores alone as together, up to rounding."""
    chosen: npt.NDArray[np.bool_] = np.zeros(len(view), dtype=bool)
    chosen[:: max(1, len(view) // 3)] = True
    probe = rows_of(view, chosen)
    alone = np.concatenate([asked(scorer, probe[i : i + 1])[0] for i in range(len(probe))])
    return np.allclose(asked(scorer, probe)[0], alone, rtol=1e-9, atol=1e-9)


def in_pieces(compute: Callable[[Outputs], tuple[Array, str]], outputs: Outputs) -> tuple[Array, str]:
    """What `compute` gives for many outputs, without keeping their views."""
    starts = range(0, len(outputs), _PIECE)
    found = [compute(outputs.take(np.arange(i, min(i + _PIECE, len(outputs))))) for i in starts]
    return np.concatenate([scores for scores, _ in found]), next((words for _, words in found if words), "")
