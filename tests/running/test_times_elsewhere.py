"""Observed running times of programs and of mechanisms in private environments."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dpaudit import MechanismError, Pair, Verdict, audit
from dpaudit.cli.app import app
from dpaudit.outputs import Timed
from dpaudit.result.evidence import SequentialEvidence
from dpaudit.running import command as command_module
from dpaudit.running.foreign import ENVIRONMENT, OUTSIDE, REPORTED
from dpaudit.running.mechanisms import PythonMechanism
from dpaudit.running.runs import ExecutionSettings
from dpaudit.running.sampler import Sampler

from ..unseeded import audit_unseeded
from .programs import isolated, script

PAIR = Pair([0], [1], relation="replace_one")
OTHER = Pair([0], [2], relation="replace_one")
SETTINGS: dict[str, Any] = {"observe_time": True, "seed": 0, "confidence": 0.99, "attacks": "time"}
OBSERVED = ExecutionSettings(observe_time=True)

# The time depends on whether the dataset is [1], and the output on nothing.
SLEEPS = """\
    import time
    def release(dataset, rng):
        if dataset == [1]:
            time.sleep(0.005)
        return rng.random()
"""
# This program draws its time and advances a clock in a file, so that no load of the machine disturbs the test.
ADVANCING = """\
import random
generator = random.Random(request["seed"])
likely = 0.9 if request["dataset"] == [1] else 0.1
with open("clock", "a") as clock:
    clock.write("." * (1 + (generator.random() < likely)))
print(json.dumps({"outputs": [generator.random()]}))
"""
# With this program, nothing depends on a clock: the reported time is 1 or 2 s, and depends on the dataset [1] only.
REPORTING = """\
import random
generator = random.Random(request["seed"])
likely = 0.9 if request["dataset"] == [1] else 0.1
print(json.dumps({"outputs": [generator.random()], "seconds": [1 + (generator.random() < likely)]}))
"""


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.chance
def test_a_time_in_an_environment_is_refuted_if_it_depends_on_the_data(tmp_path: Path) -> None:
    """The second audit is about two datasets with the same time.

    Fails by chance < 1 in 10**6.  The true claim is refuted with probability 1e-7.  The false claim survives only if
    the scheduler delays a large share of the runs without sleep by 5 ms between two adjacent calls of the clock.
    """
    mechanism = isolated(tmp_path, SLEEPS)
    result = audit_unseeded(mechanism, "pure(epsilon=0.1)", PAIR, trials=400, attacks="time", observe_time=True)
    assert result.violated
    assert result.provenance.running_times == ENVIRONMENT
    evidence = result.evidence
    assert isinstance(evidence, SequentialEvidence)
    assert evidence.coin_selected
    same = audit_unseeded(mechanism, "pure(epsilon=0.1)", OTHER, trials=40, attacks="time", observe_time=True)
    assert same.verdict is not Verdict.VIOLATION
    assert not [warning for warning in same.warnings if "fail" in warning]


def test_a_silent_program_is_timed_from_request_to_answer_and_the_result_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails by chance < 1 in 10**6 over seeds: the audit needs about 40 of its 300 trials."""
    mechanism, clock = script(tmp_path, ADVANCING), tmp_path / "clock"
    clock.touch()
    monkeypatch.setattr(command_module, "perf_counter", lambda: float(clock.stat().st_size))
    result = audit(mechanism, "pure(epsilon=0.5)", PAIR, trials=300, **SETTINGS)
    assert result.violated
    assert result.provenance.running_times == OUTSIDE
    assert any("from request to answer" in warning for warning in result.warnings)
    same = audit(mechanism, "pure(epsilon=0.5)", OTHER, trials=40, **SETTINGS | {"confidence": 1 - 1e-7})
    assert not same.violated


def test_a_sleep_is_part_of_the_measured_time(tmp_path: Path) -> None:
    answer = 'time.sleep(0.02)\nprint(json.dumps({"outputs": [0.5]}))'
    assert script(tmp_path, answer).run([0], 0, rng()).seconds >= 0.02
    mechanism = isolated(tmp_path, "import time\ndef release(dataset, rng): time.sleep(0.02)")
    assert mechanism.run([0], 0, rng()).seconds >= 0.02


def test_times_that_a_program_reports_are_part_of_its_outputs(tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**6 over seeds: the audit needs about 40 of its 300 trials."""
    mechanism = script(tmp_path, REPORTING)
    result = audit(mechanism, "pure(epsilon=0.5)", PAIR, trials=300, **SETTINGS)
    assert result.violated
    assert result.provenance.running_times == REPORTED
    assert not any("from request to answer" in warning for warning in result.warnings)
    assert any("the size of a dataset may change these times" in warning for warning in result.warnings)
    same = audit(mechanism, "pure(epsilon=0.5)", OTHER, trials=40, **SETTINGS | {"confidence": 1 - 1e-7})
    assert not same.violated


def test_each_request_is_one_run_and_coins_decide_the_order_of_the_two_runs_of_a_trial(tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**6 over seeds: 60 fair coins show one side at most 10 times with odds 1.4e-7."""
    log = tmp_path / "log"
    answer = f"open({str(log)!r}, 'a').write(str(request['dataset'][0]) * n)\n" + REPORTING
    outcomes = Sampler(script(tmp_path, answer), [PAIR], seed=0, execution=OBSERVED).block(0, 0, 60)
    pairs = np.array(list(log.read_text()), dtype=int).reshape(60, 2)
    assert np.all(pairs.sum(axis=1) == 1)
    assert 10 < pairs[:, 0].sum() < 50
    for outcome in outcomes:
        assert not outcome.failure
        assert all(isinstance(output, Timed) and output.seconds in (1, 2) for output in outcome.outputs)
        assert len({output.output for output in outcome.outputs}) == 60  # each run has another seed


@pytest.mark.chance
def test_the_transfer_of_the_dataset_to_an_environment_takes_no_observed_time(tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**6: each of five runs of a microsecond would have to be delayed by milliseconds."""
    mechanism, dataset = isolated(tmp_path, "def release(dataset, rng): return dataset.append(1)"), [0.5] * 50_000
    mechanism.run([dataset], 0, rng())
    assert mechanism.__dict__["changed_dataset"]
    began = time.perf_counter()
    seconds = [mechanism.run([dataset], 0, rng()).seconds for _ in range(5)]
    assert 0 < min(seconds) < (time.perf_counter() - began) / 20


@pytest.mark.chance
def test_the_transfer_of_the_dataset_does_not_start_the_garbage_collector_during_a_run(tmp_path: Path) -> None:
    """As in tests/engine/test_shared_datasets.py.  Fails by chance < 1 in 10**6, as the claim is true."""
    code = "def release(dataset, rng):\n    kept = [[i] for i in range(350)]\n    return rng.random() + 0 * len(kept)"
    pair = Pair([[i] for i in range(350)], [[i] for i in range(450)])
    mechanism = isolated(tmp_path, code)
    result = audit_unseeded(mechanism, "pure(epsilon=0.5)", pair, trials=100, attacks="time", observe_time=True)
    assert not result.violated


# --- answers without a valid time -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        ("[-0.5]", r"one finite number >= 0, as n = 1, got \[-0\.5\]"),
        ("[NaN]", "got .nan"),
        ("[true]", "got .True"),
        ("null", "got None"),
        ("[0.1, 0.2]", "got .0.1, 0.2]"),
    ],
)
def test_a_program_that_reports_no_valid_time_fails(tmp_path: Path, seconds: str, message: str) -> None:
    answer = f'{{"outputs": [1], "seconds": {seconds}}}'
    mechanism = script(tmp_path, f"print({answer!r})")
    assert list(mechanism.sample(0, 1, rng())) == [1]  # audits that observe no times ignore the key
    with pytest.raises(MechanismError, match=f'program.py reported wrong "seconds": .*{message}'):
        mechanism.run([0], 0, rng())


def test_a_program_must_report_all_times_or_none(tmp_path: Path) -> None:
    """Otherwise the way of measuring would distinguish the datasets."""
    answer = """\
found = {"outputs": [0.5]}
print(json.dumps(found | ({"seconds": [0.001]} if request["dataset"] == [1] else {})))
"""
    with pytest.raises(MechanismError, match="must let all running times be measured in the same way"):
        audit(script(tmp_path, answer), "pure(epsilon=1)", PAIR, observe_time=True, seed=0, trials=100)


def test_a_run_that_fails_in_an_environment_ends_the_audit(tmp_path: Path) -> None:
    code = "def release(dataset, rng):\n    if dataset == [1]: raise KeyError('col')\n    return 0.5"
    with pytest.raises(MechanismError, match=r"raised KeyError: 'col'(.|\n)* on run 0 of d1"):
        audit(isolated(tmp_path, code), "pure(epsilon=1)", PAIR, observe_time=True, seed=0, trials=100)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_time_of_a_mechanism_with_many_runs_in_one_call_is_that_of_a_call_with_one_run(
    tmp_path: Path, elsewhere: bool
) -> None:
    code = "class Many:\n    def sample(self, dataset, n, rng): return [n] * n\nrelease = Many()"
    mechanism = isolated(tmp_path, code)
    found = mechanism if elsewhere else PythonMechanism(mechanism.address, folder=tmp_path)
    for outcome in Sampler(found, [PAIR], seed=0, execution=OBSERVED).block(0, 0, 3):
        assert [timed.output for timed in outcome.outputs] == [1, 1, 1]
        assert all(timed.seconds > 0 for timed in outcome.outputs)


@pytest.mark.parametrize("failures", ["outcome", "retry"])
def test_failed_runs_of_programs_are_neither_retried_nor_outcomes_if_times_count(tmp_path: Path, failures: Any) -> None:
    with pytest.raises(ValueError, match=f'observe_time needs failures="stop" .*, got {failures!r}'):
        audit(script(tmp_path, ""), "pure(epsilon=1)", PAIR, observe_time=True, failures=failures, seed=0)


CONFIG = """\
name: times
claim: pure(epsilon=1)
mechanism: {{{mechanism}, observe_time: true}}
pairs: [{{d0: [0], d1: [1], relation: replace_one}}]
{more}
"""


@pytest.mark.parametrize(
    ("mechanism", "more", "message"),
    [
        ("command: [./x]", "failures: retry", "failures must be stop with mechanism.observe_time"),
        ("python: x.py:f, requires: []", "failures: outcome", "failures must be stop with mechanism.observe_time"),
    ],
)
def test_a_config_that_cannot_observe_times_is_refused(tmp_path: Path, mechanism: str, more: str, message: str) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG.format(mechanism=mechanism, more=more))
    run = CliRunner().invoke(app, ["run", str(tmp_path / "c.yaml"), "-o", str(tmp_path)])
    assert run.exit_code == 2
    assert message in " ".join(run.stderr.split())
