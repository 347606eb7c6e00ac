"""Attacks from outside the package: they get copies of the outputs, and leave no trace in the audit."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from dpaudit.learning.attack import Attack, Scorer
from dpaudit.learning.native_threads import one_thread
from dpaudit.outputs import View
from dpaudit.sampling.global_randomness import kept_global_randomness
from dpaudit.values import Output

_OWN = "dpaudit_attacks"


def is_foreign(attack: Attack) -> bool:
    """Whether an attack is not one of the package's own, which are tested to be functions of one output."""
    return type(attack).__module__.partition(".")[0] != _OWN


def fit(attack: Attack, view0: View, view1: View, rng: np.random.Generator) -> Scorer:
    """The attack's scorer.  A foreign attack gets copies, so that nothing it does to them reaches anyone else."""
    if not is_foreign(attack):
        return attack.fit(view0, view1, rng)
    return protected(attack.fit(copied(view0), copied(view1), rng))


def as_it_was(attack: Attack | None) -> Attack | None:
    """A copy that knows nothing of what a foreign attack will be fitted to; None if there is none."""
    if attack is None or not is_foreign(attack):
        return attack
    try:
        return copy.deepcopy(attack)
    except Exception:  # of the attack's own code
        return None


def protected(scorer: Scorer) -> Scorer:
    """The same scorer, asked about copies of the outputs."""
    return lambda view: scorer(copied(view))


def copied(view: View) -> View:
    """A copy of n outputs, an array or a list.  An output of a list that cannot be copied is shared."""
    return view.copy() if isinstance(view, np.ndarray) else [_copied(output) for output in view]


def _copied(output: Output) -> Output:
    if output is None or type(output) in (bool, int, float, str, bytes):
        return output
    try:
        return copy.deepcopy(output)
    except Exception:
        return output


@contextmanager
def left_no_trace(foreign: bool) -> Iterator[None]:
    """Put the global random state back to what it was, if foreign attacks are asked."""
    if not foreign:
        yield
        return
    with kept_global_randomness():
        yield


@contextmanager
def guarded(attacks: Sequence[Attack]) -> Iterator[None]:
    """For all that these attacks are asked: one thread, and the global random state is put back afterwards."""
    with one_thread(), left_no_trace(any(map(is_foreign, attacks))):
        yield
