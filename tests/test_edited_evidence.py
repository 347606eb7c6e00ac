"""Edited evidence: counts that were changed so that a result shows another verdict."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
import yaml

from dpaudit import AuditResult, GaussianDP, OnlineAudit, Pair, Verdict, audit, batched
from dpaudit.inference.grid import BINS
from dpaudit.inference.sequential.alternatives import gaussian_noise
from dpaudit.inference.sequential.planned import Planned
from dpaudit.result.consistency import contradictions, unchecked
from dpaudit.result.evidence import OnlineEvidence, SequentialEvidence
from dpaudit.result.recorded_detect import detect_of

PAIR = Pair([0], [1])
CLAIM = GaussianDP(1.0)


def noise(mu: float) -> Any:
    """Return a mechanism with Gaussian noise that is exactly mu-GDP."""
    return batched(lambda dataset, n, rng: rng.normal(mu * dataset[0], 1.0, n))


def audited(mu: float, trials: int = 1000, **options: Any) -> AuditResult:
    """Audit the claim of 1-GDP."""
    given: dict[str, Any] = {"attacks": "median_clipped", "seed": 3, "confidence": 0.95, "confirm": "never"}
    return audit(noise(mu), CLAIM, PAIR, trials=trials, **given, **options)


def edited(result: AuditResult, **changes: Any) -> list[str]:
    """Return the contradictions of a result whose file was edited; keys of `evidence` are named `evidence_KEY`."""
    values = json.loads(json.dumps(result.to_dict()))
    for key, value in changes.items():
        place = values["evidence"] if key.startswith("evidence_") else values
        place[key.removeprefix("evidence_")] = value
    return contradictions(AuditResult.from_dict(values))


def test_a_lost_pair_does_not_clear_a_violation() -> None:
    """The engine reports a pair with a failed run as not examined, so the verdict is inconclusive or a violation."""
    violation = audited(3.0)
    assert violation.violated
    found = edited(
        violation,
        evidence_lost=[0],
        verdict="no violation found",
        p_value=1.0,
        e_value=0.0,
        mu_lower=0.0,
        stopped_by="trials",
        refuted_at=None,
    )
    assert any("no violation is reported, but a run failed on pairs[0]" in one for one in found)


def test_an_audit_that_detects_nothing_cannot_report_that_no_violation_was_found() -> None:
    clean = audited(0.1)
    assert clean.verdict is Verdict.NO_VIOLATION
    assert not contradictions(clean)
    detectable = {**clean.to_dict()["detectable"], "claim": ""}
    assert any("no violation would have been detected" in one for one in edited(clean, detectable=detectable))


@pytest.mark.parametrize("mu", [0.5, 3.0])
def test_the_region_of_a_fixed_audit_is_the_one_that_its_pilot_chooses(mu: float) -> None:
    result = audited(mu, method="fixed")
    assert not contradictions(result)
    found = edited(result, evidence_threshold=BINS - 2)
    assert "its rejection region is not the region that the counts of its pilot choose" in found


def test_a_larger_wealth_on_the_way_is_no_evidence_without_its_counts() -> None:
    clean = audited(0.9)
    assert clean.verdict is Verdict.NO_VIOLATION
    history = clean.to_dict()["history"]
    history["log_e"][3] = 30.0
    spike = {
        "history": history,
        "p_value": math.exp(-30),
        "verdict": "violation",
        "refuted_at": history["trials"][3],
        "stopped_by": "trials",
    }
    words = "a violation is reported, but the audit did not end where its evidence was largest"
    assert words in edited(clean, **spike, evidence_peak=None)
    assert any("p-value" in one for one in edited(clean, **spike))


def test_the_largest_wealth_is_computed_from_its_counts() -> None:
    """The noise becomes so large after 300 trials that the wealth falls.

    With this seed the claim is refuted; the test of independence does not examine so few runs.
    """
    made = 0

    def weakening(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        nonlocal made
        made += n
        return rng.normal((3.0 if made < 300 else 0.0) * dataset[0], 1.0, n)

    result = audit(
        batched(weakening), CLAIM, PAIR, attacks="median_clipped", trials=4000, seed=3, confidence=0.95, measure=True
    )
    evidence = result.evidence
    assert isinstance(evidence, SequentialEvidence)
    path = result.history.log_e
    assert path.max() > path[-1] + 1
    assert evidence.peak is not None
    assert evidence.p_value(CLAIM, path) == pytest.approx(math.exp(-path.max()), rel=1e-9)
    assert evidence.p_value(CLAIM, path + 50) == evidence.p_value(CLAIM, path)  # the path itself proves nothing
    read = SequentialEvidence.from_json(json.loads(json.dumps(evidence.to_json())), CLAIM)
    assert read.p_value(CLAIM, path) == evidence.p_value(CLAIM, path)
    assert not [one for one in contradictions(result) if "p-value" in one]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"peak": [[[[5, 9]], [[5, 9]]]]}, "no more counts at its peak than at its end"),
        ({"lost_at_peak": [0]}, "also in lost"),
        ({"lost_at_peak": [7]}, "among its 1 pairs"),
    ],
)
def test_impossible_counts_at_the_largest_wealth_are_refused(changes: dict[str, Any], words: str) -> None:
    counts = np.zeros((1, 2, BINS), dtype=np.int64)
    values = SequentialEvidence(target=CLAIM, counts=counts).to_json()
    with pytest.raises(ValueError, match=words):
        SequentialEvidence.from_json({**values, **changes}, CLAIM)


def planned_in_config(detect: str, **options: Any) -> AuditResult:
    """Return a result of an audit with `detect`, as `dpaudit run` writes it."""
    found = audited(1.0, trials=300, detect=detect, **options)
    config = f"name: one\nclaim: gaussian(mu=1)\ndetect: {detect}\n"
    return dataclasses.replace(found, provenance=dataclasses.replace(found.provenance, audit=config))


@pytest.mark.parametrize("method", ["sequential", "fixed"])
@pytest.mark.parametrize("detect", ["gaussian(mu=1.5)", "mu=2", "subsampled(gaussian(mu=8), rate=0.9)"])
def test_a_planned_violation_is_read_back(detect: str, method: str) -> None:
    found = planned_in_config(detect, method=method)
    back = AuditResult.from_dict(json.loads(json.dumps(found.to_dict())))
    assert contradictions(back) == []
    assert back.evidence.planned == found.evidence.planned
    assert (found.evidence.planned is None) is (method == "fixed")
    assert back.evidence.p_value(CLAIM) == found.evidence.p_value(CLAIM)


def test_a_planned_violation_must_be_that_of_the_config() -> None:
    found = planned_in_config("gaussian(mu=1.5)")
    assert edited(found) == []
    other = {"violations": ["gaussian(mu=3)"], "confidence": 0.95}
    words = "its bets were planned to detect gaussian(mu=3), but its config states gaussian(mu=1.5)"
    assert words in edited(found, evidence_planned=other, mu_lower=0.0)
    two = {"violations": ["gaussian(mu=1.5)", "gaussian(mu=3)"], "confidence": 0.95}
    assert any(
        "but its config states gaussian(mu=1.5)" in one for one in edited(found, evidence_planned=two, mu_lower=0.0)
    )
    missing = "its config plans to detect gaussian(mu=1.5), but its evidence states no planned violation"
    assert missing in edited(found, evidence_planned=None, mu_lower=0.0)
    less = {"violations": ["gaussian(mu=1.5)"], "confidence": 0.5}
    words = "its bets were planned at confidence 0.5, but its verdict holds at 0.95"
    assert words in edited(found, evidence_planned=less, mu_lower=0.0)
    bare = dataclasses.replace(found.provenance, audit="name: one\nclaim: gaussian(mu=1)\n")
    words = "its bets were planned to detect gaussian(mu=1.5), but its config states no violation"
    assert words in edited(dataclasses.replace(found, provenance=bare))


HIDING = ('"d\\x65tect": ', "? detect\n: ", "!!str detect: ", "&a detect: ", "'detect' : ")


@pytest.mark.parametrize("key", HIDING)
def test_no_spelling_hides_the_violation_of_the_config(key: str) -> None:
    found = planned_in_config("gaussian(mu=1.5)")
    config = f"name: one\nclaim: gaussian(mu=1)\n{key}gaussian(mu=1.5) #{' ' * 20_000}\n"
    about = dataclasses.replace(found.provenance, audit=config)
    missing = "its config plans to detect gaussian(mu=1.5), but its evidence states no planned violation"
    hidden = dataclasses.replace(found, provenance=about)
    assert edited(hidden) == []
    assert missing in edited(hidden, evidence_planned=None, mu_lower=0.0)


def test_a_quoted_line_is_not_the_violation_of_the_config() -> None:
    found = planned_in_config("gaussian(mu=1.5)")
    quoted = 'name: one\nsource: "see\n\n  the paper\n\ndetect: gaussian(mu=1.5)\n\n"\n'
    for rest, states in (("detect: gaussian(mu=5)\n", "gaussian(mu=5)"), ("", "no violation")):
        about = dataclasses.replace(found.provenance, audit=quoted + rest)
        words = f"its bets were planned to detect gaussian(mu=1.5), but its config states {states}"
        assert words in contradictions(dataclasses.replace(found, provenance=about))


UNREADABLE = (
    "detect: !!int ''",
    "detect: !!timestamp abc",
    "detect: [&a [x, x], *a]",
    "detect: &a [*a]",
    "detect: !!set {? &a [1]}",
    'detect: "\\ud800\\Uffffffff"',
    "detect: *a",
    "<<: {detect: gaussian(mu=1.5)}",
    "audits: [{detect: gaussian(mu=1.5)}]",
    "detect: a\ndetect: b",
    "--- {}\n--- {}",
    "- detect",
    "a: " + "[" * 100_000,
    "a: [" + "0," * 1_000,
    "a" * 5_000_000,
)


@pytest.mark.parametrize("config", UNREADABLE, ids=range(len(UNREADABLE)))
def test_a_config_that_cannot_be_read_is_said_to_be_unchecked(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.result.recorded_detect._MAX_EVENTS", 500)
    found = planned_in_config("gaussian(mu=1.5)")
    unread = dataclasses.replace(found, provenance=dataclasses.replace(found.provenance, audit=config))
    assert contradictions(unread) == []
    assert unchecked(unread).startswith("the violation to detect was not compared with its config")
    assert unchecked(found) == ""


@pytest.mark.parametrize("config", ["detect: 2001-99-99", "detect: null", "detect:", f"detect: {'1' * 5000}"])
def test_a_violation_that_is_no_claim_is_not_that_of_the_evidence(config: str) -> None:
    found = planned_in_config("gaussian(mu=1.5)")
    odd = dataclasses.replace(found, provenance=dataclasses.replace(found.provenance, audit=config))
    assert any("but its config states" in words for words in contradictions(odd))


def test_a_long_violation_is_found_in_the_config() -> None:
    """A table may have many points."""
    alpha = [i / 2000 for i in range(2001)]
    detect = f"tabulated(alpha={alpha}, beta={[(1 - a) ** 3 for a in alpha]})"
    assert detect_of(f"name: one\ndetect: {detect!r}\n") == detect
    assert detect_of(yaml.dump({"name": "one", "detect": detect})) == detect


def test_files_of_versions_without_planned_bets_are_read_as_before() -> None:
    found = planned_in_config("gaussian(mu=1.5)")
    assert isinstance(found.evidence, SequentialEvidence)
    older = dataclasses.replace(found.evidence, planned=None)
    about = dataclasses.replace(found.provenance, packages={"dpaudit": "0.0.9"})
    values = dataclasses.replace(found, evidence=older, provenance=about, p_value=older.p_value(CLAIM)).to_dict()
    assert "planned" not in values["evidence"]
    assert contradictions(AuditResult.from_dict(json.loads(json.dumps(values)))) == []


def test_a_planned_violation_chosen_for_the_counts_accuses_no_mechanism() -> None:
    """The counts refute the claim only with the planned violation that the config does not state."""
    rng, law = np.random.default_rng(1), gaussian_noise(1.2)
    plan = Planned(violations=(GaussianDP(1.2),), confidence=0.95)
    for _ in range(200):
        counts = np.array([[rng.multinomial(300, side / side.sum()) for side in (law.p, law.q)]])
        honest = SequentialEvidence(target=CLAIM, counts=counts)
        chosen = dataclasses.replace(honest, planned=plan)
        if chosen.p_value(CLAIM) < 0.05 < honest.p_value(CLAIM):
            break
    found = audited(1.0, trials=400)
    about = dataclasses.replace(found.provenance, audit="name: one\nclaim: gaussian(mu=1)\n")
    accusing = dataclasses.replace(
        found,
        evidence=chosen,
        verdict=Verdict.VIOLATION,
        p_value=chosen.p_value(CLAIM),
        stopped_by="evidence",
        provenance=about,
    )
    assert chosen.p_value(CLAIM) < 0.05 < honest.p_value(CLAIM)
    words = "its bets were planned to detect gaussian(mu=1.2), but its config states no violation"
    assert words in contradictions(accusing)


@pytest.mark.parametrize(
    ("planned", "words"),
    [
        ({"violations": [], "confidence": 0.95}, "must list 1 to 2 planned violations"),
        ({"violations": ["mu=2"] * 3, "confidence": 0.95}, "must list 1 to 2 planned violations"),
        ({"violations": "mu=2", "confidence": 0.95}, "must list 1 to 2 planned violations"),
        ({"violations": ["nothing"], "confidence": 0.95}, "nothing"),
        ({"violations": ["mu=2"], "confidence": 1.0}, "must lie between 0 and 1, got 1.0"),
        ({"violations": ["mu=2"], "confidence": "0.95"}, "must be a number, got str"),
        ({"violations": ["mu=2"]}, "confidence"),
        (["mu=2"], "evidence"),
    ],
)
def test_impossible_planned_violations_are_refused(planned: Any, words: str) -> None:
    values = SequentialEvidence(target=CLAIM, counts=np.zeros((1, 2, BINS), dtype=np.int64)).to_json()
    with pytest.raises((ValueError, KeyError, TypeError), match=words if isinstance(planned, dict) else "list"):
        SequentialEvidence.from_json({**values, "planned": planned}, CLAIM)


def test_a_stream_has_no_lost_pairs() -> None:
    stream = OnlineAudit(CLAIM, seed=0, attacks="median_clipped")
    for _ in range(40):
        stream.update(float(stream.coin()))
    values = stream.result().evidence.to_json()
    assert values["lost"] == []
    with pytest.raises(ValueError, match="a stream must have no lost pairs"):
        OnlineEvidence.from_json({**values, "lost": [0]}, CLAIM)
