"""Isolates third-party attacks, so that they receive copies of the outputs and cannot change the audit's state.

OpenMP threads wait for each other in busy loops.  If other processes use the cores, these loops can prolong a fit from
milliseconds to seconds.  With one thread, the results also do not depend on the number of cores.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields, is_dataclass
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from dpaudit.learning.attack import Attack, Scorer
from dpaudit.outputs import View
from dpaudit.sampling.streams import kept_global_randomness
from dpaudit.values import Output

_BRINGS_THREADS = ("scipy.linalg", "sklearn", "sklearn.ensemble", "torch", "xgboost", "lightgbm", "jaxlib", "faiss")
# controllers by loaded libraries, cached because their construction is slow
_known: dict[tuple[bool, ...], ThreadpoolController] = {}


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit all loaded native thread pools (BLAS, OpenMP) to one thread."""
    loaded = tuple(name in sys.modules for name in _BRINGS_THREADS)
    controller = _known.get(loaded)
    if controller is None:
        _known.clear()
        controller = _known[loaded] = ThreadpoolController()
    # this check is faster than setting the limit again
    if all(pool.get_num_threads() == 1 for pool in controller.lib_controllers):
        yield
        return
    with controller.limit(limits=1):
        yield


_OWN = "dpaudit_attacks"  # the package of built-in attacks


def is_foreign(attack: Attack) -> bool:
    """Return whether an attack runs third-party code: code of its own class, or a user's function in its settings."""
    if type(attack).__module__.partition(".")[0] != _OWN:
        return True
    settings = _settings_of(type(attack))
    return settings is None or not all(_plain(getattr(attack, name)) for name in settings)


@cache
def _settings_of(kind: type) -> tuple[str, ...] | None:
    """Return the names of the settings of a class of attacks; None if the class is not a dataclass."""
    return tuple(setting.name for setting in fields(kind)) if is_dataclass(kind) else None


def _plain(value: object) -> bool:
    """Return whether a value is immutable and contains no code.  Values of types that are not listed count as code."""
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
    """Return a scorer that passes copies of its outputs to the given scorer."""
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
