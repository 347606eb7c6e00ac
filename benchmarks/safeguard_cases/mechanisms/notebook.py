"""Cells of a notebook.  Each mechanism keeps epsilon 1 if NOISE is 1."""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import numpy as np

NOISE = 1.0  # noise as a share of what the claim needs
weights = np.linspace(0, 1, 1000)
generator = np.random.default_rng()


def cell(dataset, rng):
    return float(weights[-1] * sum(dataset) + generator.laplace(scale=NOISE))


def made(weights, scale):
    return lambda dataset, rng: float(weights[-1] * sum(dataset) + rng.laplace(scale=scale))


closure = made(np.linspace(0, 1, 100_000), NOISE)


class Release:
    def __init__(self, scale):
        self.scale, self.history = scale, []

    def __call__(self, dataset, rng):
        self.history.append(sum(dataset) + rng.laplace(scale=self.scale))
        return self.history[-1]


release = Release(NOISE)
