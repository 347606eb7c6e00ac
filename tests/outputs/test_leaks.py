"""A leak that only one kind of output shows is detected.  Without the leak, no violation is found."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import GaussianDP, Pair, PureDP, audit
from dpaudit.catalogue import Gaussian
from dpaudit.engine.collector import new_collector
from dpaudit.engine.sequential import SequentialAudit
from dpaudit.outputs import Timed
from dpaudit.running.runs import ExecutionSettings
from dpaudit_attacks.likelihood_ratio import LikelihoodRatio

from .leaks import LEAKS, Leaking

PAIR = Pair([0], [1])
FLOATS = {"last bits of floats", "floating-point noise"}  # leaks that only the attack on floats detects


def attacks_for(kind: str) -> list[str]:
    return ["auto", "float_bits"] if kind in FLOATS else ["auto"]


@pytest.mark.parametrize(
    "kind", [kind if i % 9 == 0 else pytest.param(kind, marks=pytest.mark.slow) for i, kind in enumerate(LEAKS)]
)
def test_a_leak_is_found_within_5000_trials(kind: str) -> None:
    """Half of the runs on d1 leak, and the claim is 0.1-DP.

    Each kind of leak needs fewer than 800 trials, in which the wealth grows by a factor of 20.  Hence a failure by
    chance has a probability < 1 in 10**6.
    """
    result = audit(
        Leaking(kind),
        PureDP(0.1),
        PAIR,
        trials=5000,
        attacks=attacks_for(kind),
        seed=3,
        confidence=0.95,
        confirm="never",
    )
    assert result.violated
    assert result.witness.region
    assert not [warning for warning in result.warnings if "dropped" in warning]


NULLS = ["none", "missing key", "parity"]


def refutations(kind: str, runs: int, trials: int) -> int:
    """Count refutations of the claim that the datasets have the same law, which is just true without the leak."""
    mechanism, claim, refuted = Leaking(kind, leaks=False), PureDP(0.0), 0
    for seed in range(runs):  # without the rest of the result, which takes most of the time
        collector = new_collector(mechanism, [PAIR], attacks_for(kind), trials, seed, 1, ExecutionSettings(), claim)
        run = SequentialAudit(collector, claim, confidence=0.95)
        run.go()
        refuted += run.refuted
    return refuted


def test_without_the_leak_the_claim_is_rarely_refuted() -> None:
    """Runs 2 audits for each of three kinds; a slow test covers all kinds.  Fails by chance < 1 in 10**6."""
    assert sum(refutations(kind, 2, 30) for kind in NULLS) <= binom.ppf(1 - 1e-6, 2 * len(NULLS), 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(LEAKS))
def test_without_the_leak_the_claim_is_rarely_refuted_in_200_audits(kind: str) -> None:
    """Fails by chance < 1 in 10**7 for each kind."""
    assert refutations(kind, 200, 600) <= binom.ppf(1 - 1e-7, 200, 0.05)


@pytest.mark.slow
def test_a_leak_in_one_of_a_million_numbers_is_found() -> None:
    """An output has 4 MB.  In half of the runs on d1, one entry is 10**6.  Fails by chance < 1 in 10**6."""
    zeros = np.zeros(1_000_000, dtype=np.float32)

    def mechanism(dataset: list[int], rng: np.random.Generator) -> Any:
        output = zeros.copy()
        output[:1000] = rng.normal(0, 1, 1000)
        if dataset == [1] and rng.random() < 0.5:
            output[777_777] = 1e6
        return output

    result = audit(mechanism, PureDP(0.1), PAIR, trials=60, seed=1, confidence=0.95, confirm="never")
    assert result.violated


def test_running_time_is_a_leak_where_it_is_observed() -> None:
    """Fails by chance < 1 in 10**6: the means of log times differ by four standard deviations."""

    def mechanism(dataset: list[int], rng: np.random.Generator) -> Any:
        return Timed(float(rng.normal()), float(np.exp(rng.normal(4.0 * dataset[0], 1.0))))

    result = audit(mechanism, PureDP(0.5), PAIR, trials=3000, seed=1, attacks=["logistic", "time"], confirm="never")
    assert result.violated
    assert "time" in result.witness.attack
    blind = audit(mechanism, PureDP(0.5), PAIR, trials=200, seed=1, attacks="logistic", confidence=0.95)
    assert not blind.violated


# --- attacks of users work on outputs of any kind.  A faulty attack is dropped, and a warning states its fault


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
