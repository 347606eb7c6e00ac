"""What the tests of shared mutable state share: a short audit whose seed is fixed, so that nothing fails by chance."""

import time
from typing import Any

import numpy as np

from dpaudit import AuditResult, Pair, audit

FILE = __file__
CLAIM = "gaussian(mu=1)"
PAIR = Pair([0.0], [1.0])
Rng = np.random.Generator


def audited(mechanism: Any, pair: Pair = PAIR, **options: Any) -> AuditResult:
    chosen: dict[str, Any] = {"trials": 50, "seed": 3, "attacks": ["logistic", "median_clipped"], "confirm": "never"}
    return audit(mechanism, CLAIM, pair, **(chosen | options))


def fresh(dataset: list[float], rng: Rng) -> Any:
    """A mechanism that is exactly gaussian(mu=1)."""
    output = rng.normal(size=2)
    output[0] += dataset[0]
    return output


def changes_its_dataset(dataset: list[float], rng: Rng) -> float:
    """A mechanism that is loaded by `FILE`, whose name worker processes understand."""
    dataset[0] += float(rng.normal())
    time.sleep(0.002)  # slow enough for worker processes to be used
    return dataset[0]
