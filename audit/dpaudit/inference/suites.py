"""Many audits at once: which of the claims to name."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


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
