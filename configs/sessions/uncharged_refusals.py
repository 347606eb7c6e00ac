"""Sessions of the catalogue: refusals tell that a noisy count is small, and are free, or charged."""

from dpaudit.catalogue.sessions import ChargedRefusals, UnchargedRefusals


def free(dataset, rng):
    return UnchargedRefusals(dataset, rng, budget=1.0)


def charged(dataset, rng):
    return ChargedRefusals(dataset, rng, budget=1.0)
