"""A failing run loses the wealth won on its pair, and does not affect other pairs."""

import functools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, GaussianDP, MechanismError, Pair, Verdict, audit
from dpaudit.catalogue import Gaussian
from dpaudit.claims import PureDP
from dpaudit.engine.replay import replay
from dpaudit.inference.sequential.strategy import log_threshold, strategy
from dpaudit.result.evidence import SequentialEvidence, fingerprint
from dpaudit.running.store import Store, StoreError

from ..scored import check_agreement


def test_a_pair_on_which_the_mechanism_fails_is_dropped_and_named() -> None:
    """Fails by chance < 1 in 10**6: the violated pair alone needs about thirty trials."""

    def picky(dataset: list[float], rng: np.random.Generator) -> float:
        if math.isnan(dataset[0]):
            raise ValueError("no NaN, please")
        return dataset[0] + float(rng.normal())

    pairs = [Pair([0], [math.nan], label="stray"), Pair([0], [0.5]), Pair([0], [3.0], label="far")]
    for method in ("sequential", "fixed"):
        result = audit(
            picky, GaussianDP(1.0), pairs, attacks="logistic", trials=400, seed=1, method=method, confirm="never"
        )
        assert result.violated
        assert result.witness.pair == "far"
        (reported,) = [w for w in result.warnings if "raised ValueError: no NaN, please on run 0 of d1" in w]
        assert 'in picky: raise ValueError("no NaN, please") (pair stray)' in reported
        assert result.stopped_by in ("evidence", "trials")
    with pytest.raises(MechanismError, match="no NaN"):
        audit(picky, GaussianDP(1.0), pairs[:1] * 2, trials=400, seed=0)


def test_what_was_won_on_a_pair_is_lost_when_a_run_fails_there() -> None:
    """A claim may allow failures on d1 only, with probability delta, so failing runs must not be left out."""

    def failing(dataset: list[float], rng: np.random.Generator) -> float:
        if dataset[0] > 2 and rng.random() < 0.02:
            raise OSError("now and then")
        return float(rng.normal()) + min(dataset[0], 1.5)

    pairs = [Pair([0], [3.0], label="fails"), Pair([0], [0.0], label="same")]
    options: dict[str, Any] = {"attacks": "median_clipped", "seed": 2}
    result = audit(failing, GaussianDP(1.0), pairs, trials=500, confidence=1 - 1e-12, **options)
    assert result.verdict is Verdict.INCONCLUSIVE
    evidence = result.evidence
    assert isinstance(evidence, SequentialEvidence)
    assert evidence.lost == (0,)
    assert evidence.log_e(GaussianDP(1.0)) == pytest.approx(result.history.log_e[-1])
    assert evidence.log_e(GaussianDP(1.0)) < 0  # half of the wealth was staked on all pairs together
    again = AuditResult.from_dict(json.loads(json.dumps(result.to_dict())))
    assert again.evidence.lower(None, confidence=0.95) == evidence.lower(None, confidence=0.95)
    fixed = audit(failing, GaussianDP(1.0), pairs, trials=500, method="fixed", confidence=0.95, **options)
    assert fixed.verdict is Verdict.INCONCLUSIVE or "same" in str(fixed.witness)


def test_a_failure_of_the_first_run_that_was_bet_on_is_lost_too() -> None:
    calls = 0

    def fails_on_the_eleventh(dataset: list[float], rng: np.random.Generator) -> float:
        nonlocal calls
        calls += dataset[0] == 4
        if dataset[0] == 4 and calls == 11:
            raise OSError("once")
        return float(rng.normal()) + dataset[0]

    pairs = [Pair([0], [4.0], label="fails"), Pair([0], [0.0], label="same")]
    result = audit(
        fails_on_the_eleventh, GaussianDP(1.0), pairs, attacks="logistic", trials=300, seed=2, confidence=0.95
    )
    evidence = result.evidence
    assert isinstance(evidence, SequentialEvidence)
    assert not evidence.counts[0].any()
    assert evidence.lost == (0,)
    assert result.history.log_e[-1] == pytest.approx(evidence.log_e(GaussianDP(1.0)))
    check_agreement(result)


def test_a_store_that_fails_brings_no_lost_wealth_back(tmp_path: Path) -> None:
    def failing(dataset: list[float], rng: np.random.Generator) -> float:
        if dataset[0] == 4 and rng.random() < 0.05:
            raise OSError("now and then")
        return float(rng.normal()) + dataset[0]

    calls = 0
    put = Store.put

    def full(self: Store, pair: int, *block: Any) -> None:
        nonlocal calls
        calls += pair == 1
        if calls > 30:
            raise StoreError("no space left")
        put(self, pair, *block)

    pairs = [Pair([0], [4.0], label="fails"), Pair([0], [0.0], label="same")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "put", full)
        options: dict[str, Any] = {"attacks": "median_clipped", "store": tmp_path / "s", "seed": 2}
        result = audit(failing, GaussianDP(5.0), pairs, trials=4000, confidence=0.95, **options)
    assert result.stopped_by == "failure"
    assert "no space left" in result.warnings[0]
    assert result.evidence.lost == (0,)  # type: ignore[attr-defined]
    assert result.mu_lower < 0.5


@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_an_audit_that_lost_a_pair_never_ends_with_no_violation_found(method: str) -> None:
    """A mechanism that sometimes fails where it leaks must not hide its leak.  The seed decides."""

    def fails_where_it_leaks(dataset: list[float], rng: np.random.Generator) -> float:
        if dataset[0] >= 1 and rng.random() < 0.02:
            raise OSError("now and then")
        return 10 * max(0.0, dataset[0] - 1) + float(rng.normal())

    pairs = [Pair([0], [0.5], label="harmless"), Pair([1], [2], label="leaks")]
    result = audit(fails_where_it_leaks, "gaussian(mu=1)", pairs, trials=500, attacks="logistic", method=method, seed=1)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any(
        "no conclusion about pair leaks: the mechanism failed on this pair" in words for words in result.warnings
    )


def test_an_audit_whose_attacks_all_failed_on_one_pair_never_ends_with_no_violation_found() -> None:
    """Nothing was learned on that pair.  The seed decides."""

    class FailsAboveFifty:
        name = "fails"

        def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
            if np.max(outputs0) > 50:
                raise ValueError("too large")
            return lambda outputs: np.asarray(outputs, dtype=float)

    def release(dataset: list[float], rng: np.random.Generator) -> float:
        return 10 * dataset[0] + float(rng.normal())

    pairs = [Pair([0], [0.01], label="harmless"), Pair([10], [11], label="leaks")]
    result = audit(release, "gaussian(mu=1)", pairs, trials=500, attacks=FailsAboveFifty(), seed=1)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("pair leaks: every attack was dropped on this pair" in words for words in result.warnings)


PAIRS = [Pair([0, 0], [0, 0.1], "replace_one", "edge"), Pair([0, 0], [0, 9], "replace_one", "edge")]


def mechanism(dataset: list[float], rng: np.random.Generator) -> float:
    return sum(dataset) + float(rng.normal())


def test_the_witness_of_the_second_pair_is_checked_and_replayed_on_this_pair() -> None:
    """Fails by chance < 1 in 10**6: the two datasets differ by 9 standard deviations of the noise."""
    result = audit(
        mechanism, "gaussian(mu=1)", PAIRS, trials=400, confidence=1 - 1e-9, seed=0, attacks="logistic", confirm=100
    )
    assert result.violated
    assert result.witness.pair == "edge (2)"
    assert [row.label for row in result.pairs] == ["edge", "edge (2)"]
    check_agreement(AuditResult.from_dict(result.to_dict()))
    assert replay(result, mechanism, PAIRS, attacks="logistic", trials=100, seed=1).reproduced


# --- audits with late bets: their evidence, their files, failures, and audits that have no late bets


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
