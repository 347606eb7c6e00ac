"""Outputs with few values are scored by the past frequencies of these values (`learning.few_values`)."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import ApproxDP, GaussianDP, Pair, PureDP, audit, batched
from dpaudit.claims import TradeoffFunction
from dpaudit.engine.collector import new_collector
from dpaudit.engine.sequential import SequentialAudit
from dpaudit.inference.grid import bin_counts
from dpaudit.learning import FewValues, Learner, scores_frequencies
from dpaudit.learning.attack import resolve_attacks
from dpaudit.learning.blocks import as_outputs
from dpaudit.learning.few_values import MAX_VALUES, MIN_TRIALS, MIN_VALUES, beyond, shrunken_excess
from dpaudit.outputs import Outputs
from dpaudit.result.evidence import SequentialEvidence
from dpaudit.running.runs import ExecutionSettings

EPSILON = 0.3


def block(rng: np.random.Generator, law0: list[float], law1: list[float], n: int = 700) -> Any:
    """Return n outputs of each dataset, which are rows of two numbers with one of few values."""
    rows = np.array([[0.0, 1.0], [1.0, -1.0], [np.nan, 0.0], [-0.0, 1.0]])
    return tuple(as_outputs(rows[rng.choice(4, n, p=law)]) for law in (law0, law1))


def plainly(y0: int, y1: int, n0: int, n1: int) -> float:
    """Compute the score of one value without arrays: y0 of n0 outputs of d0 and y1 of n1 outputs of d1 have it."""
    ratio = math.log((y1 + 0.5) / n1) - math.log((y0 + 0.5) / n0)
    variance = 1 / (y0 + 0.5) + 1 / (y1 + 0.5)
    excess = abs(ratio) - EPSILON
    if excess <= math.sqrt(variance):
        return math.copysign(min(abs(ratio), 0.8 * EPSILON), ratio)
    prior = max((EPSILON / 2) ** 2, excess**2 - 16 * variance)
    return math.copysign(EPSILON + excess * prior / (prior + variance), ratio)


def test_scores_of_values_equal_those_of_a_slow_plain_computation() -> None:
    rng = np.random.default_rng(0)
    first, second = FewValues.of_pairs([("a", "b"), ("a", "c")], PureDP(EPSILON))
    laws = [[0.4, 0.3, 0.2, 0.1], [0.2, 0.3, 0.2, 0.3], [0.3, 0.4, 0.3, 0.0]]
    seen: dict[str, Counter[bytes]] = {"a": Counter(), "b": Counter(), "c": Counter()}
    for few, names, (p, q) in [
        (first, "ab", laws[:2]),
        (second, "ac", laws[::2]),
        (first, "ab", laws[:2]),
        (second, "ac", laws[::2]),
    ]:
        both = block(rng, p, q)
        few.count(both)
        for name, side in zip(names, both, strict=True):
            seen[name].update(row.tobytes() for row in side.raw)
    for few, other in ((first, "b"), (second, "c")):
        fresh, _ = block(rng, laws[0], laws[0], 50)
        score = few.score()
        expected = [
            plainly(seen["a"][row.tobytes()], seen[other][row.tobytes()], seen["a"].total(), seen[other].total())
            for row in fresh.raw
        ]
        known = [row.tobytes() in seen["a"] or row.tobytes() in seen[other] for row in fresh.raw]
        found = score(fresh, np.full(len(expected), 7.0))
        assert np.allclose(found[known], np.array(expected)[known], atol=1e-8)


def test_values_of_any_type_are_scored_by_their_frequencies() -> None:
    few = FewValues(PureDP(EPSILON))
    outputs: list[Any] = [None, "a", 1.5, (1, 2)] * MIN_TRIALS
    few.count((Outputs.read(outputs), Outputs.read([*outputs[2:], None, "a"])))
    score = few.score()
    fresh = Outputs.read(["new", None, (1, 2), [1, 2]])
    assert np.isnan(score(fresh, np.full(4, np.nan))).tolist() == [True, False, False, True]


def best_set(counts0: Any, counts1: Any, values: list[int], epsilon: float) -> set[int]:
    """Return the values among those with the largest ratios whose joint bet grows fastest, one set after another."""
    values = sorted(values, key=lambda v: (counts0[v] / counts1[v], -counts1[v], v))
    rates = []
    for k in range(1, len(values) + 1):
        zeros, ones = sum(counts0[v] for v in values[:k]), sum(counts1[v] for v in values[:k])
        excess = max(0.0, ones - math.exp(epsilon) * zeros)
        rates.append(excess**2 / (ones + math.exp(2 * epsilon) * zeros))
    return set(values[: 1 + rates.index(max(rates))]) if rates else set()


def test_rare_values_that_identify_a_dataset_stand_out() -> None:
    rng, epsilon = np.random.default_rng(5), 1.0
    for _ in range(200):
        mean0 = np.array([300, 110, 40, 3, 1, 0, 0.5, 0])
        counts0, counts1 = rng.poisson(mean0), rng.poisson([110, 300, 60, 3, 1, 1, 0, 0])
        shrunken = shrunken_excess(counts0, counts1, (450, 450), epsilon)
        found = beyond(shrunken, counts0 / 450, counts1 / 450, epsilon)
        for sign, few, many in ((1, counts0, counts1), (-1, counts1, counts0)):
            one_sided = [v for v in range(8) if few[v] == 0 < many[v]]
            clear = [v for v in range(8) if sign * shrunken[v] > epsilon]
            kept = best_set(few, many, sorted({*one_sided, *clear}), epsilon)
            for v in {*one_sided, *clear}:
                if v in kept:
                    assert found[v] == (sign * 60 if v in one_sided else shrunken[v])
                else:
                    assert found[v] == sign * min(abs(shrunken[v]), 0.8 * epsilon)
        same = (counts0 > 0) & (counts1 > 0) & (np.abs(shrunken) <= epsilon)
        assert np.array_equal(found[same], shrunken[same])


@pytest.mark.parametrize(
    ("side0", "side1", "early"),
    [
        ([0, 1] * 10, [0, 1] * 9 + [0, 2], True),
        ([0, 1] * 10, [0] * 5 + [1] * 15, False),  # both datasets have shown both values
        ([0, 1, 2, 3] * 5, [0, 1, 2, 4] * 5, False),  # five values
    ],
)
def test_a_value_of_one_dataset_among_few_is_scored_early(side0: list[int], side1: list[int], early: bool) -> None:
    few = FewValues(ApproxDP(epsilon=1.0, delta=0.01).symmetrized())
    for part in range(5):
        assert (few.score() is not None) == (early and part > 0)
        few.count((as_outputs(np.array(side0)), as_outputs(np.array(side1))))
    assert few.score() is not None


def made(
    mechanism: Any,
    claim: TradeoffFunction,
    pairs: list[Pair],
    *,
    attacks: str = "auto",
    trials: int,
    seed: int,
    confidence: float,
) -> SequentialAudit:
    """Make an audit without its result, which would take most of the time."""
    tested = claim.symmetrized()
    collector = new_collector(mechanism, pairs, attacks, trials, seed, 1, ExecutionSettings(), tested)
    run = SequentialAudit(collector, tested, confidence=confidence)
    run.go()
    return run


def test_a_rare_identifying_value_refutes_sooner_than_attacks_do() -> None:  # the seed is fixed
    @batched
    def rare(dataset: int, n: int, rng: np.random.Generator) -> Any:
        identifying = rng.random(n) < 0.01
        return np.where(identifying, 2 + dataset, rng.random(n) < (0.73 if dataset else 0.27))

    claim = ApproxDP(epsilon=1.0, delta=0.001)
    run = made(rare, claim, [Pair(0, 1)], attacks="plug_in_ratio", trials=1_800, seed=0, confidence=0.95)
    assert run.refuted  # after 1,641 trials; the attack alone needs 1,983


def test_a_score_does_not_change_with_later_outputs_on_any_pair() -> None:
    rng, laws = np.random.default_rng(1), ([0.4, 0.3, 0.2, 0.1], [0.1, 0.3, 0.2, 0.4])
    first, second = FewValues.of_pairs([("a", "b"), ("a", "c")], PureDP(EPSILON))
    for _ in range(2):
        first.count(block(rng, *laws))
    score, (fresh, _) = first.score(), block(rng, *laws)
    before = score(fresh, np.zeros(len(fresh)))
    for few in (first, second):
        few.count(block(rng, laws[1], laws[0]))
    assert np.array_equal(before, score(fresh, np.zeros(len(fresh))))
    later = first.score()
    assert not np.array_equal(before, later(fresh, np.zeros(len(fresh))))


def test_counts_in_hindsight_are_those_of_the_score_on_all_past_outputs() -> None:
    rng, laws = np.random.default_rng(2), ([0.4, 0.3, 0.2, 0.1], [0.1, 0.3, 0.2, 0.4])
    few, blocks = FewValues(PureDP(EPSILON)), []
    for _ in range(3):
        blocks.append(block(rng, *laws))
        few.count(blocks[-1])
    score, counts = few.score(), few.in_hindsight()
    for side in (0, 1):
        expected = sum(bin_counts(score(one[side], np.zeros(len(one[side])))) for one in blocks)
        assert np.array_equal(counts[side], expected)


@pytest.mark.parametrize("why", ["too many values", "every loss is allowed", "too few trials"])
def test_attacks_score_the_outputs(why: str) -> None:
    few = FewValues(GaussianDP(1.0) if why == "every loss is allowed" else PureDP(EPSILON))
    n = MIN_TRIALS - 1 if why == "too few trials" else 2 * MIN_TRIALS
    outputs: Any = np.arange(n) % (MAX_VALUES + 1 if why == "too many values" else MAX_VALUES)
    few.count((as_outputs(outputs), as_outputs(outputs)))
    assert few.score() is None
    assert few.in_hindsight() is None


@batched
def response(dataset: list[float], n: int, rng: np.random.Generator) -> Any:
    """Return one of three values; the most probable one depends on the dataset, exactly as pure(epsilon=EPSILON)."""
    odds = np.array([1.0, 1.0, 1.0])
    odds[int(dataset[0])] = math.exp(EPSILON)
    return rng.choice(3, n, p=odds / odds.sum()).astype(float)


@pytest.mark.parametrize(
    ("audits", "trials", "confidence"), [(1, 300, 1 - 1e-7), pytest.param(16, 4_000, 0.95, marks=pytest.mark.slow)]
)
def test_exactly_true_claims_are_rarely_refuted_on_several_pairs(audits: int, trials: int, confidence: float) -> None:
    """Fails by chance < 1 in 10**6."""
    pairs = [Pair([0], [1]), Pair([0], [2]), Pair([1], [2])]
    found = [
        made(response, PureDP(EPSILON), pairs, attacks="plug_in_ratio", trials=trials, seed=seed, confidence=confidence)
        for seed in range(audits)
    ]
    assert sum(run.refuted for run in found) <= binom.ppf(1 - 1e-6, audits, 1 - confidence)


def test_most_trials_are_spent_on_the_pair_that_leaks() -> None:  # the seed is fixed
    pairs = [Pair([0], [0.5]), Pair([0], [0.25]), Pair([0], [1])]
    options: dict[str, Any] = {
        "attacks": "plug_in_ratio",
        "trials": 30_000,
        "seed": 3,
        "confidence": 0.9,
        "confirm": "never",
    }
    result = audit(response, "pure(epsilon=0.1)", pairs, **options)
    assert result.violated
    assert result.witness.pair == str(pairs[2])
    assert isinstance(result.evidence, SequentialEvidence)
    spent = result.evidence.counts.sum(axis=(1, 2))
    assert spent[2] > spent[0] + spent[1]


@pytest.mark.parametrize(("nats", "kept"), [(50.0, True), (1.0, False), (0.0, False)])
def test_scores_of_an_attack_whose_model_fits_are_kept(nats: float, kept: bool) -> None:
    """The outputs do not depend on the dataset, so the losses of both attacks are equal and the head start decides."""

    class Law:
        name = "law"
        calibrated = True
        head_start = nats

        def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
            return lambda outputs: np.zeros(len(outputs))

    learner = Learner([Law(), *resolve_attacks("plug_in_ratio")], seed=1, pair=0)
    learner.few_values = FewValues(PureDP(EPSILON))
    outputs = np.arange(2 * MIN_TRIALS) % MIN_VALUES
    learner.learn(outputs.astype(float), outputs.astype(float))
    assert learner.few_values.score() is not None
    assert (learner.current().few_values is None) == kept


def test_an_audit_of_another_attack_keeps_its_scores() -> None:
    assert scores_frequencies(resolve_attacks("auto"))
    assert scores_frequencies(resolve_attacks(["plug_in_ratio"]))
    assert not scores_frequencies(resolve_attacks(["logistic"]))

    class Own:
        name = "plug_in_ratio"

        def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
            return lambda outputs: np.zeros(len(outputs))

    assert not scores_frequencies([Own()])


@batched
def signs(dataset: int, n: int, rng: np.random.Generator) -> Any:
    return np.where((rng.random(n) < 0.9) == bool(dataset), -0.0, 0.0)


def test_the_sign_of_zero_is_seen() -> None:  # the seed is fixed
    options: dict[str, Any] = {"attacks": "plug_in_ratio", "trials": 100, "seed": 1, "confirm": "never"}
    assert audit(signs, "pure(epsilon=1)", Pair(0, 1), **options).violated
    assert audit(signs, "pure(epsilon=2.2)", Pair(0, 1), **options).verdict.name == "NO_VIOLATION"
