"""A module that seeds numpy, and draws its noise from the global state.  It keeps epsilon 1 if NOISE is 1."""

import numpy as np

np.random.seed(0)  # noqa: NPY002
NOISE = 1.0  # noise as a share of what the claim needs


def legacy(dataset: list[int], rng: np.random.Generator) -> float:
    return float(sum(dataset) + np.random.laplace(scale=NOISE))  # noqa: NPY002
