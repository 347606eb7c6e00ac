"""Edited evidence: counts that were changed so that a result shows another verdict."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, GaussianDP, OnlineAudit, Pair, Verdict, audit, batched
from dpaudit.inference.grid import BINS
from dpaudit.result.consistency import contradictions
from dpaudit.result.evidence import OnlineEvidence, SequentialEvidence

PAIR = Pair([0], [1])
CLAIM = GaussianDP(1.0)


def noise(mu: float) -> Any:
    """Return a mechanism with Gaussian noise that is exactly mu-GDP."""
    return batched(lambda dataset, n, rng: rng.normal(mu * dataset[0], 1.0, n))


def audited(mu: float, trials: int = 1000, **options: Any) -> AuditResult:
    """Audit the claim of 1-GDP."""
    return audit(noise(mu), CLAIM, PAIR, attacks="median_clipped", trials=trials, seed=3, confidence=0.95, **options)


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


def test_a_stream_has_no_lost_pairs() -> None:
    stream = OnlineAudit(CLAIM, seed=0, attacks="median_clipped")
    for _ in range(40):
        stream.update(float(stream.coin()))
    values = stream.result().evidence.to_json()
    assert values["lost"] == []
    with pytest.raises(ValueError, match="a stream must have no lost pairs"):
        OnlineEvidence.from_json({**values, "lost": [0]}, CLAIM)
