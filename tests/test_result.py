"""Properties of a result: bounds, truth value, repr, plots, provenance, and missing values if nothing is certified."""

import dataclasses
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, GaussianDP, Pair, Verdict, audit, audit_one_run, audit_scores, batched, replay
from dpaudit.catalogue import Gaussian
from dpaudit.engine.replay_outcome import Replay
from dpaudit.engine.result_parts import provenance_of
from dpaudit.result.provenance import Provenance, SourceFile, key
from dpaudit.running.sources import Source
from dpaudit.settings import AuditSettings

from .reports import sample
from .reports.audits import text_of
from .scored import SURE, check_agreement, of_runs

PAIR = Pair([0], [1])


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return audit(
        Gaussian(0.5), GaussianDP(1.0), PAIR, attacks="logistic", trials=2000, seed=3, confidence=0.95, confirm="never"
    )


@pytest.mark.parametrize("confidence", [1 - 1e-12, 0.5])
def test_the_confidence_of_a_result_cannot_be_replaced(result: AuditResult, confidence: float) -> None:
    """Verdict, bounds, curve and detectable violations hold at the confidence of the audit."""
    for one in (result, dataclasses.replace(result, name="copy"), AuditResult.from_dict(result.to_dict())):
        with pytest.raises(ValueError, match=r"hold at 0\.95; .*result\.evidence\.refutes or \.lower"):
            dataclasses.replace(one, confidence=confidence)


def test_the_repr_of_results_and_replays_is_one_short_line(result: AuditResult) -> None:
    hostile = dataclasses.replace(result, name="a\nb\x1b[2K")
    found = replay(result, Gaussian(0.5), PAIR, attacks="logistic", trials=100, seed=1)
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


@batched
def cycle(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
    return (np.arange(n) % 7) / 7 + 3.0 * dataset[0]


@pytest.mark.parametrize("method", ["sequential", "fixed"])
def test_dependent_runs_certify_no_band(method: str) -> None:
    how: Any = {"attacks": "logistic", "method": method, "confidence": 1 - 1e-9}
    void = audit(cycle, GaussianDP(1.0), PAIR, trials=200, seed=0, **how)
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
    failed = audit(FailsAfter(200), GaussianDP(1.0), PAIR, attacks="logistic", trials=500, seed=0, method="fixed")
    assert failed.stopped_by == "failure"
    np.testing.assert_allclose(failed.curve.beta_upper, 1 - failed.curve.alpha)


def test_wealth_before_a_failure_is_no_e_value() -> None:
    """The confidence is so high that the claim is not refuted before the failure, but the wealth is far above 1."""
    how: Any = {"attacks": "logistic", "trials": 500, "seed": 0, "confidence": 1 - 1e-15}
    failed = audit(FailsAfter(150), GaussianDP(1.0), PAIR, **how)
    assert failed.stopped_by == "failure"
    assert failed.history.log_e[-1] > 3
    assert failed.e_value == 1.0


def test_one_run_states_right_guesses_and_no_rates_of_chosen_canaries() -> None:
    rng = np.random.default_rng(0)
    included = rng.random(300) < 0.5
    found = audit_one_run(rng.normal(included * 1.0), included, GaussianDP(1.0), confidence=SURE)
    witness = found.witness
    assert math.isnan(witness.claimed_beta)
    assert math.isnan(witness.alpha)
    assert "% of the outputs" not in str(found)
    assert witness.guesses == included.sum()
    assert f"{witness.right} of the {witness.guesses} highest scores are of included canaries" in text_of(found)
    assert AuditResult.from_dict(found.to_dict()).witness is not None


def test_a_file_with_another_number_of_canaries_is_refused(tmp_path: Path, command: Any) -> None:
    result = audit_scores(*of_runs(100, 1.0, 0), "pure(epsilon=3)", seed=1, independence=None, confidence=SURE)
    values = json.loads(json.dumps(result.to_dict()))
    values["evidence"]["n0"] = 2**60
    (tmp_path / "r.json").write_text(json.dumps(values))
    done = command("report", str(tmp_path / "r.json"))
    assert done.exit_code == 2
    assert "internal error" not in done.stderr


def test_a_replay_is_shown_with_its_conclusion_first() -> None:
    result = dataclasses.replace(sample.violation(), name="<script>")
    found = Replay(
        result=result,
        counts=result.witness.counts,
        learned_from=200,
        p_value=1e-9,
        seed=1,
        contradictions=(),
        warnings=("printed \u202e text",),
    )
    html = found._repr_html_()
    assert html.startswith("<div><p><strong>Confirmed: fresh runs refute the claim again")
    assert "<script>" not in html
    assert "\u202e" not in html
    assert "&lt;script&gt;" in html


STOPPED = "stopped at the first proof; the bounds do not estimate the size of the violation"

UNMEASURED = "the loss may be much larger"


@batched
def noise(dataset: list[float], n: int, rng: np.random.Generator) -> Any:
    return rng.normal(dataset[0], 1.0, n)


@cache
def audited(**settings: Any) -> AuditResult:
    return audit(noise, GaussianDP(0.5), PAIR, seed=1, attacks="median_clipped", confirm="never", **settings)


def test_it_goes_on_to_the_trials_and_certifies_more(tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**6: the bounds hold at confidence 1 - 1e-6."""
    stopped, measured = (audited(trials=4000, measure=measure, confidence=1 - 1e-6) for measure in (False, True))
    assert stopped.violated
    assert measured.violated
    assert stopped.trials_used < measured.trials_used == 4000
    assert stopped.refuted_at is not None
    assert measured.refuted_at <= stopped.trials_used + 100
    assert (stopped.stopped_by, measured.stopped_by) == ("evidence", "trials")
    assert stopped.mu_lower < 0.8 * measured.mu_lower
    assert 0.8 < measured.mu_lower <= 1.0
    for result in (stopped, measured):
        check_agreement(result)
        result.to_json(tmp_path / "r.json")
        back = AuditResult.from_json(tmp_path / "r.json")
        assert back.to_dict() == result.to_dict()
        assert back.refuted_at == result.refuted_at


def test_outputs_say_whether_it_stopped_at_its_proof() -> None:
    stopped, measured = (audited(trials=4000, measure=measure, confidence=1 - 1e-6) for measure in (False, True))
    assert STOPPED in str(stopped)
    assert UNMEASURED in text_of(stopped)
    for text in (str(measured), text_of(measured)):
        assert STOPPED not in text
        assert UNMEASURED not in text
        assert "the bounds are from the end of the audit" in text


def test_a_claim_that_is_kept_is_never_measured_as_false() -> None:
    result = audit(noise, GaussianDP(1.5), PAIR, seed=1, attacks="logistic", trials=200, measure=True)
    assert not result.violated
    assert result.refuted_at is None
    assert result.trials_used == 200


def test_a_fixed_number_of_trials_measures_anyway() -> None:
    stopped, measured = (audited(trials=200, measure=measure, method="fixed") for measure in (False, True))
    assert stopped.mu_lower == measured.mu_lower
    assert measured.refuted_at is None
    assert STOPPED not in str(measured)


def test_measure_is_yes_or_no() -> None:
    with pytest.raises(TypeError, match="measure must be True or False"):
        AuditSettings(measure=1)  # type: ignore[arg-type]


FULL: dict[str, Any] = {
    "date": "2026-03-01T12:30:00+00:00",
    "seed": 2**70,
    "mechanism": "m",
    "python": "3.11.9",
    "platform": "Linux",
    "packages": {"dpaudit": "0.1.0"},
    "packages of the mechanism": {"numpy": "2.0"},
    "hashes of the mechanism's packages": {"numpy": "sha256:ab"},
    "file of the mechanism": {"path": "/a/b.py", "sha256": "ab"},
    "modules of the mechanism": {"c.py": "cd"},
    "identity": {"mechanism": "12"},
    "outputs": "blake2b:ef",
    "first outputs": ["1", "2"],
    "seconds of attacks": {"threshold": 0.5, "events": 1},
    "runs before the evidence": 5,
    "runs after the evidence": 3,
    "running times": "the worker",
    "trials of the second stage": 4,
    "config": "c.yaml",
    "folder": "/a",
    "source": "",
    "claim stated by": "the config",
    "command": "dpaudit run c.yaml",
    "audit": "name: x\n",
    "files of datasets": {"people.csv": "0" * 64},
    "number of the command": "1a",
    "audits of the command": 2,
    "confidence of the command": 0.99,
    "test": "t.py::test_x",
    "call": 1,
    "suite_seed": 0,
}


def test_a_file_that_states_everything_is_read_and_written_as_it_is() -> None:
    provenance = Provenance.read(FULL)
    assert provenance.other == {}
    assert dict(provenance.environment) == FULL
    assert list(provenance.environment) == list(FULL)
    assert {key(field.name) for field in dataclasses.fields(Provenance)} >= set(FULL)
    assert provenance.mechanism_file == SourceFile(path="/a/b.py", sha256="ab")
    assert all(getattr(provenance, field.name) is not None for field in dataclasses.fields(Provenance))


def test_the_order_of_a_file_stays_and_what_is_added_comes_last() -> None:
    backwards = dict(reversed(FULL.items()))
    provenance = Provenance.read(backwards)
    assert list(provenance.environment) == list(backwards)
    assert provenance == Provenance.read(FULL)
    reported = dataclasses.replace(Provenance.read({"seed": 1, "mine": 2, "date": "d"}), command="c", audit="a")
    assert list(reported.environment) == ["seed", "mine", "date", "command", "audit"]


@pytest.mark.parametrize("place", sorted(FULL))
@pytest.mark.parametrize("wrong", [None, True, object, [1], {"a": []}, {"path": None}])
def test_what_has_another_type_is_kept_and_decides_nothing(place: str, wrong: Any) -> None:
    stated = {**FULL, place: wrong}
    provenance = Provenance.read(stated)
    assert dict(provenance.environment) == stated
    (name,) = (field.name for field in dataclasses.fields(Provenance)[:-2] if key(field.name) == place)
    assert getattr(provenance, name) is None
    assert provenance.other == {place: wrong}


def test_the_environment_is_read_only_and_shares_nothing() -> None:
    provenance = Provenance.read(FULL)
    with pytest.raises(TypeError):
        provenance.environment["seed"] = 1  # type: ignore[index]
    provenance.environment["packages"]["dpaudit"] = "another"
    assert provenance == Provenance.read(FULL)


def test_audited_packages_precede_packages_for_data_and_dependencies() -> None:
    packages = {"cffi": "1", "numpy": "2", "opendp": "3", "python-dp": "4"}
    source = Source(packages=packages, used=frozenset({"numpy", "opendp", "python-dp"}))
    found = provenance_of(seed=1, mechanism="m", source=source).mechanism_packages
    assert found is not None
    assert list(found) == ["opendp", "python-dp", "numpy", "cffi"]
