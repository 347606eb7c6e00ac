"""The methods of each kind of evidence.  No audit runs here, and all random numbers have a fixed seed."""

from __future__ import annotations

import dataclasses
import json
import math
from html import unescape

import numpy as np
import pytest

import dpaudit_reports
from dpaudit.claims import GaussianDP, LaplaceDP, PureDP
from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.result import evidence as evidence_module
from dpaudit.result.base_evidence import ScoresGuesses
from dpaudit.result.evidence import (
    CanariesInRunsEvidence,
    CanaryLevelsEvidence,
    CanaryScoresEvidence,
    DrawnCanariesEvidence,
    DrawnRunEvidence,
    Evidence,
    FixedEvidence,
    OneRunScoresEvidence,
    OnlineEvidence,
    RunScoresEvidence,
    SequentialEvidence,
    SeveralDrawnRunsEvidence,
    SeveralRunsEvidence,
    WeightedGuessesEvidence,
    read_back,
)
from dpaudit.result.values import Verdict
from dpaudit_reports.figures import canvas

from .reports import sample

TARGET = GaussianDP(0.5)
LEAK = 2.0


def counts(trials: int = 400) -> np.ndarray:
    """Return bin counts of the log-likelihood ratios of N(LEAK, 1) to N(0, 1)."""
    rng = np.random.default_rng(1)
    outputs = rng.normal(size=trials), rng.normal(LEAK, size=trials)
    return np.array([bin_counts(LEAK * side - LEAK**2 / 2) for side in outputs])


KINDS: dict[str, Evidence] = {
    "sequential": SequentialEvidence(target=TARGET, counts=np.array([counts(), counts(100)]), lost=(1,)),
    "coin_selected": SequentialEvidence(target=TARGET, counts=counts()[None], coin_selected=True),
    "online": OnlineEvidence(target=TARGET, counts=counts()[None], peak=counts()[None] // 2, steps=1000),
    "fixed": FixedEvidence(pair=1, threshold=BINS // 2, pilot=counts(50), counts=counts()),
    "scores of runs": RunScoresEvidence(n0=50, n1=50, guesses=40, right=35),
    "scores of canaries": CanaryScoresEvidence(m=100, included=45, half=0, guesses=40, right=35),
    "scores of canaries in runs": CanariesInRunsEvidence(m=100, included=45, half=0, guesses=40, right=35, runs=3),
    "levels of canaries": CanaryLevelsEvidence.of(100, 45, (14, 50, 72), half=False),
    "scores of one run": OneRunScoresEvidence(m=100, included=50, half=1, guesses=40, right=35),
    "scores of drawn canaries": DrawnCanariesEvidence(n0=55, n1=45, guesses=40, right=35),
    "scores of a drawn run": DrawnRunEvidence(m=100, included=45, guesses=40, right=35),
    "scores of several runs": SeveralRunsEvidence(runs=((60, 25, 20), (40, 21, 20)), guesses=40, right=35),
    "scores of several drawn runs": SeveralDrawnRunsEvidence(runs=((60, 25, 20), (40, 17, 20)), guesses=40, right=35),
    "weighted scores of one run": WeightedGuessesEvidence(
        m=100, included=45, half=0, guesses=40, right=35, numbers=(10, 30)
    ),
}


@pytest.fixture(params=KINDS)
def evidence(request: pytest.FixtureRequest) -> Evidence:
    return KINDS[request.param]


def test_every_way_to_audit_has_an_example() -> None:
    assert {type(evidence) for evidence in KINDS.values()} == set(evidence_module.KINDS)
    assert len({kind.method for kind in evidence_module.KINDS}) == len(evidence_module.KINDS)


def test_evidence_answers_everything(evidence: Evidence) -> None:
    asked = {name for name in vars(Evidence) if not name.startswith("_")} | set(Evidence.__annotations__)
    assert {"method", "words", "p_value", "edges", "from_json"} <= asked
    assert not [name for name in asked if not hasattr(evidence, name)]
    for name in ("anytime", "joint", "frozen", "of_pairs", "once"):
        assert isinstance(getattr(evidence, name), bool)
    assert evidence.anytime <= evidence.of_pairs
    assert not (evidence.frozen and evidence.anytime)
    assert (evidence.guessed is None) == evidence.of_pairs == bool(len(evidence.edges))
    assert evidence.once <= (evidence.trials == 1)


def test_every_report_can_be_made_of_it(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first kind of evidence is tested with every verdict, and each other kind with one of the verdicts."""
    place = list(KINDS.values()).index(evidence)
    made = sample.violation()
    witness = made.witness if evidence.of_pairs else None
    first = dataclasses.replace(
        made, method=evidence.method, evidence=evidence, witness=witness, trials_used=evidence.trials
    )
    for verdict in list(Verdict)[place % len(Verdict) :][: 1 if place else None]:
        if place or verdict is not first.verdict:  # figures are drawn and rendered once, which takes most of the time
            monkeypatch.setattr(canvas, "_svg", lambda figure: '<svg viewBox="0 0 1 1"></svg>')
        result = dataclasses.replace(first, verdict=verdict)
        result._bounds.update(first._bounds)  # bounds of the same evidence, which take most of the time
        text = unescape(dpaudit_reports.to_html([result]))
        for part in (evidence.words.principle.split("$")[0], evidence.words.references[0][:30], evidence.fingerprint()):
            assert part in text
        assert ("Attacks" in text) == evidence.of_pairs
        assert str(result)
        first._bounds.update(result._bounds)


def test_bounds_fall_as_the_confidence_rises(evidence: Evidence) -> None:
    epsilon = evidence.epsilon_lower(1e-3, confidence=0.9)
    assert (
        evidence.epsilon_lower(0.0, confidence=0.9) >= epsilon >= evidence.epsilon_lower(1e-3, confidence=0.9999) >= 0
    )
    assert evidence.mu_lower(confidence=0.9) >= evidence.mu_lower(confidence=0.9999) >= 0


def test_json_is_read_back(evidence: Evidence) -> None:
    values = json.loads(json.dumps(evidence.to_json()))
    again = read_back(values, TARGET)
    assert type(again) is type(evidence)
    assert again.to_json() == values
    assert again.fingerprint() == evidence.fingerprint()
    assert again.p_value(TARGET) == evidence.p_value(TARGET)
    assert values["method"] == evidence.method


def test_no_other_method_is_read(evidence: Evidence) -> None:
    with pytest.raises(ValueError, match=r"sequential or fixed or .* or online"):
        read_back(evidence.to_json() | {"method": "another"}, TARGET)


@pytest.mark.parametrize("confidence", [0.9, 0.99, 0.999999])
def test_a_claim_is_refuted_where_its_p_value_is_at_most_the_significance(
    evidence: Evidence, confidence: float
) -> None:
    for claim in (TARGET, PureDP(0.5), GaussianDP(LEAK), GaussianDP(3 * LEAK)):
        p_value = evidence.p_value(claim)
        assert 0 <= p_value <= 1
        assert evidence.refutes(claim, confidence=confidence) == (p_value <= 1 - confidence), claim


@pytest.mark.parametrize(
    "guessed",
    [
        OneRunScoresEvidence(m=100, included=45, half=0, guesses=40, right=0),
        DrawnRunEvidence(m=100, included=33, guesses=40, right=0),
        KINDS["scores of several runs"],
        KINDS["weighted scores of one run"],
    ],
)
def test_the_least_number_of_right_guesses_is_the_first_whose_p_value_is_at_most_the_significance(
    guessed: ScoresGuesses,
) -> None:
    """A search may end at a quick upper bound of the p-value, but not where only the sharp one is small enough."""
    least = guessed.least_right(TARGET, confidence=0.965)
    assert least is not None
    assert guessed.chance(TARGET, least) <= 0.035 < guessed.chance(TARGET, least - 1)
    for right in (30, 36, 40):
        assert guessed.chance(TARGET, right) <= guessed.chance(TARGET, right, enough=0.035)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"numbers": [62, 16]}, "in each level"),
        ({"rights": [17, 50, 72]}, "in each level"),
        ({"weights": [3, 2, 1]}, "the weights"),
        ({"numbers": [16, 62, 100]}, "must have two numbers"),
    ],
)
def test_impossible_levels_are_refused(changed: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_back(KINDS["levels of canaries"].to_json() | changed, TARGET)


def test_levels_bound_epsilon_as_one_number_of_guesses_does() -> None:
    """The bounds without a family, and those of approximate families, use the first two levels only."""
    evidence = KINDS["levels of canaries"]
    alone = CanaryScoresEvidence(m=100, included=45, half=0, guesses=62, right=50)
    assert evidence.epsilon_lower(1e-5, confidence=0.95) == alone.epsilon_lower(1e-5, confidence=0.95) > 0
    pure = evidence.parameter_lower(PureDP, significance=0.05, precision=1e-3)
    assert pure == pytest.approx(alone.parameter_lower(PureDP, significance=0.05, precision=1e-3), rel=2e-3)
    mu = evidence.mu_lower(confidence=0.95)
    assert mu == pytest.approx(evidence.parameter_lower(GaussianDP, significance=0.05, precision=1e-4), rel=1e-9)
    laplace = evidence.parameter_lower(LaplaceDP, significance=0.05, precision=1e-3)
    assert evidence.p_value(LaplaceDP(laplace)) <= 0.05 < evidence.p_value(LaplaceDP(1.005 * laplace))


def test_the_power_of_several_numbers_is_that_of_simulated_likelihood_ratios() -> None:
    """Simulates 1,000 runs; the approximation may be wrong by 3 %.  Fails by chance < 1 in 10**6."""
    rng, m, mu, numbers = np.random.default_rng(5), 400, 1.0, (30, 90)
    evidence = WeightedGuessesEvidence(m=m, included=190, half=0, guesses=120, right=0, numbers=numbers)
    coins = rng.random((1000, m)) < 0.5
    scores = rng.normal(mu * coins, 1.0) - mu / 2
    order = np.argsort(-np.abs(scores), axis=1)
    right = np.take_along_axis((scores > 0) == coins, order, axis=1)
    totals = sum(right[:, :r].sum(axis=1) for r in numbers)
    for least in (95, 100, 105):
        share = evidence.attained(GaussianDP(mu), least)
        assert float(np.mean(totals >= least)) == pytest.approx(
            share, abs=0.03 + 5 * math.sqrt(share * (1 - share) / 1000)
        )


def test_a_bound_is_where_the_p_value_crosses_the_significance() -> None:
    evidence = KINDS["sequential"]
    mu = evidence.mu_lower(confidence=0.99)
    assert 0.5 < mu < LEAK
    assert evidence.p_value(GaussianDP(0.99 * mu)) <= 0.01 < evidence.p_value(GaussianDP(1.01 * mu))
