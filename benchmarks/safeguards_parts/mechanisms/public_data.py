"""Mechanisms that read public data, and keep it.  Each keeps epsilon 1 if NOISE is 1."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np

NOISE = 1.0  # noise as a share of what the claim needs
Rng = np.random.Generator
os.environ.setdefault("PUBLIC_SHIFT", "0.25")
FILE = (Path(__file__).parent / "public.txt").open()


@lru_cache
def _shift(name: str) -> float:
    return float(Path(name).read_text())


def cached(dataset: list[int], rng: Rng) -> float:
    return round(_shift("public.txt") + sum(dataset) + rng.laplace(scale=NOISE), 6)


def relative_file(dataset: list[int], rng: Rng) -> float:
    return float(Path("public.txt").read_text()) + sum(dataset) + float(rng.laplace(scale=NOISE))


def open_file(dataset: list[int], rng: Rng) -> float:
    FILE.seek(0)
    return float(FILE.read()) + sum(dataset) + float(rng.laplace(scale=NOISE))


def environment(dataset: list[int], rng: Rng) -> float:
    os.environ["LAST_RELEASE"] = "now"
    return float(os.environ["PUBLIC_SHIFT"]) + sum(dataset) + float(rng.laplace(scale=NOISE))
