"""Step by step: a coin before each step of one training decides whether the canary joins the batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit import GaussianDP, training
from dpaudit.training import canaries, reference

from .test_designs import DATA, SURE, HalfNoise, trainer, warned


def test_step_by_step() -> None:
    """The right trainer is refuted by chance < 1 in 10**6; the wrong one has mu = 2 instead of 1 in each step."""
    for kind, violated in ((reference.Trainer, False), (HalfNoise, True)):
        step = reference.StepByStep(trainer(kind, noise_multiplier=1.0), DATA, canaries.dirac(1), seed=2)
        result = training.step_by_step(
            step, step.claim, steps=300, confidence=SURE if not violated else 0.95, attacks="logistic", seed=1
        )
        assert step.claim == GaussianDP(1.0)
        assert result.violated == violated
        assert warned(result, r"^300 steps" if not violated else r"^\d+ steps")


def test_the_claim_of_a_step_is_that_of_a_full_batch() -> None:
    """The coin decides, not the sampling: a step of a correct trainer would refute the claim of a sampled step."""
    algorithm = trainer(noise_multiplier=1.0, sampling=reference.Poisson(0.05))
    step = reference.StepByStep(algorithm, DATA, canaries.dirac(1))
    assert step.claim == GaussianDP(1.0)
    sampled = training.claim(noise_multiplier=1.0, sampling_rate=0.05, steps=1)
    tails = ("pure(epsilon=3.3)", "approximate(epsilon=3.4, delta=1e-9)")
    for stronger in (sampled, "gaussian(mu=0.9)", "gaussian(mu=0.999999)", "pure(epsilon=1)", *tails):
        with pytest.raises(
            ValueError, match=r"is stronger than gaussian\(mu=1\), which a correct step satisfies.*step.claim"
        ):
            training.step_by_step(step, stronger, steps=5)
    exact = f"approximate(epsilon=3, delta={GaussianDP(1.0).delta(3.0)!r})"
    for weaker in ("gaussian(mu=1)", "gaussian(mu=1.000000000000001)", exact):
        assert not training.step_by_step(step, weaker, steps=5, seed=1).violated


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "step must return one number, got None"),
        (np.zeros(1), r"step must return one number, got an array of shape \(1,\)"),
        ("1", "step must return one number, got '1'"),
    ],
)
def test_a_step_returns_a_number(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        training.step_by_step(lambda coin: given, "gaussian(mu=1)")
    with pytest.raises(TypeError, match="step must be a function from the coin"):
        training.step_by_step(given, "gaussian(mu=1)")


def test_a_canary_of_the_data_is_seen_along_its_gradient() -> None:
    """With negligible noise, a step with the canary differs by the norm of the canary's clipped gradient."""
    algorithm = trainer(noise_multiplier=1e-9, learning_rate=1e-9)
    canary = reference.Records([[3.0, 0.0]], [0])
    with_it, without = (reference.StepByStep(algorithm, DATA, canary, seed=2)(coin) for coin in (1, 0))
    assert with_it - without == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(ValueError, match="the canary must be one record, got 3"):
        reference.StepByStep(algorithm, DATA, DATA)


def test_steps_without_effect_are_named() -> None:
    with pytest.raises(ValueError, match="the score was 0 in each of the first 50 steps"):
        training.step_by_step(lambda coin: 0.0, "gaussian(mu=1)", seed=1)
    with pytest.raises(ValueError, match="steps must be a whole number >= 1"):
        training.step_by_step(lambda coin: 0.0, "gaussian(mu=1)", steps=0)
    bare = trainer(model=reference.Model((2, 2), bias=False))
    step = reference.StepByStep(bare, DATA, reference.Records([[0.0, 0.0]], [0]))
    assert "moves the sum of clipped gradients by 0" in step.doubts()[0]
    rng = np.random.default_rng(0)
    diverged = training.step_by_step(
        lambda coin: math.nan if rng.random() < 0.1 else rng.normal(), "gaussian(mu=1)", steps=30, seed=1
    )
    assert warned(diverged, r"the score was nan in \d of 30 steps: the model diverged")
    assert not diverged.detectable.claim
    with pytest.raises(ValueError, match="all of the first 50 scores are nan, so the model diverged: use a smaller"):
        training.step_by_step(lambda coin: math.nan, "gaussian(mu=1)", seed=1)
