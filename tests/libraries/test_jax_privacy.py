"""Factorisations of jax_privacy are audited with the noise and the sensitivity that the library computes."""

from typing import Any

import numpy as np
import pytest

from dpaudit.libraries import audit_subject, jax_privacy
from dpaudit.libraries.subject import UnknownSubject

STEPS = 64


def test_impossible_numbers_are_refused() -> None:
    for numbers in ({"steps": 0, "stddev": 1.0}, {"steps": 4, "stddev": -1.0}):
        with pytest.raises(UnknownSubject, match="must be > 0"):
            jax_privacy.subject(np.ones(4), **numbers)  # type: ignore[arg-type]
    with pytest.raises(UnknownSubject, match="sensitivity"):
        jax_privacy.subject(np.ones(4), steps=4, stddev=1.0, sensitivity=np.inf)


def strategy(name: str) -> Any:
    jax = pytest.importorskip("jax")
    kinds = ("banded", "buffered_toeplitz", "toeplitz")
    banded, buffered_toeplitz, toeplitz = (
        pytest.importorskip(f"jax_privacy.matrix_factorization.{one}") for one in kinds
    )
    with jax.enable_x64(True):
        match name:
            case "BLT":
                return buffered_toeplitz.BufferedToeplitz.from_rational_approx_to_sqrt_x(num_buffers=3)
            case "BandMF":
                return banded.ColumnNormalizedBanded.default(STEPS, 8)
            case "square root":
                return np.asarray(toeplitz.optimal_max_error_strategy_coefs(STEPS))
        return np.asarray(toeplitz.materialize_lower_triangular(toeplitz.optimal_max_error_strategy_coefs(STEPS)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["BLT", "BandMF", "square root", "matrix"])
def test_the_stated_sensitivity_is_right_and_a_smaller_one_is_refuted(name: str) -> None:
    """Fails by chance < 1 in 10**6: the confidence, and six standard errors of variances of 4,000 runs."""
    right = jax_privacy.subject(strategy(name), steps=STEPS, stddev=0.7)
    mu, factor = right.claim.mu(), right.mechanism.factor
    columns = np.linalg.norm(np.linalg.inv(factor), axis=0)
    assert mu == pytest.approx(columns.max() / 0.7, rel=1e-3)
    white = np.linalg.solve(factor, right.mechanism.sample([0.0] * STEPS, 4000, np.random.default_rng(0)).T)
    assert white.std() == pytest.approx(0.7, rel=6 / np.sqrt(2 * white.size))
    assert np.abs(np.cov(white) / 0.49 - np.eye(STEPS)).max() < 7 * np.sqrt(2 / 4000)
    settings: Any = {"confidence": 1 - 1e-7, "seed": 1, "confirm": "never"}
    assert not audit_subject(right, trials=1000, **settings).violated
    wrong = jax_privacy.subject(strategy(name), steps=STEPS, stddev=0.7, sensitivity=0.6 * 0.7 * mu)
    assert audit_subject(wrong, trials=1000, **settings).violated
