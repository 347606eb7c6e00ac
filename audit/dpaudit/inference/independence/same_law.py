"""Tests whether the outputs of one dataset have the same law in every process.

A mechanism may keep noise, a cache or a pool of values within a process.  The runs of an audit in one process then
share what is kept, and are not independent.  In another process, something else is kept, so the outputs differ in law
between the processes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from dpaudit.inference.fixed import newcomers
from dpaudit.inference.independence.hypergeometric import most_suspicious, notable, two_sided
from dpaudit.inference.independence.questions import bits_of
from dpaudit.numerics.arrays import Array


def differences(
    keys: Sequence[Hashable], columns: Array, process: npt.NDArray[np.intp], significance: float
) -> list[str]:
    """Test whether the outputs of some process differ in law from those of all other processes.

    Theorem:
        If all runs are independent and have the same law, P[the result is not empty] <= significance.

    Proof:
        The n outputs are exchangeable, and which of them belong to a process was fixed beforehand.  The questions
        (`questions.bits_of`) do not depend on the order of the outputs, so the number of outputs of a process with a
        given answer is hypergeometric given all outputs.  The theorem of `fixed.newcomers` covers values that occur in
        one process only.  The Bonferroni correction covers all questions and all processes.

    Args:
        keys: Keys of the n outputs; equal outputs have equal keys.
        columns: Numbers computed from each output by a function that does not depend on the order of the outputs;
            shape (n, k).
        process: The process of each output, 0 for that of the audit; shape (n,).
        significance: Joint significance of the tests.

    Returns:
        A list with the most significant difference, as the predicate of a sentence about a process; empty if no
        difference is significant.
    """
    bits = bits_of(columns)
    names, sizes = np.unique(process, return_counts=True)
    total, marked = len(process), bits.sum(axis=1)
    found: list[tuple[float, str]] = []
    for name, size in zip(names, sizes, strict=True):
        mine = process == name
        counts = bits[:, mine].sum(axis=1)
        for (i,) in notable(counts.astype(np.float64), total, marked, int(size)):
            x, others = int(counts[i]), int(marked[i] - counts[i])
            words = f"{_named(int(name))} gave an answer {x} times in {size} runs, other processes {others} times in "
            found.append((two_sided(x, total, int(marked[i]), int(size)), f"{words}{total - size}"))
        own, rest = [key for key, one in zip(keys, mine, strict=True) if one], set()
        rest_keys = [key for key, one in zip(keys, mine, strict=True) if not one]
        rest = set(rest_keys)
        new = sum(key not in rest for key in set(own))
        if rest_keys and new:
            words = f"{_named(int(name))} gave {new} values in {size} runs that no other process gave"
            found.append((newcomers.p_value(rest_keys, own), words))
    return most_suspicious(found, len(names) * (len(bits) + 1), significance)


def _named(process: int) -> str:
    return f"new process {process}" if process else "the process of the audit"
