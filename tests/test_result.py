"""Properties of a result: bounds, truth value, repr, plots, and missing values if nothing is certified."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import AuditResult, GaussianDP, Pair, PureDP, Verdict, audit, audit_one_run, audit_scores, batched, replay
from dpaudit.catalogue import Gaussian

from .scored import of_runs

PAIR = Pair([0], [1])


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return audit(Gaussian(0.5), GaussianDP(1.0), PAIR, trials=2000, seed=3, confidence=0.95, confirm="never")


@pytest.mark.parametrize("confidence", [1 - 1e-12, 0.5])
def test_the_confidence_of_a_result_cannot_be_replaced(result: AuditResult, confidence: float) -> None:
    """Verdict, bounds, curve and detectable violations hold at the confidence of the audit."""
    for one in (result, dataclasses.replace(result, name="copy"), AuditResult.from_dict(result.to_dict())):
        with pytest.raises(ValueError, match=r"hold at 0\.95; .*result\.evidence\.refutes, \.mu_lower"):
            dataclasses.replace(one, confidence=confidence)


def test_a_file_with_an_edited_confidence_certifies_nothing_that_its_counts_do_not(result: AuditResult) -> None:
    """The seeds are fixed."""
    weak = audit(Gaussian(1.0), GaussianDP(1.5), PAIR, attacks="logistic", trials=300, seed=1, confidence=0.95)
    assert weak.verdict is Verdict.NO_VIOLATION
    assert weak.mu_lower > 0
    blind = audit(Gaussian(9.0), GaussianDP(1.5), PAIR, attacks="logistic", trials=300, seed=1, confidence=0.95)
    assert blind.mu_lower == 0
    for one, confidence, words in (
        (result, 1 - 1e-12, "a violation is reported at a p-value"),
        (weak, 0.999, "mu >= .* is certified, but its counts give"),
        (blind, 0.999, "its counts allow at most"),
        (dataclasses.replace(result, verdict=Verdict.NO_VIOLATION), 0.9, "no violation is reported at a p-value"),
    ):
        with pytest.raises(ValueError, match=words):
            AuditResult.from_dict(one.to_dict() | {"confidence": confidence})


def test_a_bound_of_another_version_is_at_most_the_bound_of_this_version(result: AuditResult) -> None:
    """An audit of another version may have computed a larger bound, so its file is read."""
    values = result.to_dict()
    values["environment"] = values["environment"] | {"packages": {"dpaudit": "0.0.9"}}
    assert AuditResult.from_dict(values | {"mu_lower": 3.0}).mu_lower == result.mu_lower
    assert AuditResult.from_dict(values | {"mu_lower": 0.1}).mu_lower == 0.1


def test_a_result_has_no_truth_value(result: AuditResult) -> None:
    with pytest.raises(TypeError, match=r"no truth value \(this one: violation\); use result\.violated"):
        assert result


def test_the_repr_of_results_and_replays_is_one_short_line(result: AuditResult) -> None:
    hostile = dataclasses.replace(result, name="a\nb\x1b[2K")
    found = replay(result, Gaussian(0.5), PAIR, trials=200, seed=1)
    for thing in (result, hostile, found, result.curve, result.history, result.evidence, *result.pairs):
        assert "\n" not in repr(thing)
        assert "\x1b" not in repr(thing)
        assert len(repr(thing)) < 600
    assert repr(result).startswith("<AuditResult 'Gaussian': violation, gaussian(mu=1), p <= ")
    assert repr([result] * 3).count("AuditResult") == 3


def test_a_plot_shows_itself_in_a_notebook(result: AuditResult) -> None:
    axes = result.plot()
    assert axes.get_xlabel() == "type I error α"
    assert axes._repr_png_().startswith(b"\x89PNG")


def test_types_of_documented_arguments_are_exported() -> None:
    assert dpaudit.ExecutionSettings(timeout=90.0).timeout == 90.0
    assert dpaudit.Progress(trials=1, allowed=2, log_e=0.0, log_threshold=3.0).allowed == 2
    assert {"Progress", "ExecutionSettings"} <= set(dpaudit.__all__)


@batched
def cycle(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
    """Return seven numbers again and again."""
    return (np.arange(n) % 7) / 7 + 3.0 * dataset[0]


@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_dependent_runs_certify_no_band(method: str) -> None:
    void = audit(cycle, GaussianDP(1.0), PAIR, trials=2000, seed=0, method=method, confidence=1 - 1e-9)
    assert void.verdict is Verdict.INCONCLUSIVE
    assert not void.bounds_valid
    np.testing.assert_allclose(void.curve.beta_upper, 1 - void.curve.alpha)
    assert void.stopped_by != "evidence"
    assert "nothing is certified" in str(void)
    assert void.e_value <= 1


class FailsAfter:
    """A mechanism with far too little noise that fails after some runs."""

    def __init__(self, runs: int) -> None:
        self.left = 2 * runs

    def __call__(self, dataset: list[float], rng: np.random.Generator) -> float:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("database connection lost")
        return dataset[0] + rng.normal(scale=0.5)


def test_a_fixed_audit_that_failed_certifies_no_band() -> None:
    failed = audit(FailsAfter(700), GaussianDP(1.0), PAIR, trials=2000, seed=0, method="fixed")
    assert failed.stopped_by == "failure"
    np.testing.assert_allclose(failed.curve.beta_upper, 1 - failed.curve.alpha)


def test_wealth_before_a_failure_is_no_e_value() -> None:
    """The confidence is so high that the claim is not refuted before the failure, but the wealth is far above 1."""
    failed = audit(FailsAfter(150), GaussianDP(1.0), PAIR, trials=2000, seed=0, confidence=1 - 1e-15)
    assert failed.stopped_by == "failure"
    assert failed.history.log_e[-1] > 3
    assert failed.e_value == 1.0


def test_one_run_states_right_guesses_and_no_rates_of_chosen_canaries() -> None:
    rng = np.random.default_rng(0)
    included = rng.random(1000) < 0.5
    found = audit_one_run(rng.normal(included * 1.0), included, GaussianDP(1.0))
    witness = found.witness
    assert witness is not None
    assert math.isnan(witness.claimed_beta)
    assert math.isnan(witness.alpha)
    assert "% of the outputs" not in str(found)
    said = f"{witness.right} of {witness.guesses} guesses right; {witness.needed} right guesses would refute the claim"
    assert said in str(found)
    for right, refuted in ((witness.needed, True), (witness.needed - 1, False)):
        changed = dataclasses.replace(found.evidence, right=right)  # type: ignore[type-var]
        assert changed.refutes(GaussianDP(1.0), confidence=0.99) is refuted
    assert AuditResult.from_dict(found.to_dict()).witness is not None
    few = audit_one_run(rng.normal(size=40), rng.random(40) < 0.5, PureDP(6.0), guesses=10)
    assert few.witness is not None
    assert "not even 10 right guesses would refute the claim" in str(few)


@pytest.mark.parametrize("canaries", [10**6, 2**31])
def test_a_file_with_too_many_canaries_is_refused(canaries: int, tmp_path: Path) -> None:
    """The p-value of such counts raised OverflowError."""
    result = audit_scores(*of_runs(100, 1.0, 0), "pure(epsilon=3)", seed=1, independence=None)
    values = json.loads(json.dumps(result.to_dict()))
    values["evidence"]["m"] = canaries
    (tmp_path / "r.json").write_text(json.dumps(values))
    with pytest.raises(ValueError, match=r"r\.json is not a complete result of dpaudit"):
        AuditResult.from_json(tmp_path / "r.json")
