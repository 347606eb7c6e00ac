"""The second stage of a large fixed audit, in which attacks make their final fit at the end of the pilot.

These tests start it after 100 trials instead of 250,000, so that audits are short.  The seeds are fixed.
"""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import Pair, PureDP, audit, batched, replay
from dpaudit.catalogue import Geometric, Laplace
from dpaudit.engine import collector as collecting
from dpaudit.engine import fixed
from dpaudit.inference.grid import CENTRES
from dpaudit.learning import Experts
from dpaudit.learning.score import stacked

PAIR = Pair([0], [1])
TRIALS, SEARCHED, SECOND_STAGE_TRIALS = 2_000, 100, 200
OPTIONS: dict[str, Any] = {"trials": TRIALS, "method": "fixed", "seed": 1, "confidence": 0.95, "confirm": "never"}


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed, "_SECOND_STAGE_AFTER", SEARCHED)
    monkeypatch.setattr(fixed, "_SECOND_STAGE_TRIALS", 100)


@batched
def twins(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
    """Pairs of labels that agree in 45 % of the runs on d1, 20 % on d0: neither label alone depends on the dataset."""
    first = rng.integers(0, 5, n)
    agree = rng.random(n) < 0.2 + 0.25 * dataset[0]
    return np.column_stack([first, np.where(agree, first, (first + rng.integers(1, 5, n)) % 5)])


def test_the_second_stage_makes_the_score() -> None:
    """The ratio is log 3.5 where labels agree.  Logistic regression cannot detect it."""
    attacks = ["logistic", "trees"]
    result = audit(twins, PureDP(0.3), Pair([0], [2]), attacks=attacks, **OPTIONS | {"confirm": 1000})
    assert result.trials_used == TRIALS
    assert result.evidence.trials == TRIALS - SEARCHED - SECOND_STAGE_TRIALS
    assert result.violated
    assert 0.3 < result.epsilon_lower(0.0) < np.log(3.5)
    assert sum(row.weight for row in result.attacks) == pytest.approx(1)
    assert {row.name: row.weight for row in result.attacks}["trees"] > 0.5
    assert result.confirmation.outcome == "confirmed"
    assert result.witness.counts == result.confirmation.counts


def test_a_replay_has_a_second_stage_too() -> None:
    """Fails by chance < 1 in 10**6: the exact p-value of the audit is below 1 in 10**12."""
    result = audit(twins, PureDP(0.1), PAIR, attacks=SecondStage(), **OPTIONS)
    assert result.p_value < 1e-12
    found = replay(result, twins, PAIR, trials=TRIALS, attacks=SecondStage(), seed=0)
    assert found.learned_from == SEARCHED + SECOND_STAGE_TRIALS
    assert found.counts.n0 == TRIALS
    assert found.reproduced


def test_nothing_is_chosen_by_outputs_that_are_counted() -> None:
    """The law changes with the first trial after the pilot, and all choices must be identical."""

    def choices(later: Any) -> Any:
        runs = {0: 0, 2: 0}

        @batched
        def mechanism(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
            before = runs[dataset[0]]
            runs[dataset[0]] += n
            return (twins if before < SEARCHED + SECOND_STAGE_TRIALS else later).sample(dataset, n, rng)

        attacks = ["logistic", "trees"]
        evidence: Any = audit(mechanism, PureDP(0.3), Pair([0], [2]), attacks=attacks, **OPTIONS).evidence
        return evidence.threshold, evidence.pilot.tobytes(), evidence.counts

    honest = choices(twins)
    other = choices(batched(lambda dataset, n, rng: np.full((n, 2), dataset[0])))
    assert honest[:2] == other[:2]
    assert not np.array_equal(honest[2], other[2])


@batched
def pairs_of_responses(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
    """Two randomised answers, each true with odds e to 1: exactly 2-DP."""
    kept = rng.random((n, 2)) < 1 / (1 + np.exp(-1))
    return np.where(kept, dataset[0], 1 - dataset[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [(pairs_of_responses, PureDP(2.0)), (Geometric(1.0), PureDP(1.0)), (Laplace(1.0), PureDP(1.0))],
)
def test_true_claims_are_rarely_refuted_in_400_audits(mechanism: Any, claim: Any) -> None:
    """Fails by chance < 1 in 10**7."""
    attacks = ["threshold", "events", "ordered_events", "trees"]
    results = (audit(mechanism, claim, PAIR, attacks=attacks, **OPTIONS | {"seed": seed}) for seed in range(400))
    assert sum(result.violated for result in results) <= binom.ppf(1 - 1e-7, 400, 0.05)


class SecondStage:
    name = "student"
    sees = "features"
    calibrated = True

    def __init__(self, how: str = "well", learns_from: int = 200) -> None:
        self.how, self.learns_from = how, learns_from  # two thirds of 300 trials

    def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
        return lambda outputs: np.where(outputs[:, 0] == outputs[:, 1], 0.8, -0.37)

    def fit_second_stage(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
        assert outputs0.shape == outputs1.shape == (self.learns_from, 2)
        if self.how == "raises":
            raise RuntimeError("too much")
        return {
            "well": lambda outputs: np.where(outputs[:, 0] == outputs[:, 1], 40.0, -18.0),  # wrong scale
            "company": lambda outputs: outputs[:, 0] - outputs[:, 0].mean(),
            "nan": lambda outputs: np.full(len(outputs), np.nan),
            "raises when scoring": lambda outputs: 1 / 0,
            "nothing": None,  # adds no scores
        }[self.how]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raises", "raised RuntimeError: too much"),
        ("company", "gave the same output different scores in different blocks"),
        ("nan", "returned NaN"),
    ],
)
def test_an_attack_that_fails_in_its_second_stage_is_named_and_keeps_what_it_had_learned(how: str, words: str) -> None:
    result = audit(twins, PureDP(0.3), PAIR, attacks=SecondStage(how), **OPTIONS)
    (warning,) = result.warnings
    assert warning.startswith(f"attack student {words}")
    assert warning.endswith(" in its second stage; its earlier score is used")
    assert result.violated


@pytest.mark.parametrize(
    ("odd", "learns_from"), [pytest.param(SEARCHED - 1, 198, marks=pytest.mark.slow), (SEARCHED + 1, 133)]
)
def test_one_odd_output_does_not_blind_the_second_stage(
    odd: int, learns_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The odd output comes before the second stage or during it.  Its block, of 3 or 100 outputs, is left out.

    The mechanism is called once per run.
    """
    monkeypatch.setattr(collecting, "MAX_BLOCK_TRIALS", 100)
    runs = [0]

    def mechanism(dataset: list[int], rng: np.random.Generator) -> tuple[int, int] | None:
        runs[0] += dataset == [0]
        if runs[0] == odd and dataset == [0]:
            return None
        first, agree = int(5 * rng.random()), rng.random() < 0.2 + 0.25 * dataset[0]
        return first, first if agree else (first + 1 + int(4 * rng.random())) % 5

    student = SecondStage(learns_from=learns_from)
    result = audit(mechanism, PureDP(0.3), PAIR, attacks=student, **OPTIONS)
    assert result.provenance.second_stage_trials == SECOND_STAGE_TRIALS
    assert not result.warnings
    assert result.epsilon_lower(0.0) > 0.25


class Failing:
    """Twins, with an error on [2] after `last` runs; [2] and [3] have the same law as [0]."""

    def __init__(self, last: int) -> None:
        self.last = last

    def sample(self, dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        if dataset == [2]:
            self.last -= n
            if self.last < 0:
                raise RuntimeError("no more")
        return twins.sample([int(dataset == [1])], n, rng)


@pytest.mark.parametrize("last", [SEARCHED // 2, SEARCHED + 100])
def test_a_mechanism_that_fails_before_the_second_stage_or_in_it_ends_the_audit(last: int) -> None:
    result = audit(Failing(last), PureDP(0.3), Pair([2], [1]), attacks=SecondStage(), **OPTIONS)
    assert result.stopped_by == "failure"
    assert result.p_value == 1
    assert [row.weight for row in result.attacks] == [1]


def test_another_pair_takes_over_if_the_chosen_one_fails_in_the_second_stage() -> None:
    """Only the first pair leaks, and it fails after 100 trials of the second stage."""
    failing, pairs = Failing(2 * SEARCHED + 100), (Pair([2], [1]), Pair([0], [3]))
    given = OPTIONS | {"trials": 2 * TRIALS}
    result: Any = audit(failing, PureDP(0.3), pairs, attacks=SecondStage(), **given)
    assert failing.last < 0
    assert result.stopped_by == "trials"
    assert result.trials_used == 2 * TRIALS
    assert result.evidence.pair == 1
    assert not result.violated


def test_a_score_that_wins_clearly_more_alone_is_not_mixed() -> None:
    """The wealth depends on how often the rare event of the second column occurred."""
    rng = np.random.default_rng(2)
    n = 2000
    columns0 = np.column_stack([rng.normal(-0.5, 1, n), np.full(n, -0.01)])
    columns1 = np.column_stack([rng.normal(0.5, 1, n), np.where(rng.random(n) < 0.01, 6.0, -0.01)])

    def worth(counts: Any) -> float:
        return float(counts[1, CENTRES > 5].sum() - counts[0, CENTRES > 5].sum())

    def lengths(outputs: Any) -> Any:
        return len(outputs)

    mixed = stacked({7: lengths}, columns0, columns1, None)
    alone = stacked({7: lengths}, columns0, columns1, Experts(worth))
    assert mixed.slopes[0] > 0.5
    assert alone.slopes.tolist() == [0.0, 1.0]
    assert alone.weights({0: 0.5, 7: 0.5}) == {0: 0.0, 7: 1.0}
