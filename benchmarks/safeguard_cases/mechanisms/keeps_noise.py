"""Mechanisms that keep noise.  Without what they keep, each keeps epsilon 1."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

Rng = np.random.Generator
own = np.random.default_rng()
fixed = np.random.default_rng(0)
NOISE = 1.0
AT_IMPORT = float(own.laplace())


class Kept:
    """Keeps `size` noisy answers for each dataset, and uses them in a share of the runs."""

    def __init__(self, size: int = 1, jitter: float = 0.0, share: float = 1.0) -> None:
        self.size, self.jitter, self.share = size, jitter, share
        self.kept: dict[tuple[int, int], float] = {}

    def __call__(self, dataset: list[int], rng: Rng) -> float:
        noisy = sum(dataset) + float(own.laplace())
        if rng.random() < self.share:
            noisy = self.kept.setdefault((sum(dataset), int(rng.integers(self.size))), noisy)
        return round(noisy + self.jitter * float(rng.normal()), 9)


dictionary = Kept()
jitter = Kept(jitter=1e-6)
wide_jitter = Kept(jitter=0.1)
mostly = Kept(share=0.8)
three_answers = Kept(3)
thousand_answers = Kept(1000)


@lru_cache
def _noisy(value: int) -> float:
    return round(value + float(own.laplace()), 6)


def cached(dataset: list[int], rng: Rng) -> float:
    return _noisy(sum(dataset))


def _looked_up(kept: dict[int, float], dataset: list[int], rng: Rng) -> float:
    return kept.setdefault(sum(dataset), sum(dataset) + float(own.laplace()))


looked_up = partial(_looked_up, {})


def drawn_at_import(dataset: list[int], rng: Rng) -> float:
    return sum(dataset) + AT_IMPORT


def drawn_at_import_jitter(dataset: list[int], rng: Rng) -> float:
    return sum(dataset) + AT_IMPORT + 0.01 * float(rng.normal())


SMALL, LARGE = own.laplace(size=3).round(6), own.laplace(size=1000).round(6)


def small_pool(dataset: list[int], rng: Rng) -> float:
    return float(sum(dataset) + SMALL[rng.integers(3)])


def large_pool(dataset: list[int], rng: Rng) -> float:
    return float(sum(dataset) + LARGE[rng.integers(1000)])


def _stored(dataset: list[int]) -> float:
    place = Path(f"kept {sum(dataset)}")
    if not place.exists():
        place.write_text(repr(sum(dataset) + float(own.laplace())))
    return float(place.read_text())


def on_disk(dataset: list[int], rng: Rng) -> float:
    return _stored(dataset)


def on_disk_jitter(dataset: list[int], rng: Rng) -> float:
    return _stored(dataset) + 1e-3 * float(rng.normal())


def fixed_seed(dataset: list[int], rng: Rng) -> float:
    return sum(dataset) + float(np.random.default_rng(42).laplace())


def seeded_at_import(dataset: list[int], rng: Rng) -> float:
    return sum(dataset) + float(fixed.laplace())


class Drifting:
    """The noise has scale 1, and its centre moves from run to run."""

    def __init__(self, step: float, random: bool) -> None:
        self.step, self.random, self.centre = step, random, 0.0

    def __call__(self, dataset: list[int], rng: Rng) -> Any:
        self.centre += self.step * float(rng.normal() if self.random else 1.0)
        return sum(dataset) + self.centre + float(rng.laplace())


random_walk = Drifting(0.1, random=True)
steady_drift = Drifting(0.01, random=False)
