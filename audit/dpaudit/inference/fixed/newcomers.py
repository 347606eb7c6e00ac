"""Test whether new outputs contain more unseen values than independent runs allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from dpaudit.numerics.binomials import log_choose


def p_value(known: Sequence[Hashable], new: Sequence[Hashable]) -> float:
    """Return a p-value of independent runs, some of which were made in other processes.

    Theorem:
        Let n known and m new outputs be exchangeable, let R <= m, and let D be the number of values that occur at most
        R times among all outputs.  Let T be the number of these values that occur among the new outputs only.  Given
        how often each value occurs, P[T >= t] <= P[H >= t] for H ~ Hypergeometric(n + m, D, m).

    Proof:
        The places of the new outputs are a uniformly random set of m of the n + m places.  Fix one place of each of
        the D values; H of these places are new.  A value that occurs among the new outputs only has a new place.

    R = 1 is sharp for continuous outputs, R = m for outputs on a grid.  Both are tested, each at half the level.

    Args:
        known: Outputs, or keys that are equal if and only if the outputs are; at least one.
        new: Outputs, or keys, of other processes.

    Returns:
        The p-value, rounded up, at most 1.
    """
    counts, before = Counter([*known, *new]), set(known)
    total, found = len(known) + len(new), 1.0
    for most in {1, len(new)}:
        values = [value for value, times in counts.items() if times <= most]
        only_new = sum(value not in before for value in values)
        k = np.arange(max(only_new, len(values) - len(known)), min(len(values), len(new)) + 1.0)
        log_mass = log_choose(len(values), k) + log_choose(total - len(values), len(new) - k)
        log_all = log_choose(total, np.array([float(len(new))]))
        found = min(found, 2 * float(np.exp(log_mass - log_all).sum()) * (1 + 1e-9))  # covers the rounding
    return found
