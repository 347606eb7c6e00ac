"""Mechanisms with their own generators and state, none of which keeps noise.  Each keeps epsilon 1 if NOISE is 1."""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Iterator

import numpy as np

NOISE = 1.0  # noise as a share of what the claim needs
Rng = np.random.Generator
fixed_rng = np.random.default_rng(0)
own_rng = np.random.default_rng()
system = random.SystemRandom()


def seeded_module_generator(dataset: list[int], rng: Rng) -> float:
    return round(sum(dataset) + fixed_rng.laplace(scale=NOISE), 6)


def module_generator(dataset: list[int], rng: Rng) -> float:
    return round(sum(dataset) + own_rng.laplace(scale=NOISE), 6)


def system_noise(dataset: list[int], rng: Rng) -> float:
    difference = system.expovariate(1 / NOISE) - system.expovariate(1 / NOISE)
    return round(sum(dataset) + difference, 6)


def secret_bit(dataset: list[int], rng: Rng) -> int:
    return dataset[0] ^ (secrets.randbelow(10**9) < 10**9 / (1 + math.exp(1 / NOISE)))


class Release:
    def __init__(self) -> None:
        self.generator = np.random.default_rng()

    def __call__(self, dataset: list[int], rng: Rng) -> float:
        return float(sum(dataset) + self.generator.laplace(scale=NOISE))


own_generator = Release()


class Recorder:
    def __init__(self) -> None:
        self.calls, self.history = 0, list[float]()

    def __call__(self, dataset: list[int], rng: Rng) -> float:
        self.calls += 1
        self.history.append(float(sum(dataset) + rng.laplace(scale=NOISE)))
        return self.history[-1]


recorder = Recorder()


class Buffered:
    """Draws its noise in advance, and uses each number once."""

    def __init__(self) -> None:
        self.left: list[float] = []

    def __call__(self, dataset: list[int], rng: Rng) -> float:
        if not self.left:
            self.left = own_rng.laplace(scale=NOISE, size=100).tolist()
        return sum(dataset) + self.left.pop()


buffered = Buffered()


class WarmStart:
    """Finds the mean by Newton's method, which starts at the result of the last call and always converges."""

    def __init__(self) -> None:
        self.start = 0.0

    def __call__(self, dataset: list[int], rng: Rng) -> float:
        for _ in range(3):
            self.start -= sum(self.start - x for x in dataset) / len(dataset)
        return round(self.start, 9) + float(rng.laplace(scale=NOISE / len(dataset)))


warm_start = WarmStart()


def _noise() -> Iterator[float]:
    while True:
        yield float(own_rng.laplace(scale=NOISE))


STREAM = _noise()


def generator_function(dataset: list[int], rng: Rng) -> float:
    return sum(dataset) + next(STREAM)
