"""The methods of each kind of evidence.  No audit runs here, and all random numbers have a fixed seed."""

from __future__ import annotations

import dataclasses
import json
from html import unescape

import numpy as np
import pytest

import dpaudit_reports
from dpaudit.claims import GaussianDP, PureDP
from dpaudit.inference.grid import BINS, bin_counts
from dpaudit.result import evidence as evidence_module
from dpaudit.result.evidence import (
    Evidence,
    FixedEvidence,
    Kind,
    OnlineEvidence,
    SequentialEvidence,
    fingerprint,
    given_scores,
    once,
    read_back,
)
from dpaudit.result.values import Verdict
from dpaudit.result.words import words_of
from dpaudit_reports import figures

from .reports import sample
from .scored import SURE, evidence_of

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
    "scores of runs": evidence_of("runs", 30, LEAK, 1, TARGET),
    "scores of canaries": evidence_of("canaries", 30, LEAK, 1, TARGET, SURE),
    "scores of any canaries": evidence_of("inclusion", 30, LEAK, 1, PureDP(0.5), SURE),
}


@pytest.fixture(params=KINDS)
def evidence(request: pytest.FixtureRequest) -> Evidence:
    return KINDS[request.param]


def test_every_way_to_audit_has_an_example() -> None:
    assert {type(evidence) for evidence in KINDS.values()} == set(evidence_module.KINDS.values())
    assert {evidence.kind for evidence in KINDS.values()} == set(Kind)
    for evidence in KINDS.values():
        assert evidence_module.KINDS[evidence.kind.method] is type(evidence)


def test_evidence_answers_everything(evidence: Evidence) -> None:
    asked = {name for name in vars(Evidence) if not name.startswith("_")} | set(Evidence.__annotations__)
    assert {"kind", "p_value", "lower", "from_json"} <= asked
    assert len(asked) <= 10
    assert not [name for name in asked if not hasattr(evidence, name)]
    assert not (evidence.kind.frozen and evidence.kind.anytime)
    assert (given_scores(evidence) is None) == evidence.kind.of_pairs == bool(evidence.histograms)
    assert once(evidence) <= (evidence.trials == 1)


def test_every_report_can_be_made_of_it(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first kind of evidence is tested with every verdict, and each other kind with one of the verdicts."""
    place = list(KINDS.values()).index(evidence)
    made = sample.violation()
    witness = made.witness if evidence.kind.of_pairs else None
    first = dataclasses.replace(
        made, method=evidence.kind.method, evidence=evidence, witness=witness, trials_used=evidence.trials
    )
    for verdict in list(Verdict)[place % len(Verdict) :][: 1 if place else None]:
        if place or verdict is not first.verdict:  # figures are drawn and rendered once, which takes most of the time
            monkeypatch.setattr(figures, "_svg", lambda figure: '<svg viewBox="0 0 1 1"></svg>')
        result = dataclasses.replace(first, verdict=verdict)
        result._bounds.update(first._bounds)  # bounds of the same evidence, which take most of the time
        text = unescape(dpaudit_reports.to_html([result]))
        assert words_of(evidence).others in text
        assert fingerprint(evidence) in text
        assert ("Attacks" in text) == evidence.kind.of_pairs
        assert str(result)
        first._bounds.update(result._bounds)


def test_bounds_fall_as_the_confidence_rises(evidence: Evidence) -> None:
    levels = (0.9, 0.99, 0.9999) if evidence.kind.of_pairs else (0.95, 0.99)
    for delta in (0.0, 1e-3) if evidence.kind.of_pairs else (1e-3,):
        bounds = [evidence.lower(delta, confidence=confidence) for confidence in levels]
        assert bounds == sorted(bounds, reverse=True)
        assert bounds[-1] >= 0
    mus = [evidence.lower(None, confidence=confidence) for confidence in levels]
    assert mus == sorted(mus, reverse=True)


def test_json_is_read_back(evidence: Evidence) -> None:
    values = json.loads(json.dumps(evidence.to_json()))
    again = read_back(values, TARGET)
    assert type(again) is type(evidence)
    assert again.to_json() == evidence.to_json()
    assert fingerprint(again) == fingerprint(evidence)
    assert again.p_value(TARGET) == evidence.p_value(TARGET)
    assert values["method"] == evidence.kind.method


def test_no_other_method_is_read(evidence: Evidence) -> None:
    with pytest.raises(ValueError, match=r"sequential or fixed or .* or online"):
        read_back(evidence.to_json() | {"method": "another"}, TARGET)


@pytest.mark.parametrize("confidence", [0.9, 0.99, 0.999999])
def test_a_claim_is_refuted_where_its_p_value_is_at_most_the_significance(
    evidence: Evidence, confidence: float
) -> None:
    for claim in (TARGET, PureDP(0.5), GaussianDP(LEAK), GaussianDP(3 * LEAK))[: None if evidence.kind.of_pairs else 1]:
        p_value = evidence.p_value(claim)
        assert 0 <= p_value <= 1
        assert evidence.refutes(claim, confidence=confidence) == (p_value <= 1 - confidence), claim


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ranked": [1, 2]}, "right guesses of [0-9]+ blocks in 'ranked'"),
        ({"halved": [99] * 20}, "right guesses of [0-9]+ blocks in 'halved'"),
        ({"line": "other"}, "an allowed line"),
        ({"n0": 0}, "allowed numbers of scores"),
        ({"share": 1.0}, "an allowed line and share"),
        ({"runs": 1000}, "allowed numbers"),
    ],
)
def test_impossible_scores_are_refused(changed: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_back(KINDS["scores of canaries"].to_json() | changed, TARGET)


def test_a_bound_is_where_the_p_value_crosses_the_significance() -> None:
    evidence = KINDS["sequential"]
    mu = evidence.lower(None, confidence=0.99)
    assert 0.5 < mu < LEAK
    assert evidence.p_value(GaussianDP(0.99 * mu)) <= 0.01 < evidence.p_value(GaussianDP(1.01 * mu))
