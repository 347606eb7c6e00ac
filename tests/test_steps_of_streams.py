"""What lets a stream refute a claim in few steps: its shares of the wealth, and early fits of quick attacks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit import GaussianDP, OnlineAudit, PureDP
from dpaudit.claims import TradeoffFunction
from dpaudit.inference.sequential.alternatives import gaussian_noise
from dpaudit.inference.sequential.strategy import Strategy, strategy, stream_strategy
from dpaudit.result.evidence import OnlineEvidence


@pytest.mark.parametrize("claim", [GaussianDP(0.25), PureDP(1.0), PureDP(0.0), GaussianDP(40.0)], ids=str)
def test_the_bets_of_a_stream_differ_from_those_of_pairs_in_their_shares_only(claim: TradeoffFunction) -> None:
    ours, pairs = stream_strategy(claim), strategy(claim, edition=1)
    assert np.exp(ours.log_weights).sum() == pytest.approx(1.0, rel=1e-12)
    assert np.all(ours.log_weights >= pairs.log_weights - math.log(4) - 1e-12)
    assert np.array_equal(ours.log_payoffs0, pairs.log_payoffs0)
    assert np.array_equal(ours.log_payoffs1, pairs.log_payoffs1)
    assert np.array_equal(ours.log_prices(claim), pairs.log_prices(claim))


def test_a_stream_needs_fewer_steps_for_a_large_violation() -> None:
    """At the mean growth of the bets, a quadruple mu needs less than three quarters of the steps with pair bets."""
    claim, law = GaussianDP(0.25), gaussian_noise(1.0)

    def enough(bets: Strategy) -> int:
        growth = (bets.log_payoffs0 @ law.p + bets.log_payoffs1 @ law.q - bets.log_prices(claim)) / 2
        return next(n for n in range(1000) if np.logaddexp.reduce(bets.log_weights + n * growth) >= math.log(20))

    assert enough(stream_strategy(claim)) < 0.75 * enough(strategy(claim))


def test_the_evidence_of_a_stream_uses_the_bets_of_the_stream() -> None:
    claim = GaussianDP(0.2)
    audit = OnlineAudit(claim, attacks="logistic", seed=1)
    for step in range(60):
        audit.update(2.0 * audit.coin() + step % 3)
    evidence = audit.result().evidence
    assert isinstance(evidence, OnlineEvidence)
    assert audit.log_e > 1
    assert evidence.log_e(claim) == pytest.approx(max(path for _, path in audit._path), rel=1e-9)


class Sizes(list[int]):
    """A list that copies of an attack share."""

    def __deepcopy__(self, memo: Any) -> Sizes:
        return self


class Noted:
    """An attack that records the numbers of outputs to which it was fitted."""

    sees = "features"
    calibrated = True

    def __init__(self, *, quick: bool) -> None:
        self.name, self.quick, self.sizes = f"noted {quick}", quick, Sizes()

    def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
        self.sizes.append(len(outputs0))
        return lambda outputs: np.zeros(len(outputs))


def test_a_stream_fits_quick_attacks_early_and_often() -> None:
    quick, slow = Noted(quick=True), Noted(quick=False)
    audit = OnlineAudit(GaussianDP(1.0), attacks=[quick, slow], seed=0)
    for step in range(80):
        audit.update(float(audit.coin() + step % 3))
    assert [size for size in quick.sizes if size < 25] == [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 21, 23]
    assert [size for size in slow.sizes if size < 25] == [10, 13, 17, 23]


def test_a_quick_attack_is_not_dropped_after_a_fit_to_few_outputs() -> None:
    """Logistic regression raises an exception if no output has a finite number."""
    audit = OnlineAudit(GaussianDP(1.0), attacks="logistic", seed=0)
    for step in range(60):
        coin = audit.coin()
        audit.update(math.nan if step < 12 else float(coin + step % 3))
    assert not any("was dropped" in words for words in audit.result().warnings)
    assert audit._learner.ready


def test_a_change_of_the_encoding_refits_every_attack() -> None:
    """The new columns appear after the first fit of all attacks, between two of their fits."""
    quick, slow = Noted(quick=True), Noted(quick=False)
    audit = OnlineAudit(GaussianDP(1.0), attacks=[quick, slow], seed=0)
    while audit._learner.trials < 10:
        audit.update(float(audit.coin()))
    while audit._learner.trials < 11:
        audit.update([float(audit.coin()), 1.0])
    assert slow.sizes == [10, 11]
