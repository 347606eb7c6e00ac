"""Many audits at once: one promise for all of them, and which of the claims to name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np


def significance(confidence: float) -> Fraction:
    """Return 1 - confidence, exactly, of the number as it is written: 1/100 for 0.99."""
    return 1 - Fraction(repr(float(confidence)))


def shared_confidences(confidences: Sequence[float]) -> list[float]:
    """Split one probability of a false alarm over several audits.

    Theorem:
        Audit i of K is made at significance s_i = (1 - c_i) / K.  If all claims are true, some audit refutes its claim
        with probability at most sum_i s_i, the mean of the 1 - c_i, whatever the audits depend on (Bonferroni).  The
        same holds for any set of true claims among false ones, so every verdict counts.

    A sequential audit at significance s stops at wealth 1/s: sharing costs ln K nats more evidence.

    Args:
        confidences: Of each audit if it were alone, c_i, in (0, 1).

    Returns:
        The confidence of each audit, at least 1 - s_i after rounding; those given if there is only one.

    Raises:
        ValueError: If a confidence is out of its range, or if so little is left for each that it rounds to 1.
    """
    for confidence in confidences:
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    if len(confidences) < 2:
        return list(confidences)
    shares = []
    for confidence in confidences:
        exact = 1 - significance(confidence) / len(confidences)
        share = float(exact)
        if Fraction(share) < exact:
            share = math.nextafter(share, 2.0)
        if not share < 1:
            raise ValueError(f"confidence {confidence} of {len(confidences)} audits together is too close to 1")
        shares.append(share)
    return shares


def e_bh(e_values: Sequence[float], *, false_discovery_rate: float) -> list[int]:
    """Positions of the claims to reject: the expected share of true ones among them is at most the rate.

    The k largest e-values, k the largest number such that the k-th largest is at least m / (k rate), m the number of
    all.  Valid whatever the dependence between them: Wang & Ramdas 2022, "False discovery rate control with e-values",
    JRSS-B 84(3), Thm 1.  `e_values`: >= 0, inf allowed, each with expectation at most 1 if its claim is true.  The
    wealth at any stopping time is one, its maximum over time is not.  ValueError for anything else.
    """
    if not 0 < false_discovery_rate < 1:
        raise ValueError(f"false_discovery_rate must lie strictly between 0 and 1, got {false_discovery_rate}")
    if any(math.isnan(e) or e < 0 for e in e_values):
        raise ValueError(f"e-values must be >= 0, got {list(e_values)}")
    order = np.argsort([-e for e in e_values], kind="stable")
    enough = [k for k in range(1, len(order) + 1) if e_values[order[k - 1]] * k * false_discovery_rate >= len(order)]
    return sorted(int(i) for i in order[: max(enough, default=0)])
