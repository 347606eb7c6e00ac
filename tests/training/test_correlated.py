"""DP-FTRL: correlated noise has the covariance of its factorisation, and audits tell whether its claim is right."""

import numpy as np
import pytest

from dpaudit import GaussianDP, Pair, audit
from dpaudit.training import views
from dpaudit.training.reference import CorrelatedTrainer, Model, Poisson, Records, Training
from dpaudit.training.reference.trainer import Run, keys_of

MODEL = Model((1, 2), bias=False, spare=1)
ROOT = [1.0, 1 / 2, 3 / 8, 5 / 16, 35 / 128]
STRATEGY = np.array([[ROOT[i - j] if i >= j else 0.0 for j in range(5)] for i in range(5)])


def trainer(noise_multiplier: float = 2.0) -> CorrelatedTrainer:
    return CorrelatedTrainer(model=MODEL, noise_multiplier=noise_multiplier, steps=5, strategy=STRATEGY)


def test_the_noise_is_the_inverse_of_the_strategy_times_independent_noise() -> None:
    """Fails by chance < 1 in 10**6: seven standard errors of a covariance of 5,000 trainings."""
    run = Run(trainer(), Records(), keys_of(np.random.default_rng(0), 5000))
    released = []
    for _ in range(5):
        run.step()
        released.append(run.released[:, 2])
    white = STRATEGY @ np.array(released) / 2.0
    assert np.abs(np.cov(white) - np.eye(5)).max() < 7 * np.sqrt(2 / 5000)


def test_the_claim_is_exact_for_a_gradient_that_never_changes() -> None:
    """Fails by chance < 1 in 10**6: the confidence; the false claim is refuted far earlier than after 400 trainings."""
    right = trainer(noise_multiplier=1.0)
    assert right.claim.mu() == pytest.approx(np.linalg.norm(STRATEGY @ np.ones(5)))
    pair = Pair({"diracs": []}, {"diracs": [0]}, "add_remove")
    release = Training(right, views.releases())
    for claim, refuted in ((right.claim, False), (GaussianDP(right.claim.mu() / 2), True)):
        result = audit(release, claim, pair, trials=400, confidence=1 - 1e-7, seed=1, attacks="whitened")
        assert result.violated == refuted


def test_impossible_strategies_are_refused() -> None:
    for strategy in (np.eye(4), np.ones((5, 5)), -np.eye(5)):
        with pytest.raises(ValueError, match="lower triangular"):
            CorrelatedTrainer(model=MODEL, noise_multiplier=1.0, steps=5, strategy=strategy)
    sampled = CorrelatedTrainer(model=MODEL, noise_multiplier=1.0, steps=5, strategy=STRATEGY, sampling=Poisson(0.5))
    with pytest.raises(ValueError, match="full batches"):
        _ = sampled.claim
