"""A test of whether scores were copied, from how often equal scores occur.

Independent scores with the same law may be equal, because the law may have atoms.  The number of times that an atom
occurs then varies from atom to atom.  A file that holds each score exactly twice has no such variation.

**Theorem.**  Let w(1), w(2), ... > -1 be weights with

    w(1) x + w(2) x^2 / 2! + w(3) x^3 / 3! + ... <= 0    for every x >= 0.                              (1)

Let n independent scores have the same law, K_1, ..., K_D be the numbers of times that its D different values occur, and
E = (1 + w(K_1)) ... (1 + w(K_D)).  Then P[E >= c] <= e sqrt(n) / c for every law and every c > 0.

*Proof.*  First let the number of scores be Poisson(n).  Then the numbers of times that different atoms occur are
independent and Poisson.  By (1), the factor 1 + w(K) of each atom, which is 1 if the atom does not occur, has
expectation at most 1.  A part without atoms gives factors 1 + w(1) <= 1, since (1) implies w(1) <= 0.  So E has
expectation at most 1, and Markov's inequality holds.  A Poisson(n) number equals n with probability at least 1 / (e
sqrt(n)), by Stirling's formula.  So the probability of an event for exactly n scores is at most e sqrt(n) times its
probability for a Poisson(n) number of scores.  QED

The two sides are independent, so the values of E and the factors e sqrt(n) of both sides are multiplied.  The mean of E
over several choices of weights has the same property.

**Weights.**  Lemma A: w(c - 1) = -u, w(c) = 2 sqrt(u v c / (c + 1)), w(c + 1) = -v, and 0 elsewhere, satisfy (1).
*Proof.*  Divide (1) by x^(c-1) / (c-1)!; a quadratic polynomial without a positive value remains.

Lemma B: w = u for multiples of c and -u for other numbers, 0 <= u < 1, c >= 2, satisfy (1).  *Proof.*  For c = 2, the
sum is u (cosh x - 1 - sinh x) <= 0.  For c >= 3 and each multiple k of c, the sum of the terms of k - 1 and k + 1 is at
least 2 sqrt(k / (k + 1)) >= 1 times the term of k.  No two multiples share a neighbour.

Lemma C: w(1) = w(b + 1) = -u, w = u / R for 2, ..., b, and 0 elsewhere, satisfy (1), where R is the maximum of
(x^2 / 2! + ... + x^b / b!) / (x + x^(b+1) / (b+1)!).

**What the test cannot detect.**  The test detects neither a small number of copies nor copies whose numbers vary
like the multiplicities of atoms, such as a sample with replacement.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import Array

Multiplicities = npt.ArrayLike
"""How often each of the different scores of one side occurs, (D,), integers >= 1."""

_MOST = 64  # larger multiplicities share one weight, which is at most 0
_PAIRS = (
    (0.5, 0.5),
    (0.9, 0.9),
    (0.05, 0.9),
    (0.2, 0.9),
)  # u, v of Lemma A; a small u suits a file that is partly copied
_COPIES = range(2, 7)  # c of Lemmas A and B
_BET = 0.9  # u of Lemmas B and C
_RANGES = ((3, 1.415), (5, 3.976), (8, 12.796))  # b and R of Lemma C, rounded up


def repeats_p_value(first: Multiplicities, second: Multiplicities) -> float:
    """Return a p-value of "the scores of either side are independent and have the same law"."""
    sizes = [max(int(np.sum(side)), 1) for side in (first, second)]
    return math.exp(min(0.0, sum(1 + 0.5 * math.log(n) for n in sizes) - _log_e(first, second)))


def _log_e(first: Multiplicities, second: Multiplicities) -> float:
    """Return the logarithm of the theorem's E, multiplied over both sides and averaged over all choices of weights."""
    counts = [np.bincount(np.minimum(side, _MOST), minlength=_MOST + 1) for side in map(np.asarray, (first, second))]
    log_e = np.log1p(_weights()) @ (counts[0] + counts[1])
    return float(np.logaddexp.reduce(log_e)) - math.log(len(log_e))


@cache
def _weights() -> Array:
    """Return the weights of the multiplicities 0, ..., 64, one row for each choice; 64 stands for 64 or more."""
    k, rows = np.arange(_MOST + 1), []
    for c in _COPIES:
        rows += [_triple(k, c, u, v) for u, v in _PAIRS]
        rows.append(np.where(k % c == 0, _BET, -_BET))
    for last, ratio in _RANGES:
        rows.append(np.where((k >= 2) & (k <= last), _BET / ratio, np.where((k == 1) | (k == last + 1), -_BET, 0.0)))
    weights = np.array(rows)
    weights[:, 0] = 0.0
    # The weights of Lemma B are never all 0 from some multiplicity on, in contrast to those of Lemmas A and C.
    weights[:, _MOST] = np.where(weights[:, _MOST - 6 : _MOST].min(axis=1) < 0, -_BET, 0.0)
    return weights


def _triple(k: npt.NDArray[np.int64], c: int, u: float, v: float) -> Array:
    """Return the weights of Lemma A for the multiplicities k."""
    return np.select([k == c - 1, k == c, k == c + 1], [-u, 2 * math.sqrt(u * v * c / (c + 1)), -v])
