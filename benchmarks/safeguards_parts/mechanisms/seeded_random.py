"""A module that seeds Python's random numbers, and draws its noise from them.  It keeps epsilon 1 if NOISE is 1."""

import random

import numpy as np

random.seed(0)
NOISE = 1.0  # noise as a share of what the claim needs


def seeded(dataset: list[int], rng: np.random.Generator) -> float:
    return sum(dataset) + random.expovariate(1 / NOISE) - random.expovariate(1 / NOISE)
