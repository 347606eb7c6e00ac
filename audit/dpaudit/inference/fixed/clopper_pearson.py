"""Confidence bounds of one proportion.  Clopper & Pearson 1934, Biometrika 26, 404-413."""

from __future__ import annotations

from scipy.special import betaincinv


def clopper_pearson_upper(k: int, n: int, *, significance: float) -> float:
    """Clopper-Pearson upper bound.  Clopper & Pearson 1934, Biometrika 26, 404-413.

    If K ~ Binomial(n, p), then P[clopper_pearson_upper(K, n) < p] <= significance, for every n and p.
    """
    check_count(k, n, significance)
    if k == n or significance == 0:
        return 1.0
    return 1.0 - float(betaincinv(n - k, k + 1, significance))


def clopper_pearson_lower(k: int, n: int, *, significance: float) -> float:
    """Clopper-Pearson lower bound: P[clopper_pearson_lower(K, n) > p] <= significance.  As the upper one."""
    check_count(k, n, significance)
    if k == 0 or significance == 0:
        return 0.0
    return float(betaincinv(k, n - k + 1, significance))


def clopper_pearson(k: int, n: int, *, significance: float) -> tuple[float, float]:
    """Clopper-Pearson interval, significance split evenly."""
    return (
        clopper_pearson_lower(k, n, significance=significance / 2),
        clopper_pearson_upper(k, n, significance=significance / 2),
    )


def check_count(k: int, n: int, significance: float = 0.5) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"a count must lie between 0 and the number of outputs, got {k} of {n}")
    if not 0 <= significance < 1:
        raise ValueError(f"significance must lie in [0, 1), got {significance}")
