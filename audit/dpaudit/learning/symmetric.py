"""Computes features and scores of outputs that do not depend on the order of the outputs, for tests of independence.

A test of exchangeability requires columns of numbers that do not depend on the order of the outputs.  The scores of an
audit depend on this order, because the score of a later output was learned from earlier outputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.learning.attack import sees
from dpaudit.learning.blocks import encoding_of, view_of
from dpaudit.learning.foreign import as_it_was, fit, guarded
from dpaudit.learning.learner import Learner
from dpaudit.numerics import Array
from dpaudit.outputs import Encoding, Outputs
from dpaudit.values import Output

_MAX_COLUMNS = 8  # maximum number of columns with numbers, and maximum number of other columns

Columns = tuple[Array, Array]  # the k columns of n outputs of d0, (n, k), and the k columns of m outputs of d1, (m, k)


def symmetric_columns(
    learner: Learner, outputs0: Sequence[Output], outputs1: Sequence[Output], rng: np.random.Generator, *, refit: bool
) -> tuple[Columns, Columns]:
    """Compute columns of features and a column of scores that do not depend on the order of the outputs.

    The attack with the largest weight is fitted to these outputs, and then computes the scores of the same outputs.  An
    attack may remember the order of earlier outputs, so a copy of the attack from before the audit is used.

    Theorem:
        If the outputs of a dataset are exchangeable, then the rows of its columns are exchangeable, given the attack.

    Proof:
        The encoding and the attack receive the outputs in a uniformly random order.  Given the outputs as a multiset,
        this random order is independent of the order of the runs.  So the fitted function is also independent of the
        order of the runs.  This function maps each output to its row.

    The column of scores has shape (n, 0) if `refit` is false or if the attack fails.
    """
    orders = [rng.permutation(len(outputs)) for outputs in (outputs0, outputs1)]
    given = zip((outputs0, outputs1), orders, strict=True)
    sides = [Outputs.read([outputs[i] for i in order]) for outputs, order in given]
    encoding = encoding_of((sides[0], sides[1]), learner.settings.max_vocabulary, learner.targets)
    matrices: list[Array] = [np.asarray(view_of(side, encoding, "features")) for side in sides]
    nothing = [np.zeros((len(order), 0)) for order in orders]
    if any(len(matrix) < len(order) for matrix, order in zip(matrices, orders, strict=True)):
        matrices = nothing  # the encoding cannot represent some outputs
    numeric, total = encoding.numeric, matrices[0].shape[1]
    chosen = [*_spaced(0, numeric), *_spaced(numeric, total)]
    columns = [matrix[:, chosen] if total else matrix for matrix in matrices]
    if min(numeric, total) > 1:  # the sum of several numbers is a column, too
        with np.errstate(all="ignore"):
            sums = [matrix[:, :numeric].sum(axis=1) for matrix in matrices]
        columns = [np.column_stack(both) for both in zip(columns, sums, strict=True)]
    scores = _scores(learner, sides, encoding, rng) if refit else nothing
    if any(len(side) < len(order) for side, order in zip(scores, orders, strict=True)):
        scores = nothing
    (a, b), (c, d) = (
        [matrix[np.argsort(order)] for matrix, order in zip(found, orders, strict=True)] for found in (columns, scores)
    )
    return (a, b), (c, d)


def _scores(learner: Learner, sides: list[Outputs], encoding: Encoding, rng: np.random.Generator) -> list[Array]:
    weights = learner.weights()
    nothing = [np.zeros((len(side), 0)) for side in sides]
    if not weights:
        return nothing
    # the copy protects `untouched` against changes by the fit
    attack = as_it_was(learner.untouched[max(weights, key=lambda i: weights[i])])
    if attack is None:
        return nothing
    with guarded(learner.attacks):
        try:
            views = [view_of(side, encoding, sees(attack)) for side in sides]
            scorer = fit(attack, views[0], views[1], rng)
            found = [np.array(scorer(view), dtype=np.float64) for view in views]
        except (Exception, SystemExit):  # an exception in an attack must not end the audit
            return nothing
    if any(scores.shape != (len(side),) for scores, side in zip(found, sides, strict=True)):
        return nothing
    return [np.round(scores, 9)[:, None] for scores in found]


def _spaced(start: int, stop: int) -> list[int]:
    """Return at most `_MAX_COLUMNS` evenly spaced integers in the range [start, stop)."""
    return sorted({int(i) for i in np.linspace(start, stop - 1, max(0, min(_MAX_COLUMNS, stop - start)))})
