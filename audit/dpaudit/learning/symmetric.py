"""Columns of numbers that treat all outputs of a dataset alike, for tests of independence.

A test that asks whether outputs could have come in any other order needs numbers that do not know the order.  The
scores of an audit do: they were learned from earlier outputs, which they know by heart, and then given to later ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.learning.blocks import encoding_of, view_of
from dpaudit.learning.foreign import as_it_was, fit, guarded
from dpaudit.learning.learner import Learner
from dpaudit.learning.members import sees
from dpaudit.numerics.arrays import Array
from dpaudit.outputs import Encoding, Outputs
from dpaudit.values import Foreign, Output

_MAX_COLUMNS = 8  # of each kind: numbers, others

Columns = tuple[Array, Array]
"""(n, k) of d0, (m, k) of d1."""


def symmetric_columns(
    learner: Learner, outputs0: Sequence[Output], outputs1: Sequence[Output], rng: np.random.Generator, *, refit: bool
) -> tuple[Columns, Columns]:
    """Columns of the outputs themselves, and one column of scores (none unless `refit`, or if the attack fails).

    The scores are those of the attack with the largest weight, fitted to all of these outputs and asked about them.  It
    is a copy of the attack from before the audit, for an attack may keep what it was fitted to, in its order.

    Theorem: if the outputs of a dataset are exchangeable, then so are the rows of its columns, given the attack.
    Proof: the encoding and the attack see the outputs in a uniformly random order, which is independent of the order
    of the runs given the outputs as a multiset.  So what they learn is, too, and each row is the same function of its
    output.
    """
    orders = [rng.permutation(len(outputs)) for outputs in (outputs0, outputs1)]
    sides = [
        Outputs.read(_in_order(outputs, order)) for outputs, order in zip((outputs0, outputs1), orders, strict=True)
    ]
    encoding = encoding_of((sides[0], sides[1]), learner.settings.max_vocabulary)
    matrices: list[Array] = [np.asarray(view_of(side, encoding, "features")) for side in sides]
    if any(len(matrix) < len(order) for matrix, order in zip(matrices, orders, strict=True)):
        matrices = [np.zeros((len(order), 0)) for order in orders]  # not all outputs are known to the encoding
    numeric, total = encoding.numeric, matrices[0].shape[1]
    chosen = [*_spaced(0, numeric), *_spaced(numeric, total)]
    columns = [
        _with_sum(matrix[:, : min(numeric, total)], matrix[:, chosen] if total else matrix) for matrix in matrices
    ]
    scores = _scores(learner, sides, encoding, rng) if refit else [np.zeros((len(order), 0)) for order in orders]
    if any(len(side) < len(order) for side, order in zip(scores, orders, strict=True)):
        scores = [np.zeros((len(order), 0)) for order in orders]
    (a, b), (c, d) = (
        [matrix[np.argsort(order)] for matrix, order in zip(found, orders, strict=True)] for found in (columns, scores)
    )
    return (a, b), (c, d)


def _scores(learner: Learner, sides: list[Outputs], encoding: Encoding, rng: np.random.Generator) -> list[Array]:
    weights = learner.weights()
    nothing = [np.zeros((len(side), 0)) for side in sides]
    if not weights:
        return nothing
    attack = as_it_was(learner.untouched[max(weights, key=lambda i: weights[i])])  # it may keep what it is fitted to
    if attack is None:
        return nothing
    with guarded(learner.attacks):
        try:
            views = [view_of(side, encoding, sees(attack)) for side in sides]
            scorer = fit(attack, views[0], views[1], rng)
            found = [np.array(scorer(view), dtype=np.float64) for view in views]
        except (Exception, SystemExit):  # an attack's mistake must not end the audit
            return nothing
    if any(scores.shape != (len(side),) for scores, side in zip(found, sides, strict=True)):
        return nothing
    return [np.round(scores, 9)[:, None] for scores in found]


def _in_order(outputs: Sequence[Output], order: Foreign) -> Foreign:
    return [outputs[i] for i in order]


def _spaced(start: int, stop: int) -> list[int]:
    """A few whole numbers in [start, stop), evenly spaced."""
    return (
        sorted({int(i) for i in np.linspace(start, stop - 1, min(_MAX_COLUMNS, stop - start))}) if stop > start else []
    )


def _with_sum(numbers: Array, columns: Array) -> Array:
    """The columns, and the sum of several numbers."""
    if numbers.shape[1] < 2:
        return columns
    with np.errstate(all="ignore"):
        return np.column_stack([columns, numbers.sum(axis=1)])
