"""A module that takes long to import.  It keeps epsilon 1 if NOISE is 1."""

import time

import numpy as np

NOISE = 1.0  # noise as a share of what the claim needs
START = 3.0  # seconds
time.sleep(START)


def release(dataset: list[int], rng: np.random.Generator) -> float:
    return round(sum(dataset) + rng.laplace(scale=NOISE), 6)
