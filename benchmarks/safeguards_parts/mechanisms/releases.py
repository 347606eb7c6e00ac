"""Common releases, of which some make many runs in one call.  Each keeps its claim if NOISE is 1."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import batched

NOISE = 1.0  # noise as a share of what the claim needs
Rng = np.random.Generator


def noisy_sum(dataset: list[float], rng: Rng) -> float:
    return round(sum(dataset) + rng.laplace(scale=NOISE), 6)


def clamped_sum(dataset: list[float], rng: Rng) -> float:
    return float(np.clip(sum(dataset) + rng.laplace(scale=NOISE), -1, 2))


def clipped_mean(dataset: list[float], rng: Rng) -> float:
    return float(np.clip(dataset, 0, 1).mean() + rng.laplace(scale=NOISE / len(dataset)))


def gaussian_sum(dataset: list[float], rng: Rng) -> float:
    return float(sum(dataset) + rng.normal(scale=NOISE))


def geometric_count(dataset: list[int], rng: Rng) -> int:
    p = 1 - math.exp(-1 / NOISE)
    return int(sum(dataset) + rng.geometric(p) - rng.geometric(p))


def histogram(dataset: list[int], rng: Rng) -> Any:
    return np.bincount(dataset, minlength=8) + rng.laplace(scale=NOISE, size=8)


def median(dataset: list[int], rng: Rng) -> int:
    candidates, values = np.arange(8), np.asarray(dataset)
    off = np.abs([2 * (values < c).sum() + (values == c).sum() - len(values) for c in candidates])
    weights = np.exp(-off / (2 * NOISE))
    return int(rng.choice(candidates, p=weights / weights.sum()))


def noisy_max(dataset: list[int], rng: Rng) -> int:
    return int(np.argmax(np.asarray(dataset) + rng.exponential(scale=NOISE, size=len(dataset))))


def sparse_vector(dataset: list[int], rng: Rng) -> int:
    threshold = 1 + rng.laplace(scale=2 * NOISE)
    return next((i for i, x in enumerate(dataset) if x + rng.laplace(scale=4 * NOISE) >= threshold), len(dataset))


def responses(dataset: list[int], rng: Rng) -> Any:
    """Sixty-one responses of epsilon 1, each of which uses a record with probability 0.1."""
    true = np.where(rng.random(61) < 0.1, dataset[0], 0)
    return np.where(rng.random(61) < 1 / (1 + math.exp(1 / NOISE)), 1 - true, true)


def _shifted(dataset: list[float], rng: Rng, *, shift: float, scale: float) -> float:
    return float(sum(dataset) + shift + rng.laplace(scale=scale))


partial = functools.partial(_shifted, shift=0.25, scale=NOISE)


@dataclass(frozen=True)
class Sum:
    scale: float

    def __call__(self, dataset: list[float], rng: Rng) -> float:
        return float(sum(dataset) + rng.laplace(scale=self.scale))


data_class = Sum(NOISE)


@batched
def many_sums(dataset: list[float], n: int, rng: Rng) -> Any:
    return sum(dataset) + rng.laplace(scale=NOISE, size=n)


@batched
def many_histograms(dataset: list[int], n: int, rng: Rng) -> Any:
    return np.bincount(dataset, minlength=8) + rng.laplace(scale=NOISE, size=(n, 8))


class Sampler:
    def sample(self, dataset: Any, n: int, rng: Rng) -> Any:
        return float(dataset.sum()) + rng.laplace(scale=NOISE, size=n)


sampler = Sampler()
