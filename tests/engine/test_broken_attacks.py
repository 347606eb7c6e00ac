"""A user's attacks: one that only ranks outputs is calibrated, and one that fails is dropped and named."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from dpaudit import GaussianDP, Pair, Verdict, audit
from dpaudit.catalogue import Gaussian
from dpaudit.learning import Learner
from dpaudit.learning.safe_scoring import pointwise

PAIR = Pair([0], [1], relation="replace_one")


@dataclasses.dataclass
class Ranking:
    """A user's attack that only ranks outputs, on an arbitrary scale."""

    name: str = "ranking"

    def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
        return lambda outputs: np.exp(3 * outputs)


class Broken:
    name = "broken"

    def __init__(self, how: str) -> None:
        self.how = how
        self.calibrated = how == "company"

    def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
        if self.how == "raises in fit":
            raise RuntimeError("no idea")
        if self.how == "raises later" and len(outputs0) > 50:
            return lambda outputs: 1 / 0
        if self.how == "nan":
            return lambda outputs: np.full(len(outputs), np.nan)
        if self.how == "company":
            return lambda outputs: outputs - outputs.mean()
        return lambda outputs: np.zeros((len(outputs), 2)) if self.how == "shape" else np.zeros(len(outputs))


def test_an_attack_that_only_ranks_is_calibrated() -> None:
    """Fails by chance < 1 in 10**6."""
    result = audit(Gaussian(0.5), GaussianDP(1.0), PAIR, trials=3000, attacks=Ranking(), seed=0, confidence=0.95)
    assert result.violated
    assert [row.name for row in result.attacks] == ["ranking"]
    assert result.attacks[0].log_loss < math.log(2)


@pytest.mark.parametrize("how", ["raises in fit", "raises later", "nan", "shape", "company"])
def test_a_broken_attack_is_dropped_and_named(how: str) -> None:
    alone = audit(Gaussian(0.5), GaussianDP(1.0), PAIR, trials=500, attacks="logistic", seed=0, confidence=0.95)
    result = audit(
        Gaussian(0.5), GaussianDP(1.0), PAIR, trials=500, attacks=["logistic", Broken(how)], seed=0, confidence=0.95
    )
    assert result.violated
    assert alone.violated
    if how != "raises later":
        assert any("attack broken was dropped" in warning for warning in result.warnings)


def test_an_audit_whose_every_attack_is_broken_finds_nothing() -> None:
    result = audit(Gaussian(0.5), GaussianDP(1.0), PAIR, trials=100, attacks=Broken("nan"), seed=0, confidence=0.95)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.e_value == pytest.approx(1.0)


class FailsOnFew:
    """After its first large batch, it raises an exception on small batches."""

    def __init__(self) -> None:
        self.large = False

    def __call__(self, x: Any) -> Any:
        self.large = self.large or len(x) > 200
        if self.large and len(x) < 200:
            raise ArithmeticError("too few outputs")
        return x


def test_failures_on_few_outputs_only_are_found_after_the_fit_and_among_counted_outputs() -> None:
    """The seed is fixed."""
    rng = np.random.default_rng(0)
    outputs0, outputs1 = rng.normal(size=(2, 1000))
    score = FailsOnFew()
    assert not pointwise(score, outputs0, outputs1, rng, thorough=True)

    class Few(Ranking):
        def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
            return score

    score.large = False  # the failures begin after the fit
    learner = Learner([Few()], seed=0, pair=0)
    learner.learn(*learner.read(outputs0[:100], outputs1[:100]))
    learner.score_counted(*learner.read(outputs0, outputs1))
    assert "attack ranking gave the same output different scores in different blocks" in learner.void
