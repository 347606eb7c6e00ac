"""Mechanisms that are correct in real arithmetic, but leak through floating-point rounding or running time.

Mironov 2012, "On significance of the least significant bits for differential privacy".  The attack `float_bits`
detects the first two mechanisms.  An audit with `attacks="auto"`, the default, uses this attack only for mechanisms in
private environments or behind commands.  The third mechanism leaks only if the audit observes running times
(`observe_time`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.catalogue.promises import GaussianSum, Inputs, Pure
from dpaudit.numerics.arrays import Array
from dpaudit.values import Dataset

_ANSWER: Inputs = {"relation": "one_value", "size": 1}


@dataclass(frozen=True)
class LaplaceInverseCdf(Pure):
    """Wrong in floats: x + sign(u) b log(1 - 2 |u|), u uniform in [-1/2, 1/2), b = 1 / epsilon; no finite epsilon.

    Mironov 2012, section 3: the noise takes few floating-point values, so different x have different sets of reachable
    outputs.
    """

    epsilon: float = 1.0

    inputs: ClassVar[Inputs] = _ANSWER
    private: ClassVar[bool] = False
    leak: ClassVar[str] = "float_bits"

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        u = rng.random(n) - 0.5
        with np.errstate(divide="ignore"):
            noise: Array = np.sign(u) * np.log(1 - 2 * np.abs(u)) / self.epsilon
        return float(np.ravel(dataset)[0]) + noise


@dataclass(frozen=True)
class GaussianBoxMuller(GaussianSum):
    """Wrong in floats: x + sigma sqrt(-2 log u) cos(2 pi v); no finite mu, although mu = 1 / sigma is claimed.

    Jin, McMurtry, Rubinstein & Ohrimenko 2022, "Are we there yet?  Timing and floating-point attacks on differential
    privacy systems", section IV.
    """

    inputs: ClassVar[Inputs] = _ANSWER
    private: ClassVar[bool] = False
    leak: ClassVar[str] = "float_bits"

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Array:
        radius = np.sqrt(-2 * np.log(1 - rng.random(n)))
        noise: Array = self.sigma * radius * np.cos(2 * math.pi * rng.random(n))
        return float(np.ravel(dataset)[0]) + noise


@dataclass(frozen=True)
class GeometricByTrials(Pure):
    """Wrong if running times are observed: a whole number plus geometric noise, sampled by repeated coin tosses.

    The number is in 0..most, and the noise has scale most / epsilon.  The running time reveals the size of the noise,
    so time and output reveal the number.  Jin et al. 2022, section V.  Each call makes one run, because several runs in
    one call cannot be timed separately.
    """

    epsilon: float = 1.0
    most: int = 500

    inputs: ClassVar[Inputs] = {**_ANSWER, "bounds": (0, 500), "whole": True, "out_of_domain": False}
    private: ClassVar[bool] = False
    leak: ClassVar[str] = "time"

    def __call__(self, dataset: Dataset, rng: np.random.Generator) -> int:
        go_on = math.exp(-self.epsilon / self.most)
        while True:
            size, sign = 0, 1 if rng.random() < 0.5 else -1
            while rng.random() < go_on:
                size += 1
            if size or sign > 0:  # without this condition, zero would have twice its correct probability
                return int(np.ravel(dataset)[0]) + sign * size
