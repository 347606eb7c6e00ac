"""Asking a scorer, which may be anybody's and fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.learning.attack import Scorer
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Outputs

_CERTAIN = 60.0  # nats; a score of +-inf is worth this much in the mean
_PIECE = 65_536  # outputs
_MAX_TOGETHER = 256  # past outputs of both datasets that are asked about together
_MAX_AGAIN = 64  # of these, in other company
_ALONE = 3  # and alone


def asked(scorer: Scorer, view: Any) -> tuple[Array, str]:
    """A scorer's values, 0 for outputs on which it fails, and what it did wrong, if anything.

    A failure on one output changes no other output's score: if the call for all of them fails, each half is asked
    about by itself, until those on which it fails are alone.
    """
    if not len(view):
        return np.zeros(0), ""
    try:
        values = np.array(scorer(view), dtype=np.float64)
        failure = "" if values.shape == (len(view),) else f"returned scores of shape {values.shape}"
    except (Exception, SystemExit) as error:  # an attack's mistake must not end the audit
        values, failure = np.zeros(0), f"raised {type(error).__name__} when scoring: {error}"
    if failure and len(view) > 1:
        half = len(view) // 2
        values = np.concatenate([asked(scorer, view[:half])[0], asked(scorer, view[half:])[0]])
    elif failure:
        values = np.zeros(1)
    elif np.isnan(values).any():
        failure = "returned NaN"
        values = np.where(np.isnan(values), 0.0, values)
    return np.clip(values, -_CERTAIN, _CERTAIN), failure


def same(scores: Array, again: Array) -> bool:
    """Whether two lists of scores of the same outputs agree, up to rounding."""
    return np.array_equal(scores, again) or np.allclose(scores, again, rtol=1e-9, atol=1e-9)


def pointwise(scorer: Scorer, view0: Any, view1: Any, rng: np.random.Generator, *, thorough: bool) -> bool:
    """Whether past outputs get the same scores together, in other company and order, and alone.

    `thorough`: look at hundreds of outputs, for attacks from outside the package; otherwise at four.
    """
    if thorough:
        half = _MAX_TOGETHER // 2
        past = _joined([_picked(view, np.arange(max(0, len(view) - half), len(view))) for view in (view0, view1)])
        n = len(past)
        others = rng.permutation(n)[: rng.integers(1, min(_MAX_AGAIN, n) + 1)]
        chosen = [others, *rng.integers(n, size=(_ALONE, 1))]
    else:
        past = _picked(view0, np.arange(0, len(view0), max(1, len(view0) // 3)))
        chosen = list(np.arange(len(past))[:, None])
    scores = asked(scorer, past)[0]
    return all(same(scores[at], asked(scorer, _picked(past, at))[0]) for at in chosen)


def _picked(view: Any, at: Any) -> Any:
    return view[at] if isinstance(view, np.ndarray) else [view[i] for i in at]


def _joined(views: list[Any]) -> Any:
    if isinstance(views[0], np.ndarray):
        return np.concatenate(views)
    return [output for view in views for output in view]


def in_pieces(compute: Callable[[Outputs], tuple[Array, str]], outputs: Outputs) -> tuple[Array, str]:
    """What `compute` gives for many outputs, without keeping their views."""
    starts = range(0, len(outputs), _PIECE)
    found = [compute(outputs.take(np.arange(i, min(i + _PIECE, len(outputs))))) for i in starts]
    return np.concatenate([scores for scores, _ in found]), next((words for _, words in found if words), "")
