"""Mechanisms that print, warn, and clean up at exit.  Each keeps epsilon 1 if NOISE is 1."""

import atexit
import sys
import warnings
from pathlib import Path

import numpy as np

NOISE = 1.0  # noise as a share of what the claim needs
Rng = np.random.Generator


@atexit.register
def goodbye() -> None:
    print("The last release was made.")
    Path("done.txt").write_text("done")


def prints(dataset: list[int], rng: Rng) -> float:
    print("A release.")
    return sum(dataset) + float(rng.laplace(scale=NOISE))


def megabytes_of_stderr(dataset: list[int], rng: Rng) -> float:
    print("A release. " * 100, file=sys.stderr)
    return round(sum(dataset) + rng.laplace(scale=NOISE), 6)


def warns(dataset: list[int], rng: Rng) -> float:
    warnings.warn("This release costs privacy.", stacklevel=1)
    return sum(dataset) + float(rng.laplace(scale=NOISE))
