"""A module that makes numpy raise exceptions, and warnings into errors.  It keeps epsilon 1 if NOISE is 1."""

import warnings

import numpy as np

np.seterr(all="raise")
warnings.simplefilter("error")
NOISE = 1.0  # noise as a share of what the claim needs


def strict(dataset: list[int], rng: np.random.Generator) -> float:
    return float(np.log(np.exp(sum(dataset))) + rng.laplace(scale=NOISE))
