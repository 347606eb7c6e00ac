"""Asking a scorer, which may be anybody's and fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from dpaudit.learning.attack import Scorer
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Outputs, View

_MAX_SCORE = 60.0  # nats; a score of +-inf counts as this much in the mean
_MAX_PIECE = 65_536  # outputs that are asked about together, if their views would fill the memory
_MAX_PROBES = 256  # past outputs of both datasets by which a new scorer is tested
_MAX_PROBES_AGAIN = 64  # probes that are asked about a second time, in other company
_PROBES_ALONE = 3  # probes that are asked about alone


def asked(scorer: Scorer, view: View) -> tuple[Array, str]:
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
    return np.clip(values, -_MAX_SCORE, _MAX_SCORE), failure


def same(scores: Array, again: Array) -> bool:
    """Whether two lists of scores of the same outputs agree, up to rounding."""
    return np.array_equal(scores, again) or np.allclose(scores, again, rtol=1e-9, atol=1e-9)


def pointwise(scorer: Scorer, view0: View, view1: View, rng: np.random.Generator, *, thorough: bool) -> bool:
    """Whether past outputs get the same scores together, in other company and order, and alone.

    `thorough`: look at hundreds of outputs, for attacks from outside the package; otherwise at four.
    """
    if thorough:
        half = _MAX_PROBES // 2
        past = _joined([_picked(view, np.arange(max(0, len(view) - half), len(view))) for view in (view0, view1)])
        n = len(past)
        others = rng.permutation(n)[: rng.integers(1, min(_MAX_PROBES_AGAIN, n) + 1)]
        chosen = [others, *rng.integers(n, size=(_PROBES_ALONE, 1))]
    else:
        past = _picked(view0, np.arange(0, len(view0), max(1, len(view0) // 3)))
        chosen = list(np.arange(len(past))[:, None])
    scores = asked(scorer, past)[0]
    return all(same(scores[at], asked(scorer, _picked(past, at))[0]) for at in chosen)


def _picked(view: View, at: npt.NDArray[np.intp]) -> View:
    return view[at] if isinstance(view, np.ndarray) else [view[i] for i in at]


def _joined(views: Sequence[View]) -> View:
    arrays = [view for view in views if isinstance(view, np.ndarray)]
    return np.concatenate(arrays) if arrays else [output for view in views for output in view]


def in_pieces(
    compute: Callable[[Outputs], tuple[Array, str]], outputs: Outputs, *, size: int = _MAX_PIECE
) -> tuple[Array, str]:
    """What `compute` gives for many outputs, `size` at a time, so that their views are not kept."""
    starts = range(0, len(outputs), size)
    found = [compute(outputs.take(np.arange(i, min(i + size, len(outputs))))) for i in starts]
    return np.concatenate([scores for scores, _ in found]), next((words for _, words in found if words), "")
