"""Audits with late bets: their evidence, their files, failures, and audits that have no late bets."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, Pair, Verdict, audit
from dpaudit.catalogue import Gaussian
from dpaudit.claims import GaussianDP, PureDP
from dpaudit.inference.sequential.strategy import log_threshold, strategy
from dpaudit.result.evidence import SequentialEvidence, fingerprint

from ..scored import check_agreement

PAIR, CLAIM = Pair([0], [1]), GaussianDP(1.0)
OPTIONS: dict[str, Any] = {"attacks": "median_clipped", "trials": 300, "confidence": 0.99, "seed": 3}


def evidence_of(result: AuditResult) -> SequentialEvidence:
    assert isinstance(result.evidence, SequentialEvidence)
    return result.evidence


def read_again(result: AuditResult) -> AuditResult:
    return AuditResult.from_dict(json.loads(json.dumps(result.to_dict())))


@functools.cache
def with_late_bets() -> AuditResult:
    """Return an audit that found nothing although its wealth was large enough for late bets.  The seed decides."""
    result = audit(Gaussian(0.87), CLAIM, PAIR, **OPTIONS)
    assert evidence_of(result).late is not None
    return result


def test_the_wealth_is_that_of_a_plain_second_version() -> None:
    result = with_late_bets()
    evidence = evidence_of(result)
    late = evidence.late
    assert late is not None
    bets = strategy(CLAIM)
    for claim in (CLAIM, GaussianDP(0.7), PureDP(2.0)):
        prices = bets.log_prices(claim)
        total = bets.log_e(claim, late.before)
        for stage in late.stages:
            for side, log_payoffs in enumerate((bets.log_payoffs0, bets.log_payoffs1)):
                for place in np.flatnonzero(stage.counts[side]):
                    won = log_payoffs[stage.bet, place] - prices[stage.bet] / 2
                    total += int(stage.counts[side, place]) * won
        assert evidence.log_e(claim) == pytest.approx(total, abs=1e-9)
    assert evidence.log_e(CLAIM) == pytest.approx(result.history.log_e[-1], abs=1e-9)
    assert np.array_equal(late.before + sum(stage.counts for stage in late.stages), evidence.counts)
    assert late.stages[0].left <= OPTIONS["trials"] // 2


def test_a_file_with_late_bets_is_read_and_agrees_with_its_counts() -> None:
    result = with_late_bets()
    again = read_again(result)
    check_agreement(again)
    assert again.mu_lower == result.mu_lower
    for delta in (0.0, 1e-3):
        first, second = (one.evidence.lower(delta, confidence=0.99) for one in (result, again))
        assert first == second


def test_bounds_use_the_larger_wealth_at_the_first_late_bet_and_at_the_end() -> None:
    evidence = evidence_of(with_late_bets())
    assert evidence.late is not None
    bets, enough = strategy(CLAIM), log_threshold(0.6)
    before, bound = evidence.late.before, evidence.lower(None, confidence=0.6)
    assert bound > 0

    def largest(mu: float) -> float:
        return max(bets.log_e(GaussianDP(mu), before), evidence.log_e(GaussianDP(mu)))

    assert largest(bound) >= enough
    assert largest(bound + 2e-4) < enough


def test_an_audit_that_ends_in_its_first_half_is_as_without_late_bets(tmp_path: Path) -> None:
    """The seed decides."""
    options = OPTIONS | {"trials": 800}
    late = audit(Gaussian(0.5), CLAIM, PAIR, **options)
    plain = audit(Gaussian(0.5), CLAIM, PAIR, **options, store=tmp_path / "store")
    assert late.trials_used == plain.trials_used < 400
    assert fingerprint(late.evidence) == fingerprint(plain.evidence)
    assert evidence_of(late).late is None


@pytest.mark.parametrize("change", ["store", pytest.param("measure", marks=pytest.mark.slow), "fixed"])
def test_audits_that_may_continue_have_no_late_bets(change: str, tmp_path: Path) -> None:
    choices: dict[str, dict[str, Any]] = {
        "store": {"store": tmp_path / "store"},
        "measure": {"measure": True},
        "fixed": {"method": "fixed"},
    }
    more = choices[change]
    result = audit(Gaussian(0.87), CLAIM, PAIR, **OPTIONS, **more)
    assert "late" not in result.evidence.to_json()


def test_a_store_continues_the_same_test_with_more_trials(tmp_path: Path) -> None:
    store = tmp_path / "store"
    first = audit(Gaussian(0.87), CLAIM, PAIR, **OPTIONS, store=store)
    continued = audit(Gaussian(0.87), CLAIM, PAIR, **OPTIONS | {"trials": 400}, store=store)
    assert continued.history.log_e[: len(first.history.log_e)].tolist() == first.history.log_e.tolist()
    assert continued.trials_used > first.trials_used


def test_several_pairs_and_running_times_have_consistent_late_bets() -> None:
    """The seed decides whether late bets are placed."""
    pairs = [Pair([0], [0.3], label="weak"), Pair([0], [1], label="strong")]
    several = audit(Gaussian(0.87), CLAIM, pairs, **OPTIONS | {"trials": 400})
    assert (late := evidence_of(several).late) is not None
    assert 1 in {stage.pair for stage in late.stages}
    check_agreement(read_again(several))

    def noisy(dataset: list[float], rng: np.random.Generator) -> float:
        return dataset[0] + 0.8 * float(rng.normal())

    timed = audit(noisy, CLAIM, PAIR, **OPTIONS | {"trials": 100, "seed": 5}, observe_time=True)
    check_agreement(read_again(timed))
    assert evidence_of(timed).coin_selected


def test_a_failure_on_the_pair_of_the_late_bets_loses_all_wealth_and_ends_the_audit() -> None:
    runs = 0

    def fails_late(dataset: list[float], rng: np.random.Generator) -> float:
        nonlocal runs
        runs += dataset[0] == 1
        if runs == 260:
            raise OSError("late")
        return dataset[0] + 0.7 * float(rng.normal())

    pairs = [Pair([0], [1], label="strong"), Pair([0], [0.1], label="weak")]
    result = audit(fails_late, CLAIM, pairs, **OPTIONS | {"trials": 500, "confidence": 1 - 1e-9})
    evidence = evidence_of(result)
    assert evidence.late is not None
    assert evidence.lost == (0,)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.stopped_by == "failure"
    assert "raised OSError: late" in result.warnings[0]
    assert result.history.log_e[-1] == -np.inf
    assert evidence.log_e(CLAIM) == -np.inf
    assert result.e_value == 0.0
    assert result.trials_used < 400  # the other pair is not run further
    check_agreement(read_again(result))
