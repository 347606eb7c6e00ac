"""Confidence bounds of one proportion.  Clopper & Pearson 1934, Biometrika 26, 404-413."""

from __future__ import annotations

from scipy.special import betaincinv


def clopper_pearson_upper(k: int, n: int, *, significance: float) -> float:
    """Return the Clopper-Pearson upper bound of a proportion.

    Theorem:
        If K ~ Binomial(n, p), P[clopper_pearson_upper(K, n) < p] <= significance for every n and p.
        Clopper & Pearson 1934, Biometrika 26, 404-413.

    Args:
        k: Number of successes, 0 to n.
        n: Number of trials.
        significance: In [0, 1).

    Returns:
        The bound, in [0, 1].

    Raises:
        ValueError: If a number is out of its range.
    """
    check_count(k, n, significance)
    if k == n or significance == 0:
        return 1.0
    return 1.0 - float(betaincinv(n - k, k + 1, significance))


def clopper_pearson_lower(k: int, n: int, *, significance: float) -> float:
    """Return the Clopper-Pearson lower bound of a proportion.

    Theorem:
        If K ~ Binomial(n, p), P[clopper_pearson_lower(K, n) > p] <= significance for every n and p.
        Clopper & Pearson 1934, Biometrika 26, 404-413.

    Args:
        k: Number of successes, 0 to n.
        n: Number of trials.
        significance: In [0, 1).

    Returns:
        The bound, in [0, 1].

    Raises:
        ValueError: If a number is out of its range.
    """
    check_count(k, n, significance)
    if k == 0 or significance == 0:
        return 0.0
    return float(betaincinv(k, n - k + 1, significance))


def clopper_pearson(k: int, n: int, *, significance: float) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a proportion, with the significance split evenly between its ends."""
    return (
        clopper_pearson_lower(k, n, significance=significance / 2),
        clopper_pearson_upper(k, n, significance=significance / 2),
    )


def check_count(k: int, n: int, significance: float = 0.5) -> None:
    """Check that 0 <= k <= n and that the significance lies in [0, 1)."""
    if not 0 <= k <= n:
        raise ValueError(f"a count must lie between 0 and the number of outputs, got {k} of {n}")
    if not 0 <= significance < 1:
        raise ValueError(f"significance must lie in [0, 1), got {significance}")
