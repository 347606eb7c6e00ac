"""Counts with the interface of PyDP whose privacy loss equals the stated epsilon.

`installed` replaces PyDP in this process, so that a catalogue with `library: pydp` audits these classes.
"""

from __future__ import annotations

import math
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np


class GeometricCount:
    """The number of records with two-sided geometric noise: exactly epsilon-DP."""

    delta = 0.0

    def __init__(self, epsilon: float, dtype: str = "int") -> None:
        self.epsilon = epsilon
        self._rng = np.random.default_rng()

    def quick_result(self, data: list[float]) -> float:
        p = 1 - math.exp(-self.epsilon)
        return len(data) + float(self._rng.geometric(p) - self._rng.geometric(p))


class LaplaceCount(GeometricCount):
    """The number of records with Laplace noise, rounded to 2^-20 so that outputs lie on one grid."""

    def quick_result(self, data: list[float]) -> float:
        return round((len(data) + self._rng.laplace(0.0, 1 / self.epsilon)) * 2**20) / 2**20


class RandomisedParity(GeometricCount):
    """The parity of the number of records, by randomised response: exactly epsilon-DP."""

    def quick_result(self, data: list[float]) -> float:
        truth = self._rng.random() < 1 / (1 + math.exp(-self.epsilon))
        return float((len(data) + (not truth)) % 2)


def install() -> None:
    """Replace PyDP by the simulated library in this process."""
    for name in ("pydp", "pydp.algorithms", "pydp.algorithms.laplacian"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        for kind in (GeometricCount, LaplaceCount, RandomisedParity):
            setattr(module, kind.__name__, kind)
        sys.modules[name] = module
