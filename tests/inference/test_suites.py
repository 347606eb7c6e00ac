"""The e-BH procedure: comparison with a plain version, and its false discovery rate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.inference.e_bh import e_bh


def plain(e_values: list[float], rate: float) -> list[int]:
    """Find the largest k such that k e-values are at least m / (k rate); return their positions."""
    m = len(e_values)
    for k in range(m, 0, -1):
        if sum(e >= m / (k * rate) for e in e_values) >= k:
            cutoff = sorted(e_values, reverse=True)[k - 1]
            return [i for i, e in enumerate(e_values) if e >= cutoff][:k]
    return []


def test_agrees_with_a_plain_version() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        e_values = np.exp(rng.normal(2, 3, rng.integers(1, 12))).tolist()
        assert e_bh(e_values, false_discovery_rate=0.1) == plain(e_values, 0.1)


def test_only_large_e_values_are_rejected() -> None:
    assert e_bh([1e6, 0.5, math.inf, 3.0], false_discovery_rate=0.05) == [0, 2]
    assert e_bh([19.9], false_discovery_rate=0.05) == []
    assert e_bh([20.0], false_discovery_rate=0.05) == [0]
    assert e_bh([], false_discovery_rate=0.05) == []


def test_the_false_discovery_rate_is_at_most_the_stated_one() -> None:
    """Simulates 10,000 suites in which ten true claims rarely have large e-values.  Fails by chance < 1 in 10**6."""
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(10_000):
        true = np.where(rng.random(10) < 0.01, 100.0, 0.0)
        named = e_bh([*true.tolist(), 1e9, 1e9], false_discovery_rate=0.2)
        shares.append(np.mean([i < 10 for i in named]))
    assert np.mean(shares) <= 0.2 + 5 * 0.2 / math.sqrt(10_000)


@pytest.mark.parametrize(("e_values", "rate"), [([math.nan], 0.1), ([-1.0], 0.1), ([1.0], 0.0), ([1.0], 1.0)])
def test_impossible_input_is_refused(e_values: list[float], rate: float) -> None:
    with pytest.raises(ValueError, match=r"e-values must be|false_discovery_rate must lie"):
        e_bh(e_values, false_discovery_rate=rate)
