"""Makes subjects from factorisations of jax_privacy: gradients plus correlated noise, as DP-FTRL trains with them.

The noise of step t is row t of C^-1 times independent noise of a standard deviation, where C is the strategy.  A record
that changes the gradient of one step by at most 1 changes C x by at most the largest column norm of C, the sensitivity,
so all noisy gradients together are mu-GDP with mu = sensitivity / standard deviation (Denisov, McMahan, Rush, Smith &
Thakurta 2022, arXiv 2202.08312, and Dong, Roth & Su 2022, Thm 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, metadata
from typing import Any

import numpy as np

from dpaudit.claims import GaussianDP
from dpaudit.libraries.subject import Subject, UnknownSubject
from dpaudit.numerics import Array
from dpaudit.pairs.pair import Pair
from dpaudit.values import Dataset, RawOutputs


def subject(
    strategy: Any,
    *,
    steps: int,
    stddev: float,
    sensitivity: float | None = None,
    changed: Sequence[int] | None = None,
    name: str = "",
) -> Subject:
    """Add the noise of a factorisation to the gradients of a training in which each record takes part in one step.

    Args:
        strategy: A `BufferedToeplitz` (BLT), a `ColumnNormalizedBanded` (BandMF), the coefficients (k,) of a Toeplitz
            matrix, or a lower triangular matrix (steps, steps).
        steps: The number of steps.
        stddev: The standard deviation of the independent noise.
        sensitivity: The stated sensitivity; None for what the library computes.
        changed: The steps of which one gradient changes, from 0; None for the step where C changes most.
        name: The name of the audit; by default, the kind of the strategy.

    Raises:
        UnknownSubject: If the strategy is of another kind, or a number is not positive.
        ImportError: If jax_privacy is not installed.
    """
    for parameter, value in (("steps", steps), ("stddev", stddev), ("sensitivity", sensitivity)):
        if value is not None and not 0 < value < math.inf:
            raise UnknownSubject(f"{parameter} must be > 0 and finite, got {value!r}")
    with import_module("jax").enable_x64(True):
        noising, stated = _read(strategy, steps)
        inverse = np.asarray(noising.materialize(steps) if hasattr(noising, "materialize") else noising, np.float64)
    worst = int(np.argmax(np.linalg.norm(np.linalg.inv(inverse), axis=0)))
    called = f"{type(strategy).__name__}, {steps} steps"
    unchanged = [0.0] * steps
    return Subject(
        mechanism=NoisyGradients(noising, inverse, float(stddev)),
        claim=GaussianDP((stated if sensitivity is None else sensitivity) / stddev),
        pairs=[
            Pair(unchanged, [float(step == t) for t in range(steps)], "replace_one", f"step {step} changes")
            for step in ([worst] if changed is None else changed)
        ],
        name=name or called,
        source=f"jax_privacy {metadata.version('jax_privacy')}: the sensitivity of {called}",
    )


def _read(strategy: Any, steps: int) -> tuple[Any, float]:
    """Return the inverse of a strategy and its sensitivity, as the library computes both."""
    library = "jax_privacy.matrix_factorization."
    match type(strategy).__name__, np.ndim(strategy) if hasattr(strategy, "__array__") else 0:
        case "BufferedToeplitz", _:
            squared = import_module(library + "buffered_toeplitz").sensitivity_squared(strategy, steps)
            return strategy.inverse_as_streaming_matrix(), math.sqrt(squared)
        case "ColumnNormalizedBanded", _:
            minsep = import_module(library + "banded").minsep_sensitivity_squared
            squared = minsep(strategy, min_sep=steps, max_participations=1, n=steps)
            return strategy.inverse_as_streaming_matrix(), math.sqrt(squared)
        case _, 1:
            toeplitz = import_module(library + "toeplitz")
            return toeplitz.inverse_as_streaming_matrix(strategy), math.sqrt(
                toeplitz.sensitivity_squared(strategy, steps)
            )
        case _, 2 if np.shape(strategy) == (steps, steps):
            column = import_module(library + "sensitivity").single_participation_sensitivity(strategy)
            return np.linalg.inv(np.asarray(strategy, dtype=np.float64)), float(column)
    raise UnknownSubject(
        f"{type(strategy).__name__} is no strategy for {steps} steps; known are BufferedToeplitz, "
        "ColumnNormalizedBanded, coefficients (k,) of a Toeplitz matrix, and a lower triangular matrix (steps, steps)"
    )


@dataclass(frozen=True, eq=False)
class NoisyGradients:
    """A mechanism that adds the noise of `matrix_factorization_privatizer` to one gradient for each step."""

    noising: Any  # C^-1, as the library takes it
    factor: Array  # (steps, steps), C^-1: a hint for the attack `whitened`
    stddev: float

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        jax = import_module("jax")
        size = 1 << (n - 1).bit_length()  # few sizes, because each is compiled anew
        with jax.enable_x64(True):
            gradients = jax.numpy.broadcast_to(jax.numpy.asarray(dataset, dtype=float)[:, None], (len(dataset), size))
            noisy = _training(self)(jax.random.key(int(rng.integers(2**31))), gradients)
        return np.asarray(noisy, dtype=np.float64).T[:n]


@lru_cache(maxsize=4)
def _training(mechanism: NoisyGradients) -> Any:
    """Return a compiled function that privatizes gradients (steps, n) of n runs, the n parameters of one model."""
    jax, noise_addition = import_module("jax"), import_module("jax_privacy.noise_addition")

    def train(key: Any, gradients: Any) -> Any:
        privatizer = noise_addition.matrix_factorization_privatizer(
            mechanism.noising, stddev=mechanism.stddev, prng_key=key
        )

        def step(state: Any, gradient: Any) -> tuple[Any, Any]:
            noisy, state = privatizer.update(gradient, state)
            return state, noisy

        return jax.lax.scan(step, privatizer.init(gradients[0]), gradients)[1]

    return jax.jit(train)
