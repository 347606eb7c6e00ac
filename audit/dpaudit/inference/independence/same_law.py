"""Tests whether the outputs of one dataset have the same law in every process.

They differ if a mechanism keeps noise, a cache or a pool of values in a process; its runs are then dependent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import compress

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from dpaudit.inference.independence.correlation import bits_of, most_suspicious, notable, two_sided
from dpaudit.numerics import Array, log_choose


def differences(
    keys: Sequence[Hashable],
    columns: Array,
    process: npt.NDArray[np.intp],
    significance: float,
    rng: np.random.Generator,
) -> list[str]:
    """Test whether the outputs of some process differ in law from those of all other processes.

    Equal outputs have equal `keys`; `columns` (n, k) are numbers that do not depend on the order of outputs; `process`
    (n,) is 0 for that of the audit; `rng` decides which equal outputs are compared.  The result is the most significant
    difference, as a predicate about a process.

    Theorem:
        If all runs are independent and have the same law, P[the result is not empty] <= significance.

    Proof:
        The n outputs are exchangeable, and which of them belong to a process was fixed beforehand.  The questions
        (`bits_of`) do not depend on the order of the outputs, so the number of outputs of a process with a
        given answer is hypergeometric given all outputs.  The theorem of `newcomers_p_value` covers values that occur
        in one process only, and that of `repeats` covers values that repeat within a process.  The Bonferroni
        correction covers all questions and all processes.
    """
    bits = bits_of(columns)
    names, sizes = np.unique(process, return_counts=True)
    total, marked = len(process), bits.sum(axis=1)
    suspicions: list[tuple[float, str]] = []
    for name, size in zip(names.tolist(), sizes.tolist(), strict=True):
        named = f"new process {name}" if name else "the process of the audit"
        mine = process == name
        counts = bits[:, mine].sum(axis=1)
        for (i,) in notable(counts.astype(np.float64), total, marked, size):
            x, elsewhere = int(counts[i]), int(marked[i] - counts[i])
            words = f"{named} gave an answer {x} times in {size} runs, other processes {elsewhere} times in "
            suspicions.append((two_sided(x, total, int(marked[i]), size), f"{words}{total - size}"))
        own, others = (list(compress(keys, side)) for side in (mine, ~mine))
        new = len(set(own).difference(others))
        if others and new:
            words = f"{named} gave {new} values in {size} runs that no other process gave"
            suspicions.append((newcomers_p_value(others, own), words))
    made_anew = process > 0
    within, pairs, p_value = repeats(list(compress(keys, made_anew)), process[made_anew], rng)
    if pairs:
        words = f"{within} of {pairs} pairs of equal outputs of new processes come from the same process"
        suspicions.append((p_value, words))
    return most_suspicious(suspicions, len(names) * (len(bits) + 1) + 1, significance)


def repeats(
    keys: Sequence[Hashable], process: npt.NDArray[np.intp], rng: np.random.Generator
) -> tuple[int, int, float]:
    """Test whether outputs repeat within a process more often than between processes, as those of a pool do.

    Equal outputs have equal `keys`, `process` has shape (n,), and `rng` chooses the pairs.  Returns W, R and the
    p-value P[Binomial >= W].

    Theorem:
        Let all N outputs be exchangeable, and let the largest process have n of them.  Of disjoint pairs of equal
        outputs, choose R <= N / 4 without regard to the processes.  Then the number W of pairs within a process is
        stochastically at most Binomial(R, (n - 1) / (N - 2 R + 1)).

    Proof:
        Given the outputs, their processes are a uniformly random assignment.  Reveal it pair by pair.  After i pairs,
        N - 2 i outputs are left.  If the next output belongs to process j, at most n - 1 of the other N - 2 i - 1
        belong to it, too, whatever was revealed, and i <= R - 1.
    """
    pairs: list[tuple[int, int]] = []
    single: dict[Hashable, int] = {}
    for place in map(int, rng.permutation(len(keys))):
        other = single.pop(keys[place], None)
        if other is None:
            single[keys[place]] = place
        else:
            pairs.append((other, place))
    del pairs[len(keys) // 4 :]
    if not pairs:
        return 0, 0, 1.0
    within = sum(int(process[a] == process[b]) for a, b in pairs)
    largest = int(np.bincount(process).max())
    share = min(1.0, (largest - 1) / (len(keys) - 2 * len(pairs) + 1))
    tail = float(betainc(within, len(pairs) - within + 1, share)) if within else 1.0
    return within, len(pairs), tail * (1 + 1e-9)  # rounding


def newcomers_p_value(known: Sequence[Hashable], new: Sequence[Hashable]) -> float:
    """Return a p-value, rounded up, of "all runs are independent", where `new` runs were made in other processes.

    Theorem:
        Let n known and m new outputs be exchangeable, let R <= m, and let D be the number of values that occur at most
        R times among all outputs.  Let T be the number of these values that occur only among the new outputs.  Given
        how often each value occurs, P[T >= t] <= P[H >= t] for H ~ Hypergeometric(n + m, D, m).

    Proof:
        The places of the new outputs are a uniformly random set of m of the n + m places.  Fix one place of each of the
        D values; H of these places are new.  If a value occurs only among the new outputs, its place is new.

    R = 1 is sharp for continuous outputs, and R = m is sharp for outputs on a grid.  Both values of R are tested, each
    at half the level.
    """
    counts, before = Counter([*known, *new]), set(known)
    total, p_value = len(known) + len(new), 1.0
    for most in {1, len(new)}:
        values = [value for value, times in counts.items() if times <= most]
        only_new = sum(value not in before for value in values)
        k = np.arange(max(only_new, len(values) - len(known)), min(len(values), len(new)) + 1.0)
        log_mass = log_choose(len(values), k) + log_choose(total - len(values), len(new) - k)
        log_all = log_choose(total, np.array([float(len(new))]))
        p_value = min(p_value, 2 * float(np.exp(log_mass - log_all).sum()) * (1 + 1e-9))  # factor for rounding
    return p_value
