"""Audits of mechanisms that may cache their outputs, and checks of the warnings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import AuditResult, Pair, Verdict, audit, batched

PAIR = Pair([0], [1])
CLAIM = "pure(epsilon=1)"
CACHE = "the mechanism has no noise, a fixed seed, or a cache"


def audited(mechanism: Any, pairs: Any = PAIR, **settings: Any) -> AuditResult:
    chosen: dict[str, Any] = {"trials": 100, "seed": 0, "confidence": 0.95, "attacks": "logistic"} | settings
    return audit(mechanism, CLAIM, pairs, **chosen)


def is_in_doubt(result: AuditResult, words: str = "") -> None:
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid
    assert (result.p_value, result.mu_lower) == (1.0, 0.0)
    assert result.e_value <= 1
    assert result.detectable.claim == ""
    text = " ".join(result.warnings)
    assert CACHE in text, text
    assert words in text, text


class Keeps:
    """A mechanism that caches its outputs in an object."""

    def __init__(self) -> None:
        self.kept: dict[int, float] = {}

    def __call__(self, dataset: list[int], rng: np.random.Generator) -> float:
        return self.kept.setdefault(dataset[0], dataset[0] + float(rng.laplace()))


def a_fixed_seed(dataset: list[int], rng: np.random.Generator) -> float:
    return dataset[0] + float(np.random.default_rng(42).laplace())


@batched
def no_noise(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
    return np.full(n, float(dataset[0]))


@dataclass(frozen=True)
class Frozen:
    """A mechanism that cannot keep state."""

    scale: float

    def __call__(self, dataset: list[int], rng: np.random.Generator) -> tuple[float, ...]:
        return (dataset[0] * self.scale, self.scale)
