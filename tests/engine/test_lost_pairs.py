"""A pair on which runs fail takes what was won on it along, and leaves the others alone."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, GaussianDP, MechanismError, Pair, Verdict, audit
from dpaudit.engine.replay import contradictions
from dpaudit.evidence import SequentialEvidence
from dpaudit.trials.store import Store, StoreError


def test_a_pair_on_which_the_mechanism_fails_is_dropped_and_named() -> None:
    """Fails by chance < 1 in 10**6: the bad pair alone needs some thirty trials."""

    def picky(dataset: list[float], rng: np.random.Generator) -> float:
        if math.isnan(dataset[0]):
            raise ValueError("no NaN, please")
        return dataset[0] + float(rng.normal())

    pairs = [Pair([0], [math.nan], label="stray"), Pair([0], [0.5]), Pair([0], [3.0], label="far")]
    for method in ("sequential", "fixed"):
        result = audit(picky, GaussianDP(1.0), pairs, trials=3000, seed=1, method=method, confidence=0.95)
        assert result.violated
        assert result.witness is not None
        assert result.witness.pair == "far"
        (told,) = [w for w in result.warnings if "raised ValueError: no NaN, please on run 0 of d1" in w]
        assert 'in picky: raise ValueError("no NaN, please") (pair stray)' in told
        assert result.stopped_by in ("evidence", "trials")
    with pytest.raises(MechanismError, match="no NaN"):
        audit(picky, GaussianDP(1.0), pairs[:1] * 2, trials=3000, seed=0, confidence=0.95)


def test_what_was_won_on_a_pair_is_lost_when_a_run_fails_there() -> None:
    """A claim may allow failures on d1 alone, with probability delta: runs must not count by whether they succeed."""

    def failing(dataset: list[float], rng: np.random.Generator) -> float:
        if dataset[0] > 2 and rng.random() < 0.02:
            raise OSError("now and then")
        return float(rng.normal()) + min(dataset[0], 1.5)

    pairs = [Pair([0], [3.0], label="fails"), Pair([0], [0.0], label="same")]
    result = audit(failing, GaussianDP(1.0), pairs, trials=2000, confidence=1 - 1e-12, seed=2)
    assert result.verdict is Verdict.NO_VIOLATION
    evidence = result.evidence
    assert isinstance(evidence, SequentialEvidence)
    assert evidence.lost == (0,)
    assert evidence.log_e(GaussianDP(1.0)) == pytest.approx(result.history.log_e[-1])
    assert evidence.log_e(GaussianDP(1.0)) < 0  # half of the wealth was staked on all pairs together
    again = AuditResult.from_dict(json.loads(json.dumps(result.to_dict())))
    assert again.evidence.mu_lower(confidence=0.95) == evidence.mu_lower(confidence=0.95)
    fixed = audit(failing, GaussianDP(1.0), pairs, trials=5000, method="fixed", seed=2, confidence=0.95)
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
    result = audit(fails_on_the_eleventh, GaussianDP(1.0), pairs, trials=300, seed=2, confidence=0.95)
    evidence = result.evidence
    assert isinstance(evidence, SequentialEvidence)
    assert not evidence.counts[0].any()
    assert evidence.lost == (0,)
    assert result.history.log_e[-1] == pytest.approx(evidence.log_e(GaussianDP(1.0)))
    assert contradictions(result) == []


def test_a_store_that_fails_brings_no_lost_wealth_back(tmp_path: Path) -> None:
    def failing(dataset: list[float], rng: np.random.Generator) -> float:
        if dataset[0] == 4 and rng.random() < 0.02:
            raise OSError("now and then")
        return float(rng.normal()) + dataset[0]

    calls = 0
    put = Store.put

    def full(self: Store, pair: int, *block: Any) -> None:
        nonlocal calls
        calls += pair == 1
        if calls > 60:
            raise StoreError("no space left")
        put(self, pair, *block)

    pairs = [Pair([0], [4.0], label="fails"), Pair([0], [0.0], label="same")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "put", full)
        result = audit(failing, GaussianDP(5.0), pairs, trials=4000, seed=2, store=tmp_path / "s", confidence=0.95)
    assert result.stopped_by == "failure"
    assert "no space left" in result.warnings[0]
    assert result.evidence.lost == (0,)  # type: ignore[attr-defined]
    assert result.mu_lower < 0.5
