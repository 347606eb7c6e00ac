"""Attacks of users work on outputs of any kind.  A faulty attack is dropped, and a warning states its fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit import GaussianDP, Pair, PureDP, audit
from dpaudit.catalogue import Gaussian
from dpaudit_attacks.likelihood_ratio import LikelihoodRatio

PAIR = Pair([0], [1])


def texts(dataset: list[int], rng: np.random.Generator) -> dict[str, Any]:
    return {"note": "x" * int(rng.poisson(3 + 4 * dataset[0])), "id": int(rng.integers(10**9))}


class Length:
    """An attack that only ranks outputs, by the length of the note."""

    name = "length"

    def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
        return lambda outputs: np.array([len(output["note"]) ** 2 for output in outputs])


def test_a_users_attack_on_dicts_is_calibrated() -> None:
    """Fails by chance < 1 in 10**6: the means differ by two standard deviations."""
    result = audit(texts, PureDP(0.5), PAIR, trials=2000, attacks=Length(), seed=0, confidence=0.95, confirm="never")
    assert result.violated
    assert result.warnings == ()


def test_a_known_likelihood_ratio_is_used_as_it_is() -> None:
    """Fails by chance < 1 in 10**6."""
    known = LikelihoodRatio(lambda outputs: 4 * outputs - 2)  # of N(1, 1/4) to N(0, 1/4)
    result = audit(
        Gaussian(0.5), GaussianDP(1.0), PAIR, trials=2000, attacks=known, seed=0, confidence=0.95, confirm="never"
    )
    assert result.violated
    assert result.attacks[0].weight == 1.0


class Faulty:
    name = "faulty"

    def __init__(self, how: str) -> None:
        self.how = how
        self.calibrated = True
        self.sees = "tea leaves" if how == "sees" else "natural"

    def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
        match self.how:
            case "raises":
                raise KeyError("x")
            case "shape":
                return lambda outputs: np.zeros((len(outputs), 2))
            case "nan":
                return lambda outputs: np.array([np.nan if len(output["note"]) > 4 else 0.0 for output in outputs])
            case "text":
                return lambda outputs: ["high"] * len(outputs)
            case "company":
                return lambda outputs: np.arange(len(outputs)) / 10
        return None


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("raises", "raised KeyError in fit: 'x'"),
        ("shape", "returned scores of shape"),
        ("nan", "returned NaN"),
        ("company", "different scores in different blocks"),
        ("sees", "sees must be one of features"),
    ],
)
def test_a_faulty_attack_is_named_and_dropped(how: str, said: str) -> None:
    result = audit(
        texts,
        PureDP(0.5),
        PAIR,
        trials=600,
        attacks=["logistic", Faulty(how)],
        seed=0,
        confidence=0.95,
        confirm="never",
    )
    assert result.violated
    assert any("attack faulty was dropped" in warning and said in warning for warning in result.warnings)


def test_attacks_that_no_longer_help_are_suspended_and_cost_nothing() -> None:
    result = audit(Gaussian(1.0), GaussianDP(1.0), PAIR, trials=1500, seed=1, confidence=0.95)
    weights = {row.name: row.weight for row in result.attacks}
    assert abs(sum(weights.values()) - 1) < 1e-9
    assert sum(weight > 0 for weight in weights.values()) <= 5
