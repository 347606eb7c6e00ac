"""Edited numbers that reports draw or mention: the curve, the moment of the refutation, the evidence of a pair."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, GaussianDP, OnlineAudit, Pair, audit, audit_scores, batched
from dpaudit.result.consistency import contradictions, unchecked
from dpaudit.values import JsonObject

PAIRS = [Pair([0], [1]), Pair([0], [2])]
CLAIM = GaussianDP(1.0)
CURVE = "its curve is not the curve of its counts"
BETTER = "its curve is better for the attack than its counts allow"


def audited(mu: float, **options: Any) -> AuditResult:
    """Audit the claim of 1-GDP for Gaussian noise.  The seed is fixed."""
    mechanism = batched(lambda dataset, n, rng: rng.normal(mu * dataset[0], 1.0, n))
    given: dict[str, Any] = {"attacks": "median_clipped", "trials": 600, "seed": 3, "confidence": 0.95}
    return audit(mechanism, CLAIM, PAIRS, **given, **{"confirm": "never", **options})


def streamed() -> AuditResult:
    """Audit a stream that violates the claim.  The seeds are fixed."""
    stream, rng = OnlineAudit(CLAIM, attacks="median_clipped", confidence=0.95, seed=5), np.random.default_rng(5)
    for _ in range(1500):
        stream.update(rng.normal(4.0 * stream.coin(), 1.0))
    return stream.result()


def of_scores() -> AuditResult:
    """Audit scores of independent runs.  The seeds are fixed."""
    rng = np.random.default_rng(0)
    return audit_scores(rng.normal(0, 1, 300), rng.normal(3, 1, 300), CLAIM, independence="runs", seed=0)


@pytest.fixture(scope="module")
def violation() -> AuditResult:
    """Return the violation of a sequential audit."""
    found = audited(2.0)
    assert found.violated
    return found


def read(values: JsonObject, *, version: str = "") -> list[str]:
    """Return the contradictions of a result file, which may state another version."""
    values = json.loads(json.dumps(values))
    if version:
        values["environment"]["packages"]["dpaudit"] = version
    return contradictions(AuditResult.from_dict(values))


@pytest.mark.parametrize("version", ["", "0.0.1"])
def test_honest_curves_agree_with_their_counts(violation: AuditResult, version: str) -> None:
    results = [violation, audited(0.1), audited(2.0, method="fixed"), audited(2.0, measure=True), streamed()]
    results.append(audited(2.0, confirm=100))
    timed = audit(
        lambda dataset, rng: rng.normal(), CLAIM, PAIRS, attacks="median_clipped", trials=60, seed=3, observe_time=True
    )
    for result in [*results, audited(0.1, method="fixed"), timed, of_scores()]:
        assert read(result.to_dict(), version=version) == []


@pytest.mark.parametrize("version", ["", "0.0.1"])
@pytest.mark.parametrize("options", [{}, {"method": "fixed"}], ids=["sequential", "fixed"])
def test_a_perfect_attack_is_not_drawn_without_counts(options: Any, version: str) -> None:
    values = audited(0.1, **options).to_dict()
    many = len(values["curve"]["alpha"])
    alpha, perfect = [1 - i / (many - 1) for i in range(many)], [0.0] * many
    words = BETTER if version else CURVE
    for edit in (
        {"alpha": alpha, "beta": perfect, "beta_upper": perfect},
        {"beta": perfect},
        {"beta_upper": [b * 0.5 for b in values["curve"]["beta_upper"]]},
    ):
        assert words in read({**values, "curve": {**values["curve"], **edit}}, version=version)


def test_a_curve_that_is_slightly_too_low_is_not_confirmed(violation: AuditResult) -> None:
    values = violation.to_dict()
    values["curve"]["beta_upper"] = [b - 1e-4 if 0 < b < 0.9 else b for b in values["curve"]["beta_upper"]]
    assert read(values) == [CURVE]
    values["environment"]["packages"] = {"dpaudit": "0.0.1"}
    assert "curve" in unchecked(AuditResult.from_dict(json.loads(json.dumps(values))))


def test_a_curve_of_scores_has_the_shape_of_a_curve_and_no_bound() -> None:
    values = of_scores().to_dict()
    many = len(values["curve"]["alpha"])
    for edit, words in (
        ({"beta_upper": [0.0] * many}, BETTER),
        ({"beta": [-1.0] * many}, "its curve has errors that do not lie between 0 and 1"),
        ({"beta": values["curve"]["beta"][::-1]}, "its curve is no trade-off: both errors fall together"),
    ):
        assert words in read({**values, "curve": {**values["curve"], **edit}})


@pytest.mark.parametrize("version", ["", "0.0.1"])
def test_the_evidence_of_a_pair_is_recomputed(violation: AuditResult, version: str) -> None:
    values = violation.to_dict()
    assert len(values["pairs"]) == 2
    values["pairs"][0] = {**values["pairs"][0], "log_e": 500.0}
    assert any("the log-wealth on pairs[0] is 500, but its counts give" in one for one in read(values, version=version))


def test_the_moment_of_the_refutation_is_that_of_the_history() -> None:
    for result in (audited(2.0, measure=True), streamed()):
        values = result.to_dict()
        at = values["refuted_at"]
        assert 1 < at < values["trials_used"]
        assert any("its history reaches the threshold at" in one for one in read({**values, "refuted_at": 1}))
        for wrong in (0, 9 * 10**15):
            later = read({**values, "refuted_at": wrong}, version="0.0.1")
            assert any("runs per dataset were made" in one for one in later)
    fixed = audited(2.0, method="fixed").to_dict()
    assert any("history does not reach" in one for one in read({**fixed, "refuted_at": 5}))
