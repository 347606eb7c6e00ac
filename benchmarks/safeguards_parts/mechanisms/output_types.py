"""Outputs of many types.  Each mechanism keeps epsilon 1 if NOISE is 1, and not if it is smaller."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

NOISE = 1.0  # noise as a share of what the claim needs
Rng = np.random.Generator


def noisy_count(dataset: list[int], rng: Rng) -> int:
    p = 1 - math.exp(-1 / NOISE)
    return int(sum(dataset) + rng.geometric(p) - rng.geometric(p))


def two_values(dataset: list[int], rng: Rng) -> bool:
    return bool(dataset[0] ^ (rng.random() < 1 / (1 + math.exp(1 / NOISE))))


def three_values(dataset: list[int], rng: Rng) -> str:
    names, e = ("low", "middle", "high"), math.exp(1 / NOISE)
    return names[dataset[0]] if rng.random() < (e - 1) / (e + 2) else str(rng.choice(names))


def decimal(dataset: list[int], rng: Rng) -> Decimal:
    return Decimal(noisy_count(dataset, rng)) / 8


def fraction(dataset: list[int], rng: Rng) -> Fraction:
    return Fraction(noisy_count(dataset, rng), 7)


def date_or_missing(dataset: list[int], rng: Rng) -> np.datetime64:
    days = noisy_count(dataset, rng)
    return np.datetime64("NaT") if days < -2 else np.datetime64("2024-01-01") + np.timedelta64(days, "D")


def masked(dataset: list[int], rng: Rng) -> Any:
    return np.ma.masked_less([noisy_count(dataset, rng), noisy_count([0], rng)], 0)


def matrix(dataset: list[int], rng: Rng) -> Any:
    return np.matrix([[sum(dataset) + rng.laplace(scale=NOISE), 0.0], [0.0, rng.normal()]])


def series(dataset: list[int], rng: Rng) -> Any:
    return pd.Series({"a": noisy_count(dataset, rng), "b": noisy_count([3], rng)})


def frame(dataset: list[int], rng: Rng) -> Any:
    counts = [noisy_count([3], rng), noisy_count(dataset, rng), noisy_count([0], rng)]
    return pd.DataFrame({"group": ["x", "y", "z"], "count": counts})


def named_parts(dataset: list[int], rng: Rng) -> dict[str, Any]:
    return {"rows": noisy_count(dataset, rng), "method": "geometric", "shape": (1, 2)}


@dataclass
class Report:
    count: int
    unit: str = "people"


def report(dataset: list[int], rng: Rng) -> Report:
    return Report(noisy_count(dataset, rng))


def as_bytes(dataset: list[int], rng: Rng) -> bytes:
    return struct.pack(">i", noisy_count(dataset, rng))


def long_text(dataset: list[int], rng: Rng) -> str:
    return f"There are {noisy_count(dataset, rng)} people.\n" + "This line is public.\n" * 200
