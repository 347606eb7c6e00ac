"""Test whether new outputs contain more unseen values than independent runs allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from dpaudit.numerics import log_choose


def p_value(known: Sequence[Hashable], new: Sequence[Hashable]) -> float:
    """Return a p-value of "all runs are independent", where some runs were made in other processes.

    Theorem:
        Let n known and m new outputs be exchangeable, let R <= m, and let D be the number of values that occur at most
        R times among all outputs.  Let T be the number of these values that occur only among the new outputs.  Given
        how often each value occurs, P[T >= t] <= P[H >= t] for H ~ Hypergeometric(n + m, D, m).

    Proof:
        The places of the new outputs are a uniformly random set of m of the n + m places.  Fix one place of each of the
        D values; H of these places are new.  If a value occurs only among the new outputs, its place is new.

    R = 1 is sharp for continuous outputs, and R = m is sharp for outputs on a grid.  Both values of R are tested, each
    at half the level.

    Args:
        known: At least one output.  Keys may replace outputs if two keys are equal if and only if the outputs are
            equal.
        new: Outputs of other processes, or their keys.

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
        found = min(found, 2 * float(np.exp(log_mass - log_all).sum()) * (1 + 1e-9))  # factor for rounding
    return found
