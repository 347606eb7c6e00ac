"""Corrections for multiple audits: the Bonferroni correction, and the e-BH procedure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np


def significance(confidence: float) -> Fraction:
    """Return 1 - confidence exactly, where the confidence is read as a decimal: 1/100 for 0.99."""
    return 1 - Fraction(repr(float(confidence)))


def shared_confidences(confidences: Sequence[float]) -> list[float]:
    """Apply the Bonferroni correction to the confidences of several audits.

    Theorem:
        Let c_i be the confidence of audit i before the correction, for i = 1, ..., K.  Let audit i have significance
        s_i = (1 - c_i) / K.  If all claims are true, the probability that at least one claim is refuted is at most
        sum_i s_i.  The audits may depend on each other arbitrarily (Bonferroni).  If some claims are false, the same
        bound holds for the probability that at least one true claim is refuted.  So the correction controls the
        family-wise error rate strongly.

    A sequential audit at significance s refutes its claim when its wealth reaches 1/s.  So the correction increases the
    required log-wealth by log K nats.

    Returns:
        The confidence 1 - s_i of each audit after the correction, rounded up.  That of a single audit is unchanged.

    Raises:
        ValueError: If a confidence is not in (0, 1), or a corrected confidence rounds to 1.
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
        if share < exact:
            share = math.nextafter(share, 2.0)
        if share >= 1:
            raise ValueError(f"confidence {confidence} is too close to 1 to be shared by {len(confidences)} audits")
        shares.append(share)
    return shares


def e_bh(e_values: Sequence[float], *, false_discovery_rate: float) -> list[int]:
    """Return the indices, in ascending order, of the claims that the e-BH procedure rejects.

    Theorem:
        Given m e-values, let k be the largest number such that the k-th largest e-value is at least m / (k q), where q
        is `false_discovery_rate`.  The e-BH procedure rejects the claims with the k largest e-values.  The expected
        share of true claims among the rejected claims is then at most q, for any dependence between the e-values (Wang
        & Ramdas 2022, "False discovery rate control with e-values", JRSS-B 84(3), Thm 1).

    Args:
        e_values: One e-value for each claim, which is >= 0 and may be inf.  The expectation of an e-value must be at
            most 1 if its claim is true.  The wealth of a sequential test at a stopping time is an e-value.  The maximum
            of the wealth over time is not an e-value.
        false_discovery_rate: Maximum expected share of true claims among the rejected claims, in (0, 1).

    Raises:
        ValueError: If the rate is out of its range, or an e-value is negative or NaN.
    """
    if not 0 < false_discovery_rate < 1:
        raise ValueError(f"false_discovery_rate must lie strictly between 0 and 1, got {false_discovery_rate}")
    if any(math.isnan(e) or e < 0 for e in e_values):
        raise ValueError(f"e-values must be >= 0, got {list(e_values)}")
    order = np.argsort([-e for e in e_values], kind="stable")
    enough = [k for k in range(1, len(order) + 1) if e_values[order[k - 1]] * k * false_discovery_rate >= len(order)]
    return sorted(int(i) for i in order[: max(enough, default=0)])
