"""Calls the scorers of attacks, handles their exceptions, and tests whether scores depend on other outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from dpaudit.learning.attack import Scorer
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Outputs, View

_MAX_SCORE = 60.0  # maximum absolute score in nats; larger scores, including infinite ones, are clipped to it
_MAX_PIECE = 65_536  # maximum number of outputs that are scored in one call, to limit the memory for their views
_MAX_PROBES = 256  # maximum number of past outputs by which a new scorer is tested
MAX_AGAIN = 64  # maximum number of outputs of a block that are scored again in another block
_PROBES_ALONE = 3  # number of these outputs that are scored again one at a time


def asked(scorer: Scorer, view: View) -> tuple[Array, str]:
    """Compute the scores of n outputs by a scorer, and handle exceptions that the scorer raises.

    An exception on one output must not change the scores of other outputs.  Therefore, if a call of the scorer raises
    an exception, each half of the outputs is scored separately.  The halves are divided further until the outputs that
    cause the exceptions are isolated.  These outputs have the score 0, and other scores are clipped to +-60 nats.  The
    second result describes the failure, and is empty if there is none.
    """
    if not len(view):
        return np.zeros(0), ""
    try:
        values = np.array(scorer(view), dtype=np.float64)
        failure = "" if values.shape == (len(view),) else f"returned scores of shape {values.shape}"
    except (Exception, SystemExit) as error:  # an exception in an attack must not end the audit
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
    """Return whether two arrays of scores of the same outputs agree up to rounding errors of 1e-9."""
    return np.array_equal(scores, again) or np.allclose(scores, again, rtol=1e-9, atol=1e-9)


def pointwise(scorer: Scorer, view0: View, view1: View, rng: np.random.Generator, *, thorough: bool) -> bool:
    """Test whether the score of an output depends on this output only.

    The test scores past outputs in one block, and then scores some of these outputs again one at a time.  A thorough
    test also scores some of these outputs again in another block and in another order.
    """
    if thorough:
        half = _MAX_PROBES // 2
        past = _joined([_picked(view, np.arange(max(0, len(view) - half), len(view))) for view in (view0, view1)])
        n = len(past)
        others = rng.permutation(n)[: rng.integers(1, min(MAX_AGAIN, n) + 1)]
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
    """Compute scores and the first failure, "" if none, of many outputs in pieces, to limit the memory for views."""
    starts = range(0, len(outputs), size)
    found = [compute(outputs.take(np.arange(i, min(i + size, len(outputs))))) for i in starts]
    return np.concatenate([scores for scores, _ in found]), next((words for _, words in found if words), "")
