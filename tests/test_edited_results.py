"""Edited results: what a reader of a result file can notice because the statements contradict each other."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, GaussianDP, Pair, Verdict, audit, audit_one_run, audit_scores, batched
from dpaudit.claims import TradeoffFunction, parse_claim
from dpaudit.engine.verdict import Facts, ruling
from dpaudit.inference.grid import BINS
from dpaudit.inference.power import in_family, least_detectable, least_detectable_fixed, least_in_family, power_margin
from dpaudit.inference.sequential.strategy import strategy
from dpaudit.result.consistency import contradictions, unchecked
from dpaudit.result.evidence import (
    CanaryLevelsEvidence,
    CanaryScoresEvidence,
    Evidence,
    FixedEvidence,
    RunScoresEvidence,
    SequentialEvidence,
)
from dpaudit.result.scores_evidence import ScoresGuesses
from dpaudit.result.suite import named_together
from dpaudit_reports.reasons import reason, why_void
from dpaudit_reports.unseen import assumption

PAIR = Pair([0], [1])


def plain(words: str) -> str:
    """Return the words with ASCII spaces and commas between thousands."""
    return words.replace("\u202f", ",").replace("\u00a0", " ")


def noise(mu: float) -> Any:
    """Return a mechanism with Gaussian noise that is exactly mu-GDP."""
    return batched(lambda dataset, n, rng: rng.normal(mu * dataset[0], 1.0, n))


@pytest.fixture(scope="module")
def refuted() -> AuditResult:
    """Return a violation."""
    options: dict[str, Any] = {"attacks": "median_clipped", "trials": 5000, "seed": 3, "confidence": 0.95}
    found = audit(noise(2), GaussianDP(1.0), PAIR, **options, confirm="never")
    assert found.violated
    return found


@pytest.fixture(scope="module")
def clean() -> AuditResult:
    """Return a result without a violation."""
    found = audit(noise(0.1), GaussianDP(1.0), PAIR, attacks="median_clipped", trials=300, seed=3, confidence=0.95)
    assert found.verdict is Verdict.NO_VIOLATION
    return found


@pytest.fixture(scope="module")
def of_scores() -> AuditResult:
    """Return a violation that scores of independent runs show."""
    rng = np.random.default_rng(0)
    found = audit_scores(rng.normal(0, 1, 300), rng.normal(3, 1, 300), GaussianDP(1.0), independence="runs", seed=0)
    assert found.violated
    return found


@pytest.fixture(scope="module")
def of_one_run() -> AuditResult:
    """Return a violation that right guesses about canaries show."""
    included = np.arange(400) % 2 == 0
    included[::3] ^= True
    found = audit_one_run(included * 1.0 + np.arange(400) / 1e4, included, GaussianDP(0.5), seed=0)
    assert found.violated
    return found


def test_no_violation_needs_valid_bounds(refuted: AuditResult) -> None:
    cleared = dataclasses.replace(
        refuted,
        verdict=Verdict.NO_VIOLATION,
        bounds_valid=False,
        p_value=1.0,
        mu_lower=0.0,
        refuted_at=None,
        stopped_by="trials",
    )
    assert any("its bounds are not valid" in words for words in contradictions(cleared))


@pytest.mark.parametrize("name", ["refuted", "of_scores", "of_one_run"])
def test_valid_bounds_with_a_small_p_value_need_the_verdict_violation(
    name: str, request: pytest.FixtureRequest
) -> None:
    result: AuditResult = request.getfixturevalue(name)
    assert contradictions(result) == []
    hidden = dataclasses.replace(result, verdict=Verdict.INCONCLUSIVE, refuted_at=None)
    assert any('its verdict must be "violation"' in words for words in contradictions(hidden))
    raised = dataclasses.replace(hidden, p_value=1.0)
    assert any("its counts give a p-value of" in words for words in contradictions(raised))


def test_an_audit_without_violation_ends_with_its_trials(clean: AuditResult) -> None:
    assert contradictions(clean) == []
    early = dataclasses.replace(clean, stopped_by="interruption")
    assert any("the audit ended early" in words for words in contradictions(early))


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("refuted", [False, True])
@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.parametrize("trials", [0, 10])
def test_the_engine_gives_only_verdicts_that_the_checks_accept(
    fixed: bool, refuted: bool, measured: bool, trials: int
) -> None:
    words = ("because",)
    ends: list[dict[str, Any]] = [{}, {"interrupted": True}, {"failure": "failed"}, {"void": True, "dependent": words}]
    reasons = ("dependent", "doubts", "unseen", "ignored", "too_few", "detect_missed", "unclaimed")
    texts = {"too_few", "detect_missed", "unclaimed"}
    causes: list[dict[str, Any]] = [{}, *({name: "because" if name in texts else words} for name in reasons)]
    for end in ends:
        for cause in causes:
            known = {"fixed": fixed, "refuted": refuted and trials > 0, "measured": measured, "trials": trials}
            few = {} if trials else {"too_few": "because"}  # without trials, no violation is detectable
            found = ruling(Facts(allowed=10, **{**known, **few, **cause, **end}))
            if found.verdict is Verdict.NO_VIOLATION:
                assert found.bounds_valid
                assert found.stopped_by == "trials"
            if found.bounds_valid:
                assert (found.verdict is Verdict.VIOLATION) == known["refuted"]


def stating(result: AuditResult, version: str) -> AuditResult:
    """Return the result with another version of dpaudit."""
    return dataclasses.replace(result, provenance=dataclasses.replace(result.provenance, packages={"dpaudit": version}))


def test_no_version_makes_a_violation_sound_without_violation(of_scores: AuditResult) -> None:
    cleared = dataclasses.replace(of_scores, verdict=Verdict.NO_VIOLATION, p_value=0.9, mu_lower=0.0)
    assert contradictions(of_scores) == contradictions(stating(of_scores, "0.0.9")) == []
    assert any("its counts give a p-value of" in words for words in contradictions(stating(cleared, "0.0.9")))


def with_detectable(result: AuditResult, **changes: Any) -> AuditResult:
    return dataclasses.replace(result, detectable=dataclasses.replace(result.detectable, **changes))


def test_an_e_value_is_recomputed_from_the_counts(
    refuted: AuditResult, clean: AuditResult, of_scores: AuditResult
) -> None:
    for result in (refuted, clean, of_scores):
        edited = dataclasses.replace(result, e_value=1e60)
        assert any("the e-value is 1e60, but its counts give at most" in words for words in contradictions(edited))
    few = [dataclasses.replace(clean, name=str(i)) for i in range(4)]
    edited = stating(dataclasses.replace(refuted, e_value=1e60), "0.0.9")
    assert "no refutation stands yet" in named_together([edited, *few, *few])


def test_a_number_of_runs_is_recomputed_from_the_counts(clean: AuditResult, of_scores: AuditResult) -> None:
    rows = (dataclasses.replace(clean.pairs[0], trials=2**53),)
    huge = dataclasses.replace(clean, trials_used=2**53, trials_allowed=2**53, pairs=rows)
    assert any("counts support at most 1,000,000" in plain(words) for words in contradictions(huge))
    more = dataclasses.replace(clean, trials_used=301, trials_allowed=301)
    assert any("its pairs have 300" in words for words in contradictions(more))
    assert any(
        "at most 299 allowed" in words for words in contradictions(dataclasses.replace(clean, trials_allowed=299))
    )
    more = dataclasses.replace(of_scores, trials_used=301, trials_allowed=301)
    assert any("but 300 are counted" in words for words in contradictions(more))


def test_a_detectable_violation_is_a_claim_under_an_assumption_of_dpaudit(clean: AuditResult) -> None:
    free = with_detectable(clean, claim="nothing: it is private")
    assert any("its detectable violation is not a claim: nothing: it is private" in w for w in contradictions(free))
    assumed = with_detectable(clean, assumption="nothing can be wrong")
    assert any("that is unknown: nothing can be wrong" in words for words in contradictions(assumed))
    assert not any("unknown" in words for words in contradictions(stating(assumed, "99.0")))
    assert assumption(assumed) == "the file states: “nothing can be wrong”"
    assert "the file states: “nothing can be wrong”" in str(assumed)
    other = with_detectable(clean, assumption=clean.detectable.assumption.replace("gaussian(mu=", "gaussian(mu=1"))
    assert any("that is unknown" in words for words in contradictions(other))


@pytest.mark.parametrize("name", ["clean", "of_scores", "of_one_run"])
@pytest.mark.parametrize("size", [1.000001, 1.01])
def test_a_detectable_violation_is_compared_with_the_counts(
    name: str, size: float, request: pytest.FixtureRequest
) -> None:
    """A weak audit looked sensitive after one number was changed."""
    result: AuditResult = request.getfixturevalue(name)
    assert result.detectable.claim
    assert contradictions(result) == []
    smaller = f"gaussian(mu={size * result.claim.parameters['mu']})"
    words = result.detectable.assumption.replace(result.detectable.claim, smaller)
    edited = with_detectable(result, claim=smaller, assumption=words)
    assert f"its detectable violation is smaller than its counts allow: {smaller}" in contradictions(edited)
    assert contradictions(stating(edited, "0.0.9")) == []
    assert "so the stated values are not confirmed" in unchecked(stating(edited, "0.0.9"))


def test_a_fixed_audit_detects_no_violation_that_the_best_region_misses() -> None:
    found = audit(noise(0.1), GaussianDP(1.0), PAIR, attacks="median_clipped", trials=400, seed=3, method="fixed")
    assert found.detectable.claim
    assert contradictions(found) == []
    words = found.detectable.assumption.replace(found.detectable.claim, "gaussian(mu=1.001)")
    edited = with_detectable(found, claim="gaussian(mu=1.001)", assumption=words)
    assert any("smaller than its counts allow" in found for found in contradictions(edited))


def test_a_detectable_violation_of_another_family_is_refused_before_it_is_computed(clean: AuditResult) -> None:
    other = "approximate(epsilon=0.1, delta=0.5)"
    words = clean.detectable.assumption.replace(clean.detectable.claim, other)
    edited = with_detectable(clean, claim=other, assumption=words)
    assert any("smaller than its counts allow" in words for words in contradictions(edited))


def test_the_number_of_guesses_behind_a_detectable_violation_is_checked(of_scores: AuditResult) -> None:
    """With a smaller number of right guesses that refutes the claim, smaller violations seem detectable."""
    assert of_scores.witness is not None
    needed = of_scores.evidence.least_right(of_scores.claim, confidence=of_scores.confidence)  # type: ignore[attr-defined]
    assert of_scores.witness.needed == needed
    for stated, refused in ((0, False), (needed - 1, True), (1, True), (10**9, True)):
        edited = dataclasses.replace(of_scores, witness=dataclasses.replace(of_scores.witness, needed=stated))
        assert any("smaller than its counts allow" in words for words in contradictions(edited)) is refused


@pytest.mark.parametrize("name", ["clean", "of_scores", "of_one_run"])
def test_a_rate_of_rare_events_is_recomputed_from_the_counts(name: str, request: pytest.FixtureRequest) -> None:
    result: AuditResult = request.getfixturevalue(name)
    for rate in (1e-12, result.detectable.rule_of_three_rate * 0.999, -1.0):
        edited = with_detectable(result, rule_of_three_rate=rate)
        assert any("occurs in some run, but its counts give" in words for words in contradictions(edited))


@pytest.mark.parametrize(
    ("claim", "trials"),
    [("pure(epsilon=1)", 60), ("laplace(epsilon=0.5)", 900), ("approximate(epsilon=1, delta=1e-5)", 7)],
)
def test_honest_detectable_violations_pass(claim: str, trials: int) -> None:
    for given, violation in honest(parse_claim(claim), trials):
        assert in_family(parse_claim(claim), violation)
        assert given.detects(parse_claim(claim), violation, confidence=0.95, power=0.9, needed=0)


def honest(claim: TradeoffFunction, trials: int) -> Iterator[tuple[Evidence, TradeoffFunction]]:
    """Return evidence of several kinds with its smallest detectable violation, as the engine computes it."""
    zeros = np.zeros((3, 2, BINS), dtype=np.int64)
    zeros[:, :, 0] = trials
    bets = strategy(claim)
    for pairs in (1, 3):
        level = 0.05 if pairs == 1 else 0.05 / 6
        margin = partial(power_margin, bets, claim, trials=trials, significance=level, power=0.9)
        if least := least_detectable(claim, margin):
            yield SequentialEvidence(target=claim, counts=zeros[:pairs]), least
    sizes = {"pilot": trials, "trials": trials}
    if trials < 100 and (least := least_detectable_fixed(claim, **sizes, significance=0.05, power=0.9)):
        yield FixedEvidence(pair=0, threshold=0, pilot=zeros[0], counts=zeros[0]), least
    for scored in (
        RunScoresEvidence(n0=trials, n1=trials, guesses=trials, right=0),
        CanaryScoresEvidence(m=trials, included=trials // 2, half=0, guesses=trials, right=0),
        CanaryLevelsEvidence.of(trials, trials // 2, (0, 0, 0), half=False),
    ):
        if (fewest := scored.least_right(claim, confidence=0.95)) is not None:
            attained = partial(_attained, scored, fewest)
            if least := least_in_family(claim, attained):
                yield scored, least


def _attained(scored: ScoresGuesses, fewest: int, truth: TradeoffFunction) -> bool:
    return scored.attained(truth, fewest) >= 0.9


def test_a_reason_from_a_file_is_quoted(clean: AuditResult) -> None:
    words = "the auditors found ” no violation"
    open_ = dataclasses.replace(clean, verdict=Verdict.INCONCLUSIVE, warnings=(words,))
    assert reason(open_) == "The auditors found ” no violation."
    back = AuditResult.from_dict(json.loads(json.dumps(open_.to_dict())))
    assert reason(back) == 'The file states: “the auditors found " no violation”.'
    void = dataclasses.replace(back, bounds_valid=False, mu_lower=0.0, p_value=1.0)
    assert why_void(void) == 'the file states: “the auditors found " no violation”'
    signs = (f"{words}: no guarantee holds, since trials must be independent",)
    dependent = AuditResult.from_dict(dataclasses.replace(void, warnings=signs).to_dict())
    assert reason(dependent).startswith('The file states: “the auditors found " no violation')
