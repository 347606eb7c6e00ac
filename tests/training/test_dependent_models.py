"""Dependent models prove nothing, and neither do pairs that the claim does not cover."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from dpaudit import GaussianDP, Pair, Verdict, audit, batched, replay, training
from dpaudit.catalogue.training import DpGd
from dpaudit.running import MechanismError
from dpaudit.training import canaries, reference, views

from .test_designs import DATA, MODEL, PAIR, SURE, audited, warned

TRAINER = reference.Trainer(model=MODEL, noise_multiplier=2.0, steps=4)


def test_runs_that_share_a_seed_are_named() -> None:
    @batched
    def reseeds(dataset: Any, n: int, rng: np.random.Generator) -> Any:
        return len(dataset) + np.repeat(rng.normal(size=n // 2), 2)

    result = audited(reseeds)
    assert warned(result, "runs 0 and 1 on d0 have the same output, and 50 such runs were found.*share a seed")
    assert warned(result, "outputs equal the output 1 runs earlier, on d1: no guarantee holds")
    assert result.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("first", [0, 1])  # calls in pairs share a seed on both datasets, or on d1 and the next d0
@pytest.mark.parametrize(("per_seed", "models"), [(2, 200), (5, 40), (50, 200)])
def test_models_that_share_seeds_prove_nothing(per_seed: int, models: int, first: int) -> None:
    """The claim is true of one model.  `dependent` states the level; the power is that of these seeds."""
    calls = iter(range(first, 1000))

    def reseeds(dataset: Any, rng: np.random.Generator) -> float:
        return float(len(dataset) + np.random.default_rng(next(calls) // per_seed).normal())

    result = audited(reseeds, models=models)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid
    assert result.mu_lower == 0
    assert "no guarantee holds, since trials must be independent" in result.warnings[-1]


def test_one_seed_for_all_models_proves_nothing() -> None:
    result = audited(lambda dataset, rng: len(dataset) + np.random.default_rng(0).normal())
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid
    assert warned(result, "all 100 outputs on d0 are 3.1257 and all 100 outputs on d1 are 4.1257, so runs share a seed")


def test_scores_with_few_values_are_valid() -> None:
    """The scores are an accuracy, a share of clipped scores, and a flag that always reveals the canary.

    The first two are reported as dependent by chance < 1 in 10**8.
    """

    def accuracy(dataset: Any, rng: np.random.Generator) -> float:
        return float(rng.binomial(20, 0.5 + 0.1 * len(dataset)) / 20)

    def clipped(dataset: Any, rng: np.random.Generator) -> float:
        return max(3.5, len(dataset) + float(rng.normal()))

    for train in (accuracy, clipped):
        assert audited(train).bounds_valid
    flag = audited(lambda dataset, rng: float(len(dataset) > 3))
    assert flag.violated
    assert flag.bounds_valid


def in_any_order(kind: str, side: int, n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return noise of n runs with shared seeds, in an order that reveals nothing, or of few runs."""
    rng = np.random.default_rng([side, n])
    if kind == "pool of 10":
        return rng.normal(size=10)[rng.integers(10, size=n)]
    if kind == "reversed half":
        half = rng.normal(size=n // 2)
        return np.concatenate([half, half[::-1]])
    per_seed = int(kind.split()[1])
    noise = np.repeat(rng.normal(size=-(-n // per_seed)), per_seed)[:n]
    return noise if kind.startswith("blocks") else rng.permutation(noise)


@pytest.mark.parametrize(
    ("kind", "models"),
    [("pool of 10", 200), ("permuted 2", 200), ("permuted 5", 20), ("reversed half", 20), ("blocks 5", 20)],
)
def test_repeated_values_on_no_grid_prove_nothing(kind: str, models: int) -> None:
    """The claim is true of one model.  The seeds decide."""
    train = batched(lambda dataset, n, rng: len(dataset) + in_any_order(kind, len(dataset) - 3, n))
    result = audited(train, models=models)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.bounds_valid
    assert result.mu_lower == 0
    assert "no guarantee holds, since trials must be independent" in result.warnings[-1]
    assert warned(
        result, r"the first .* outputs of d0 have only .* different values.*lie on no grid.*share seeds, or.*no noise"
    )


@pytest.mark.parametrize(
    ("models", "shift"), [(20, 0.0), pytest.param(200, 5.0, marks=pytest.mark.slow), (200, 0.3141592653589)]
)
@pytest.mark.parametrize(
    "values",
    [np.arange(8) / 7, np.arange(30), np.arange(2), np.arange(8) / 7 + 0.1234567890123, np.exp(np.arange(20) / 7)[:1]],
)
def test_scores_on_a_grid_are_valid(values: Any, shift: float, models: int) -> None:
    """The two datasets may share values or not.  The seed of the audit decides."""

    def score(dataset: Any, rng: np.random.Generator) -> float:
        return (
            float(rng.choice(values) + shift * (len(dataset) - 3)) if len(values) > 1 else max(values[0], rng.normal())
        )

    assert audited(score, models=models, seed=2).bounds_valid


def replaced(relation: Any = "unspecified") -> Pair:
    one, other = (DATA.joined(reference.Records(diracs=[0], sizes=[size])) for size in (-1e6, 1e6))
    return Pair(one, other, relation)


def test_a_claim_about_an_added_record_is_not_tested_on_a_replaced_one() -> None:
    """The right claim is refuted by chance < 1 in 10**6."""
    train = reference.Training(TRAINER, views.spare_weights())
    for pair in (replaced(), replaced("replace_one")):
        with pytest.raises(ValueError, match="about a record that is added or removed, but d0 has 1 records that d1 l"):
            audited(train, TRAINER.claim, pair)
        with pytest.raises(
            ValueError, match=r"pair that replaces a record, use relation=\"replace_one\" in training.cl"
        ):
            audited(train, TRAINER.claim, pair)
    for stronger in (f"gaussian(mu={1 - 2**-53!r})", "gaussian(mu=0.5)", f"gaussian(mu={1 + 2**-52!r})"):
        with pytest.raises(ValueError, match="is at least as strong as the trainer's claim, and the trainer's claim"):
            audited(train, stronger, replaced())
    claim = training.claim(noise_multiplier=2.0, steps=4, sampling="full", relation="replace_one")
    right = audited(train, claim, replaced("replace_one"), confidence=SURE)
    assert right.verdict is not Verdict.VIOLATION
    assert warned(right, r"a record was replaced.  A claim about an added or removed record.*does not cover this pair")
    removed = audited(train, TRAINER.claim, Pair(PAIR.d1, PAIR.d0), confidence=SURE)
    assert not warned(removed, "neighbours|replaced|added")  # d1 has no canary: the scores warn of that
    far = Pair(DATA, DATA.joined(canaries.dirac(1)).joined(canaries.dirac(1)))
    assert warned(audited(train, "gaussian(mu=2)", far), "d1 has 2 that d0 lacks, but neighbours differ by one record")


@pytest.mark.parametrize("mechanism", [DpGd(), reference.Training(TRAINER, views.spare_weights())])
def test_a_direct_audit_refuses_a_pair_that_the_trainers_claim_does_not_cover(mechanism: Any) -> None:
    """The right claim is tested, and sixty runs with a fixed seed do not refute it."""
    for claim in (mechanism.claim, GaussianDP(0.1)):
        with pytest.raises(ValueError, match=r"about a record that is added or removed, but d0 has 1 .* \(pair "):
            audit(mechanism, claim, [Pair(DATA, PAIR.d1), replaced()], trials=8, seed=0)
    result = audit(mechanism, GaussianDP(5.0), replaced(), attacks="median_clipped", trials=60, seed=0)
    assert not result.violated
    stronger = dataclasses.replace(result, claim=GaussianDP(0.1))
    with pytest.raises(ValueError, match="about a record that is added or removed"):
        replay(stronger, mechanism, replaced(), attacks="median_clipped", trials=8, seed=0)


class Refusing:
    """A mechanism whose claim covers no pair; a faulty one raises another error."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error

    def __call__(self, dataset: Any, rng: np.random.Generator) -> float:
        return float(rng.normal())

    def check_neighbours(self, d0: Any, d1: Any, claim: Any) -> None:
        raise self.error("not about this pair")


def test_any_mechanism_may_refuse_pairs() -> None:
    with pytest.raises(ValueError, match=r"not about this pair \(pair \[0\] \| \[1\]\)"):
        audit(Refusing(ValueError), GaussianDP(1.0), Pair([0], [1]), trials=8, seed=0)
    with pytest.raises(MechanismError, match="check_neighbours raised KeyError"):
        audit(Refusing(KeyError), GaussianDP(1.0), Pair([0], [1]), trials=8, seed=0)


def test_a_relation_that_cannot_be_checked_is_named() -> None:
    def named(pair: Pair, claim: Any = "gaussian(mu=1)") -> bool:
        return warned(audited(lambda dataset, rng: rng.normal(), claim, pair, models=4), "a record was replaced")

    for pair in (Pair([1, 2], [1, 3]), replaced(), Pair(None, 1, "replace_one")):
        assert named(pair)
    for pair in (Pair([1], [1, 3]), Pair(None, 1), Pair("ab", "ba")):
        assert not named(pair)
    sampled = "subsampled(gaussian(mu=1), rate=0.5, relation=replace_one)"
    assert not named(Pair([1, 2], [1, 3]), sampled)
