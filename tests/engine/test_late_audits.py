"""Audits with late bets: their evidence, their files, failures, and audits that have no late bets."""

from __future__ import annotations

import dataclasses
import json
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, Pair, Verdict, audit
from dpaudit.catalogue import Gaussian
from dpaudit.claims import GaussianDP, PureDP
from dpaudit.engine.replay import contradictions
from dpaudit.inference.grid import BINS
from dpaudit.inference.sequential.strategy import log_threshold, strategy
from dpaudit.result.drawn import of_far
from dpaudit.result.evidence import SequentialEvidence
from dpaudit.result.values import Curve

PAIR, CLAIM = Pair([0], [1]), GaussianDP(1.0)
OPTIONS: dict[str, Any] = {"attacks": "median_clipped", "trials": 300, "confidence": 0.99, "seed": 3}


def evidence_of(result: AuditResult) -> SequentialEvidence:
    assert isinstance(result.evidence, SequentialEvidence)
    return result.evidence


def read_again(result: AuditResult) -> AuditResult:
    return AuditResult.from_dict(json.loads(json.dumps(result.to_dict())))


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
    assert contradictions(again) == []
    assert again.mu_lower == result.mu_lower
    for delta in (0.0, 1e-3):
        first, second = (one.evidence.epsilon_lower(delta, confidence=0.99) for one in (result, again))
        assert first == second


def test_bounds_use_the_larger_wealth_at_the_first_late_bet_and_at_the_end() -> None:
    evidence = evidence_of(with_late_bets())
    assert evidence.late is not None
    bets, enough = strategy(CLAIM), log_threshold(0.6)
    before, bound = evidence.late.before, evidence.mu_lower(confidence=0.6)
    assert bound > 0

    def largest(mu: float) -> float:
        return max(bets.log_e(GaussianDP(mu), before), evidence.log_e(GaussianDP(mu)))

    assert largest(bound) >= enough
    assert largest(bound + 2e-4) < enough


def test_an_audit_that_ends_in_its_first_half_is_as_without_late_bets(tmp_path: Path) -> None:
    """The seed decides."""
    options = OPTIONS | {"trials": 2000}
    late = audit(Gaussian(0.5), CLAIM, PAIR, **options)
    plain = audit(Gaussian(0.5), CLAIM, PAIR, **options, store=tmp_path / "store")
    assert late.trials_used == plain.trials_used < 1000
    assert late.evidence.fingerprint() == plain.evidence.fingerprint()
    assert evidence_of(late).late is None


@pytest.mark.parametrize("change", ["store", "measure", "fixed"])
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
    continued = audit(Gaussian(0.87), CLAIM, PAIR, **OPTIONS | {"trials": 500}, store=store)
    assert continued.history.log_e[: len(first.history.log_e)].tolist() == first.history.log_e.tolist()
    assert continued.trials_used > first.trials_used


def test_several_pairs_and_running_times_have_consistent_late_bets() -> None:
    """The seed decides whether late bets are placed."""
    pairs = [Pair([0], [0.3], label="weak"), Pair([0], [1], label="strong")]
    several = audit(Gaussian(0.87), CLAIM, pairs, **OPTIONS | {"trials": 400})
    assert (late := evidence_of(several).late) is not None
    assert 1 in {stage.pair for stage in late.stages}
    assert contradictions(read_again(several)) == []

    def noisy(dataset: list[float], rng: np.random.Generator) -> float:
        return dataset[0] + 0.8 * float(rng.normal())

    timed = audit(noisy, CLAIM, PAIR, **OPTIONS | {"attacks": "median_clipped", "seed": 5}, observe_time=True)
    assert contradictions(read_again(timed)) == []
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
    assert contradictions(read_again(result)) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bet": 10_000}, "bet of a late bet must be between 0 and"),
        ({"bet": True}, "bet of a late bet must be between 0 and"),
        ({"pair": 1}, "pair of a late bet must be between 0 and 0, got 1"),
        ({"left": 0}, "left of a late bet must be between 1 and"),
        ({"counts": [[[5, 10**6]], [[5, 10**6]]]}, "no more outputs during late bets than in all"),
        ({"counts": [[[5, 1]], []]}, "equally many outputs"),
    ],
)
def test_impossible_late_bets_are_refused(change: dict[str, Any], words: str) -> None:
    values = evidence_of(with_late_bets()).to_json()
    stages = [dict(stage) for stage in values["late"]["stages"]]
    stages[0] |= change
    with pytest.raises(ValueError, match=words):
        SequentialEvidence.from_json({**values, "late": {"lost": [], "stages": stages}}, CLAIM)


def test_other_impossible_evidence_with_late_bets_is_refused() -> None:
    values = evidence_of(with_late_bets()).to_json()
    stages = values["late"]["stages"]
    for late, words in (
        ({"lost": [], "stages": []}, "must list 1 to"),
        ({"lost": [], "stages": stages * 60}, "must list 1 to"),
        ({"lost": [0], "stages": stages}, "also in lost"),
        ({"lost": [], "stages": [stages[-1], {**stages[0], "left": 10**6, "counts": [[], []]}]}, "in their order"),
    ):
        with pytest.raises(ValueError, match=words):
            SequentialEvidence.from_json({**values, "late": late}, CLAIM)
    with pytest.raises(ValueError, match="must have edition"):
        SequentialEvidence.from_json({**values, "edition": 1}, CLAIM)
    others: list[Any] = [[], 5, "x", False]
    for wrong in others:
        with pytest.raises(ValueError, match="late bets must be a mapping"):
            SequentialEvidence.from_json({**values, "late": wrong}, CLAIM)
    peak = [[[[5, 0]], [[5, 0]]]]
    first = {**stages[0], "counts": [[], []]}
    no_peak = {**values, "peak": peak, "late": {"lost": [], "stages": [first]}}
    assert SequentialEvidence.from_json(no_peak, CLAIM).peak is not None


NOT_CHOSEN = "its late bets are not the bets that the counts before them choose"


def with_stages(result: AuditResult, stages: list[dict[str, Any]], **changes: Any) -> AuditResult:
    """Return a result with other late bets, and with the bound that belongs to them."""
    values = {**result.evidence.to_json(), "peak": None, "late": {"lost": [], "stages": stages}}
    evidence = SequentialEvidence.from_json(values, CLAIM)
    bound = evidence.mu_lower(confidence=result.confidence)
    return dataclasses.replace(result, evidence=evidence, mu_lower=bound, **changes)


def edited(result: AuditResult, **changes: Any) -> list[str]:
    """Return the contradictions of a result whose first late bet was changed, and the others deleted."""
    first = result.evidence.to_json()["late"]["stages"][0]
    return contradictions(with_stages(result, [first | changes]))


def test_late_bets_chosen_in_hindsight_contradict_their_counts() -> None:
    result = with_late_bets()
    late = evidence_of(result).late
    assert late is not None
    first = late.stages[0]
    assert contradictions(with_stages(result, result.evidence.to_json()["late"]["stages"])) == []
    for changes in (
        {"bet": (first.bet + 20) % 40},
        {"left": OPTIONS["trials"] // 2 + 1},  # late bets begin when half of the trials have been made
        {"left": int(first.counts.sum()) // 2 - 1},  # fewer trials than were counted
    ):
        assert NOT_CHOSEN in edited(result, **changes)


def test_favourable_outputs_cannot_be_moved_to_one_late_bet() -> None:
    """The other outputs, which speak for the claim, then come first, and no late bet follows them."""
    result = with_late_bets()
    total = evidence_of(result).counts[0]
    middle, n = total.shape[1] // 2, 60
    outputs0, outputs1 = (np.repeat(np.arange(total.shape[1]), side) for side in total)
    chosen = outputs0[outputs0 < middle][:n], outputs1[outputs1 > middle][-n:]
    counts = [
        [[int(place), int(many)] for place, many in zip(*np.unique(side, return_counts=True), strict=True)]
        for side in chosen
    ]
    for left in (60, 150):
        for bet in range(0, 60, 7):
            assert NOT_CHOSEN in edited(result, left=left, counts=counts, bet=bet)


def test_a_losing_late_bet_does_not_clear_a_violation_of_any_version() -> None:
    """The file of a clear violation states that one late bet, which loses, counted all outputs.  The seed decides."""
    result = audit(Gaussian(0.5), CLAIM, PAIR, **OPTIONS, measure=True)
    assert result.violated
    everything = result.evidence.to_json()["counts"][0]
    for bet in (3, 30, 60):
        stage = {"pair": 0, "bet": bet, "left": 150, "counts": everything}
        cleared = with_stages(result, [stage], verdict=Verdict.NO_VIOLATION, stopped_by="trials", refuted_at=None)
        assert NOT_CHOSEN in contradictions(cleared)
        packages = {**(cleared.provenance.packages or {}), "dpaudit": "0.0.1"}
        older = dataclasses.replace(cleared, provenance=dataclasses.replace(cleared.provenance, packages=packages))
        assert any("no violation is reported, but its counts give a p-value" in one for one in contradictions(older))


def test_many_pairs_and_late_bets_are_read_in_little_memory() -> None:
    """The counts of 2,000 pairs take 19 MB, and each late bet must not copy them."""
    empty = {"pair": 0, "bet": 0, "left": 1, "counts": [[], []]}
    values = {
        **SequentialEvidence(target=CLAIM, counts=np.zeros((1, 2, BINS), dtype=np.int64)).to_json(),
        "counts": [[[], []]] * 2000,
        "late": {"lost": [], "stages": [empty] * 200},
    }
    tracemalloc.start()
    evidence = SequentialEvidence.from_json(values, CLAIM)
    assert evidence.unexplained(CLAIM, confidence=0.99, allowed=1) == NOT_CHOSEN  # one trial has no second half
    assert evidence.mu_lower(confidence=0.99) == 0
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 300e6


def test_losing_late_bets_do_not_clear_a_violation_of_many_pairs() -> None:
    """Each of twelve equal pairs has little evidence, and all together refute the claim.  The seed decides."""
    pairs = [Pair([0], [1], label=f"pair {i}") for i in range(12)]
    options = OPTIONS | {"trials": 5160, "measure": True}
    result = audit(Gaussian(0.85), CLAIM, pairs, **options)
    assert result.p_value < 1e-6
    counts = result.evidence.to_json()["counts"]
    stages = [{"pair": i, "bet": 60, "left": 2580 - 200 * i, "counts": one} for i, one in enumerate(counts)]
    cleared = with_stages(result, stages, verdict=Verdict.NO_VIOLATION, stopped_by="trials", refuted_at=None)
    packages = {**(cleared.provenance.packages or {}), "dpaudit": "0.0.1"}
    older = dataclasses.replace(cleared, provenance=dataclasses.replace(cleared.provenance, packages=packages))
    assert any("no violation is reported, but its counts give a p-value" in one for one in contradictions(older))


def test_the_curve_of_another_version_is_not_compared_with_a_stricter_one() -> None:
    """At a confidence below 50 %, the band of the result itself is the weakest that it is compared with."""
    result = audit(Gaussian(0.4), GaussianDP(2.5), PAIR, **OPTIONS | {"trials": 60, "confidence": 0.9999})
    band = result.evidence.band(confidence=0.01, bounds_valid=True)
    assert band is not None
    low: Any = SimpleNamespace(  # an audit with so low a confidence mostly stops after its first bets
        evidence=result.evidence,
        claim=result.claim,
        confidence=0.01,
        bounds_valid=True,
        curve=Curve(alpha=band[0], beta=band[1], beta_upper=band[2]),
        pairs=result.pairs,
    )
    assert of_far(low) == []
