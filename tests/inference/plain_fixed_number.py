"""The largest chances of any mechanism, if a fixed number of canaries is included: linear programs over mechanisms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import linprog

from dpaudit.claims import TradeoffFunction
from dpaudit.numerics.arrays import Array


def largest_drawn_chance(
    claim: TradeoffFunction, m: int, k: int, guesses: tuple[int, int], v: int, epsilons: Array
) -> float:
    """Compute the maximum of P[v or more right] if k of m canaries are included and the claim holds at some epsilons.

    The output of a mechanism is a set of canaries that are guessed to be included, and one of canaries that are guessed
    to be left out; `guesses` holds their sizes.  Averaging over permutations of the canaries preserves privacy and the
    number of right guesses.  So the unknowns are the probabilities of an output by the number n of included canaries
    and the numbers a, b of them in both sets, for every n from 0 to m.
    """
    states = [(n, a, b) for n in range(m + 1) for a in range(guesses[0] + 1) for b in range(guesses[1] + 1)]
    place = {state: i for i, state in enumerate(state for state in states if _outputs(m, guesses, *state))}
    rows: list[dict[int, float]] = []
    limits: list[float] = []
    size = len(place)
    for epsilon in epsilons:
        delta = float(claim.symmetrized().delta(epsilon))
        for n in range(1, m + 1):
            for direction in (0, 1):
                excesses: dict[int, float] = {}
                for state, without, number in _removals(m, guesses, n):
                    if direction:
                        state, without = without, state
                    rows.append({place[state]: 1.0, place[without]: -math.exp(epsilon), size: -1.0})
                    limits.append(0.0)
                    excesses[size] = float(number)
                    size += 1
                rows.append(excesses)
                limits.append(delta)
    upper = np.zeros((len(rows), size))
    for i, row in enumerate(rows):
        upper[i, list(row)] = list(row.values())
    equal, gain = np.zeros((m + 1, size)), np.zeros(size)
    for (n, a, b), i in place.items():
        equal[n, i] = _outputs(m, guesses, n, a, b)
        if n == k and a + guesses[1] - b >= v:
            gain[i] = -_outputs(m, guesses, n, a, b)
    found: Any = linprog(gain, upper, limits, equal, np.ones(m + 1), bounds=(0, None))
    assert found.success
    return -float(found.fun)


def _outputs(m: int, guesses: tuple[int, int], n: int, a: int, b: int) -> int:
    """Return the number of outputs with a and b included canaries in their sets, if n canaries are included."""
    return _pairs_of_sets(n, a, b) * _pairs_of_sets(m - n, guesses[0] - a, guesses[1] - b)


def _pairs_of_sets(n: int, a: int, b: int) -> int:
    """Return the number of disjoint pairs of sets of a and b out of n elements."""
    return math.comb(n, a) * math.comb(n - a, b) if 0 <= a <= n and 0 <= b <= n - a else 0


def _removals(m: int, guesses: tuple[int, int], n: int) -> list[tuple[Any, Any, int]]:
    """Return the states before and after one canary is removed, and the number of outputs with these states."""
    found = []
    for a in range(guesses[0] + 1):
        for b in range(guesses[1] + 1):
            others = _pairs_of_sets(m - n, guesses[0] - a, guesses[1] - b)
            for in_first, in_second in ((1, 0), (0, 1), (0, 0)):
                number = others * _pairs_of_sets(n - 1, a - in_first, b - in_second)
                if number:
                    found.append(((n, a, b), (n - 1, a - in_first, b - in_second), number))
    return found


def plain_biased_chance(claim: TradeoffFunction, m: int, k: int, r: int, v: int, epsilons: Array) -> float:
    """Compute the largest P[V >= v] that Eq. (1) of `fixed_number` allows, over the probability of m coins' sum k."""
    rare, counts, j = min(k, m - k), np.arange(1, r + 1), len(epsilons)
    share, size = rare / m, r + 1 + j * r
    upper, limits = [], []
    for i, epsilon in enumerate(epsilons):
        slope, whole = math.exp(epsilon) * share / (1 - share), np.zeros(size)
        for c in counts:
            line = np.zeros(size)
            line[c], line[c - 1], line[r + i * r + c] = c / m, -slope * (r - c + 1) / m, -1.0
            upper.append(line)
            limits.append(0.0)
            whole[r + i * r + c] = 1.0
        upper.append(whole)
        limits.append(share * float(claim.symmetrized().delta(epsilon)))
    equal, gain = np.zeros((1, size)), np.zeros(size)
    equal[0, : r + 1], gain[v : r + 1] = 1.0, -1.0
    found: Any = linprog(gain, np.array(upper), limits, equal, [1.0], bounds=(0, None))
    assert found.success
    return -float(found.fun) / (math.comb(m, k) * share**rare * (1 - share) ** (m - rare))
