"""Calls attacks: isolates those of third parties, handles exceptions, and tests whether scores depend on other outputs.

With one thread, fits do not wait in OpenMP's busy loops, and do not depend on the number of cores.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields, is_dataclass

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from dpaudit.learning.attack import Attack, Scorer
from dpaudit.numerics import Array
from dpaudit.outputs import Outputs, View
from dpaudit.running.streams import kept_global_randomness
from dpaudit.values import Output

_LARGEST_SCORE = 60.0  # nats; larger absolute scores, including infinite ones, are clipped to it
_PIECE = 65_536  # number of outputs that are scored in one call
_PROBES = 256  # number of past outputs by which a new scorer is tested
RECHECKED = 64  # largest number of outputs of a block that are scored again in another block
_PROBES_ALONE = 3  # number of these outputs that are scored again one at a time
_BRINGS_THREADS = ("scipy.linalg", "sklearn", "sklearn.ensemble", "torch", "xgboost", "lightgbm", "jaxlib", "faiss")
_known: dict[tuple[bool, ...], ThreadpoolController] = {}  # by loaded libraries, because their construction is slow


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit all loaded native thread pools (BLAS, OpenMP) to one thread."""
    loaded = tuple(name in sys.modules for name in _BRINGS_THREADS)
    if loaded not in _known:
        _known.clear()
        _known[loaded] = ThreadpoolController()
    controller = _known[loaded]
    limited = all(pool.get_num_threads() == 1 for pool in controller.lib_controllers)  # faster than a limit
    with nullcontext() if limited else controller.limit(limits=1):
        yield


def is_foreign(attack: Attack) -> bool:
    """Return whether an attack runs third-party code: code of its own class, or a user's function in its settings."""
    if type(attack).__module__.partition(".")[0] != "dpaudit_attacks" or not is_dataclass(attack):
        return True
    return not all(_plain(getattr(attack, setting.name)) for setting in fields(attack))


def _plain(value: object) -> bool:
    """Return whether a value is immutable and contains no code.  Values of types that are not listed count as code."""
    if type(value) is tuple:
        return all(map(_plain, value))
    return value is None or type(value) in (bool, int, float, str, bytes)


def fit(attack: Attack, view0: View, view1: View, rng: np.random.Generator) -> Scorer:
    """Fit an attack to outputs.  A third-party attack and its scorer receive copies of the outputs."""
    if not is_foreign(attack):
        return attack.fit(view0, view1, rng)
    return protected(attack.fit(copied(view0), copied(view1), rng))


def as_it_was(attack: Attack | None) -> Attack | None:
    """Return a built-in attack unchanged, or a copy of a third-party attack.  Later fits do not affect this copy."""
    if attack is None or not is_foreign(attack):
        return attack
    try:
        return copy.deepcopy(attack)
    except Exception:  # the code of the attack may raise any exception
        return None


def protected(scorer: Scorer) -> Scorer:
    return lambda view: scorer(copied(view))


def copied(view: View) -> View:
    """Copy an array or a list of outputs.  An output that cannot be copied is shared with the original list."""
    return view.copy() if isinstance(view, np.ndarray) else [_copied(output) for output in view]


def _copied(output: Output) -> Output:
    if _plain(output):
        return output
    try:
        return copy.deepcopy(output)
    except Exception:
        return output


@contextmanager
def guarded(attacks: Sequence[Attack]) -> Iterator[None]:
    """In a `with` block, limit native libraries to one thread; at its end, restore the global random state."""
    with one_thread(), kept_global_randomness() if any(map(is_foreign, attacks)) else nullcontext():
        yield


def asked(scorer: Scorer, view: View) -> tuple[Array, str]:
    """Compute the scores of n outputs, and say how the scorer failed, "" if it did not.

    Outputs are halved until those that raise exceptions, which get the score 0, are isolated.  Scores are clipped to
    +-60.
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
    return np.clip(values, -_LARGEST_SCORE, _LARGEST_SCORE), failure


def same(scores: Array, again: Array) -> bool:
    """Return whether two arrays of scores of the same outputs agree up to rounding errors of 1e-9."""
    return np.array_equal(scores, again) or np.allclose(scores, again, rtol=1e-9, atol=1e-9)


def pointwise(scorer: Scorer, view0: View, view1: View, rng: np.random.Generator, *, thorough: bool) -> bool:
    """Test whether the score of an output depends on this output only."""
    if thorough:
        half = _PROBES // 2
        ends = [view[max(0, len(view) - half) :] for view in (view0, view1)]
        past: View = np.concatenate(ends) if isinstance(ends[0], np.ndarray) else [*ends[0], *ends[1]]
        n = len(past)
        others = rng.permutation(n)[: rng.integers(1, min(RECHECKED, n) + 1)]
        chosen = [others, *rng.integers(n, size=(_PROBES_ALONE, 1))]
    else:
        past = _picked(view0, np.arange(0, len(view0), max(1, len(view0) // 3)))
        chosen = list(np.arange(len(past))[:, None])
    scores = asked(scorer, past)[0]
    return all(same(scores[at], asked(scorer, _picked(past, at))[0]) for at in chosen)


def _picked(view: View, at: npt.NDArray[np.intp]) -> View:
    return view[at] if isinstance(view, np.ndarray) else [view[i] for i in at]


def pieces(outputs: Outputs, size: int = _PIECE) -> Iterator[Outputs]:
    """Yield many outputs in pieces that are scored one after another, to limit the memory for their views."""
    for start in range(0, len(outputs), size):
        yield outputs.take(slice(start, min(start + size, len(outputs))))
