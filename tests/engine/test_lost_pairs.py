"""A failing run loses the wealth won on its pair, and does not affect other pairs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, GaussianDP, MechanismError, Pair, Verdict, audit
from dpaudit.engine.replay import replay
from dpaudit.result.evidence import SequentialEvidence
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
        assert result.witness is not None
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
    assert result.witness is not None
    assert result.witness.pair == "edge (2)"
    assert [row.label for row in result.pairs] == ["edge", "edge (2)"]
    check_agreement(AuditResult.from_dict(result.to_dict()))
    assert replay(result, mechanism, PAIRS, attacks="logistic", trials=100, seed=1).reproduced
