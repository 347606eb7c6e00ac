"""Common releases, of which some make many runs in one call, and outputs of many types.

Each keeps its claim if NOISE is 1, and not if it is smaller.
"""

from __future__ import annotations

import functools
import math
import struct
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

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


# --- Outputs of many types


def two_values(dataset: list[int], rng: Rng) -> bool:
    return bool(dataset[0] ^ (rng.random() < 1 / (1 + math.exp(1 / NOISE))))


def three_values(dataset: list[int], rng: Rng) -> str:
    names, e = ("low", "middle", "high"), math.exp(1 / NOISE)
    return names[dataset[0]] if rng.random() < (e - 1) / (e + 2) else str(rng.choice(names))


def decimal(dataset: list[int], rng: Rng) -> Decimal:
    return Decimal(geometric_count(dataset, rng)) / 8


def fraction(dataset: list[int], rng: Rng) -> Fraction:
    return Fraction(geometric_count(dataset, rng), 7)


def date_or_missing(dataset: list[int], rng: Rng) -> np.datetime64:
    days = geometric_count(dataset, rng)
    return np.datetime64("NaT") if days < -2 else np.datetime64("2024-01-01") + np.timedelta64(days, "D")


def masked(dataset: list[int], rng: Rng) -> Any:
    return np.ma.masked_less([geometric_count(dataset, rng), geometric_count([0], rng)], 0)


def matrix(dataset: list[int], rng: Rng) -> Any:
    return np.matrix([[sum(dataset) + rng.laplace(scale=NOISE), 0.0], [0.0, rng.normal()]])


def series(dataset: list[int], rng: Rng) -> Any:
    return pd.Series({"a": geometric_count(dataset, rng), "b": geometric_count([3], rng)})


def frame(dataset: list[int], rng: Rng) -> Any:
    counts = [geometric_count([3], rng), geometric_count(dataset, rng), geometric_count([0], rng)]
    return pd.DataFrame({"group": ["x", "y", "z"], "count": counts})


def named_parts(dataset: list[int], rng: Rng) -> dict[str, Any]:
    return {"rows": geometric_count(dataset, rng), "method": "geometric", "shape": (1, 2)}


@dataclass
class Report:
    count: int
    unit: str = "people"


def report(dataset: list[int], rng: Rng) -> Report:
    return Report(geometric_count(dataset, rng))


def as_bytes(dataset: list[int], rng: Rng) -> bytes:
    return struct.pack(">i", geometric_count(dataset, rng))


def long_text(dataset: list[int], rng: Rng) -> str:
    return f"There are {geometric_count(dataset, rng)} people.\n" + "This line is public.\n" * 200
