"""From 50,000 trials on, attacks are fitted and tried more rarely; before, large audits learn like small ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit import GaussianDP, Pair, audit
from dpaudit.engine.collector import Progress
from dpaudit.learning import Learner, fitting, learner, weights
from dpaudit.learning.attack import Attack
from dpaudit.learning.blocks import SETTLED, TRIAL_PERIOD
from dpaudit.learning.weights import ModelWeights
from dpaudit.numerics import Array
from dpaudit.outputs import Outputs
from dpaudit.outputs.encoding import PlainEncoding
from dpaudit_attacks.logistic import DerivedFeatures
from dpaudit_attacks.trees import Trees


class Counted:
    """An attack whose score is the output or its negative; it records the number of outputs in each fit."""

    sees = "features"
    calibrated = True

    def __init__(self, name: str = "counted", most_rows: int = 10**9, from_trials: int = 0, sign: int = 1) -> None:
        self.name, self.most_rows, self.from_trials, self.sign = name, most_rows, from_trials, sign
        self.fits: list[int] = []

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        self.fits.append(len(outputs0))
        return lambda outputs: self.sign * outputs[:, 0]


def fit_times(attacks: list[Any], until: int) -> tuple[Learner, list[list[int]]]:
    """Return a learner, and the numbers of trials at which it fitted each attack, up to about `until` trials."""
    learner, rng = Learner(attacks, seed=0, pair=0), np.random.default_rng(0)
    found: list[list[int]] = [[] for _ in attacks]
    while learner.trials < until:
        n = learner.next_fit - learner.trials
        before = [len(attack.fits) for attack in attacks]
        block = rng.normal(-0.5, 1, n), rng.normal(0.5, 1, n)
        if learner.ready:
            learner.score_fresh(*block)
        learner.learn(*block)
        for times, attack, fits in zip(found, attacks, before, strict=True):
            times += [learner.trials] * (len(attack.fits) - fits)
    return learner, found


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a tenth of the trials count as many."""
    for module, *names in ((fitting, "SETTLED"), (weights, "SETTLED", "TRIAL_PERIOD"), (learner, "TRIAL_PERIOD")):
        for name in names:
            monkeypatch.setattr(module, name, {"SETTLED": SETTLED, "TRIAL_PERIOD": TRIAL_PERIOD}[name] // 10)


@pytest.mark.usefixtures("soon")
def test_a_suspended_attack_returns_rarely_if_its_fits_can_use_no_more_outputs() -> None:
    """The attack `wrong` is suspended after every return: its scores have the wrong sign, so it is far behind."""
    right, wrong = Counted("right", most_rows=100), Counted("wrong", most_rows=100, sign=-1)
    learner, times = fit_times([right, wrong], 300_000)
    early, late = ([[at for at in some if (at >= SETTLED // 10) == after] for some in times] for after in (False, True))
    assert len(early[1]) > 5  # early suspensions end when the trials have doubled
    assert len(late[1]) == 1
    assert 32 * early[1][-1] <= late[1][0] < 64 * early[1][-1]
    assert learner.absence(1) == "suspended at the end: other attacks predicted far better"
    settled = [at for at in times[0] if at >= SETTLED]
    assert settled == [settled[0] * 2**i for i in range(4)]  # an attack in use is refitted as before


def test_a_suspended_attack_returns_if_its_fits_can_use_more_outputs() -> None:
    wrong = Counted("wrong", sign=-1)
    _, times = fit_times([Counted("right"), wrong], 400_000)
    late = [at for at in times[1] if at >= SETTLED]
    # A fit to numbers has at most 50,000 of them, so that one late fit can use more outputs than the fits before it.
    assert len(late) == 1 + (late[-1] >= 32 * late[0])
    assert late[0] < 4 * SETTLED
    assert wrong.fits[-1] == 50_000


def test_a_late_attack_is_tried_on_a_fixed_number_of_trials() -> None:
    weights = ModelWeights()
    weights.join(0, 10)
    weights.join(1, 40_000)
    weights.join(2, SETTLED)
    weights.count({0: 0.0, 1: 20.0, 2: 20.0}, 1.0, 50)
    assert weights.suspend([0, 1], 44_999) == []  # an eighth of 40,000 trials
    assert weights.suspend([0, 1], 45_000) == [1]
    assert not weights.on_trial(1, 40_001)
    assert weights.on_trial(2, SETTLED + TRIAL_PERIOD - 1)
    assert weights.suspend([0, 2], SETTLED + TRIAL_PERIOD - 1) == []
    assert not weights.on_trial(2, SETTLED + TRIAL_PERIOD)
    assert weights.suspend([0, 2], SETTLED + TRIAL_PERIOD) == [2]


@pytest.mark.usefixtures("soon")
def test_blocks_are_small_while_an_attack_is_on_trial() -> None:
    """The outcome does not depend on chance, because blocks depend on numbers of trials only."""

    class Normal:
        def sample(self, dataset: list[int], n: int, rng: np.random.Generator) -> Array:
            return rng.normal(size=n)

    late, seen = Counted("late", from_trials=13_000), []

    def watch(progress: Progress) -> None:
        seen.append(progress.trials)

    attacks: list[str | Attack] = [Counted("early"), late]
    audit(Normal(), GaussianDP(1.0), Pair([0], [1]), trials=15_000, seed=1, attacks=attacks, progress=watch)
    joined = 13_422  # the first fit from 13,000 trials on
    sizes = dict(zip(seen, np.diff(seen), strict=False))
    assert sizes[joined] == TRIAL_PERIOD // 10 < joined // 32
    assert sizes[joined + TRIAL_PERIOD // 10] == (joined + TRIAL_PERIOD // 10) // 32


def test_attacks_share_the_views_of_the_latest_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    derived, rows = count_derived(monkeypatch)
    learner, rng = Learner([Trees(), DerivedFeatures()], seed=0, pair=0), np.random.default_rng(0)
    learner.learn(rng.normal(size=(500, 3)), rng.normal(size=(500, 3)))
    assert learner.ready
    assert rows == [500, 500]
    assert derived(np.zeros((1, 2))).shape[0] == 1


def count_derived(monkeypatch: pytest.MonkeyPatch) -> tuple[Callable[[Array], Array], list[int]]:
    """Record the number of rows in each computation of derived columns."""
    from dpaudit.outputs import derived

    rows: list[int] = []

    def counted(features: Array) -> Array:
        rows.append(len(features))
        return derived(features)

    monkeypatch.setattr("dpaudit.outputs.block.derived", counted)
    return counted, rows


@pytest.mark.parametrize(("n", "kept"), [(300, True), (40_000, False)])
def test_joined_blocks_keep_only_small_views(n: int, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    _, rows = count_derived(monkeypatch)
    outputs = np.random.default_rng(0).normal(size=(2, n, 6))
    encoding = PlainEncoding.of(outputs.reshape(-1, 6), "list of 6 float")
    blocks = [Outputs.read(side) for side in outputs]
    views = [block.view(encoding, "derived") for block in blocks]
    joined = Outputs.join(blocks)
    assert np.array_equal(joined.view(encoding, "derived"), np.concatenate(views))
    assert np.array_equal(joined.view(encoding, "features"), outputs.reshape(-1, 6))
    assert rows == [n, n] + [2 * n] * (not kept)
