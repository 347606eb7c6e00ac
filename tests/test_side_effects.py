"""Side effects of mechanisms are reported, do no harm, and change no result."""

import math
import os
import random
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from dpaudit import AuditResult, GaussianDP, Pair, Verdict, audit, batched
from dpaudit.result.evidence import fingerprint
from dpaudit.running import sampler
from dpaudit.running.mechanisms import PythonMechanism

from .reports.audits import text_of

PAIR, CLAIM = Pair([0], [1]), GaussianDP(1.0)
FAST: dict[str, Any] = {"attacks": "median_clipped", "trials": 30, "seed": 0, "confidence": 0.95}

Rng = np.random.Generator


def quiet(dataset: list[int], rng: Rng) -> float:
    return float(dataset[0] + rng.normal())


def test_prints_go_to_stderr_and_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    def prints(dataset: list[int], rng: Rng) -> float:
        print("hello")
        print("world")
        return quiet(dataset, rng)

    result, silent = (audit(one, CLAIM, PAIR, **FAST) for one in (prints, quiet))
    assert any("printed 120 lines to stdout" in words and "'hello'" in words for words in result.warnings)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("hello\n") == 60
    assert fingerprint(result.evidence) == fingerprint(silent.evidence)
    assert silent.warnings == ()


def test_a_changed_working_directory_is_changed_back(tmp_path: Path) -> None:
    def moves(dataset: list[int], rng: Rng) -> float:
        os.chdir(tmp_path)
        return quiet(dataset, rng)

    before = Path.cwd()
    result = audit(moves, CLAIM, PAIR, **FAST)
    assert Path.cwd() == before
    assert any(f"changed the working directory to {tmp_path}" in words for words in result.warnings)


@pytest.mark.parametrize("draw", [random.random, lambda: np.random.normal()], ids=["random", "numpy"])  # noqa: NPY002
def test_global_random_state_is_reported(draw: Any) -> None:
    result = audit(lambda dataset, rng: dataset[0] + draw(), CLAIM, PAIR, **FAST)
    assert any("uses global random state" in words for words in result.warnings)


class Fails:
    """A mechanism of which a third of the runs fail, as if the machine were the cause."""

    def __init__(self, how_often: float = 1 / 3) -> None:
        self.how_often = how_often

    def __call__(self, dataset: list[int], rng: Rng) -> float:
        if rng.random() < self.how_often:
            raise OSError("the disk is on holiday")
        return quiet(dataset, rng)


@batched
def fails_together(dataset: list[int], n: int, rng: Rng) -> Any:
    if rng.random() < 1 / 3:
        raise OSError("the disk is on holiday")
    return dataset[0] + rng.normal(size=n)


@pytest.mark.parametrize("mechanism", [Fails(), fails_together], ids=["one by one", "together"])
def test_failing_runs_are_retried_if_that_is_wanted(mechanism: Any) -> None:
    """The seeds are given, so that it fails always or never."""
    result, again = (audit(mechanism, CLAIM, PAIR, failures="retry", **FAST) for _ in range(2))
    assert result.trials_used == 30
    assert any("failed and were retried: the claim was tested on successful runs only" in w for w in result.warnings)
    assert fingerprint(result.evidence) == fingerprint(again.evidence)


def test_failing_runs_end_the_audit_otherwise() -> None:
    """The seeds are given, so that it fails always or never."""
    stopped = audit(Fails(1 / 30), CLAIM, PAIR, **FAST | {"trials": 200, "seed": 1})
    assert stopped.verdict is Verdict.INCONCLUSIVE
    hopeless = audit(lambda d, rng: Fails(float(rng.random() < 0.02))(d, rng), CLAIM, PAIR, **FAST | {"trials": 200})
    assert "the disk is on holiday" in " ".join(hopeless.warnings)


@pytest.mark.parametrize(("claim", "trials"), [("pure(epsilon=1)", 1000), ("pure(epsilon=3.5)", 500)])
def test_each_verdict_says_that_failed_runs_were_retried(claim: str, trials: int) -> None:
    """Randomised response fails on most false answers; those that are left have epsilon = log(0.73 / 0.027) = 3.3.

    Fails by chance < 1 in 10**6: 1,000 runs show an epsilon above 1, and the claim with epsilon = 3.5 is true.
    """

    def selective(dataset: list[int], rng: Rng) -> int:
        truth = rng.random() < 1 / (1 + math.exp(-1))
        if not truth and rng.random() < 0.9:
            raise OSError("lost")
        return dataset[0] if truth else 1 - dataset[0]

    options: dict[str, Any] = {"attacks": "threshold", "failures": "retry", "seed": 0, "confidence": 1 - 1e-7}
    result = audit(selective, claim, PAIR, trials=trials, **options, confirm="never")
    assert result.verdict is (Verdict.VIOLATION if claim == "pure(epsilon=1)" else Verdict.NO_VIOLATION)
    said = "among the runs that succeeded (failed runs were retried, which alone can double epsilon)"
    read = AuditResult.from_dict(result.to_dict())
    for one in (result, read):
        assert f"{claim} {said}" in str(one).splitlines()[0]
        assert said in text_of(one)
    assert said not in str(audit(quiet, CLAIM, PAIR, failures="retry", **FAST))


def test_what_never_succeeds_is_given_up() -> None:
    calls = [0]

    def breaks(dataset: list[int], rng: Rng) -> float:
        calls[0] += 1
        if calls[0] > 100:
            raise OSError("gone")
        return quiet(dataset, rng)

    result = audit(breaks, CLAIM, PAIR, trials=200, failures="retry", seed=0, confidence=0.95)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert calls[0] < 150
    assert any("raised OSError: gone on run" in words and "10 times" in words for words in result.warnings)


class KillsAWorker:
    """A mechanism that kills the first worker process that runs it, like a machine without free memory."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.auditor = folder, os.getpid()

    def __call__(self, dataset: list[int], rng: Rng) -> float:
        if os.getpid() != self.auditor:
            with suppress(FileExistsError):
                (self.folder / "killed").mkdir()
                os.kill(os.getpid(), signal.SIGKILL)
        return quiet(dataset, rng)


def test_a_lost_worker_is_replaced_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call fails; the slow test below kills a worker."""
    lost: list[int] = []

    def elsewhere(function: Callable[[Any], Any], tasks: list[Any], jobs: int) -> list[Any]:
        if not lost:
            lost.append(jobs)
            raise ChildProcessError("a worker died")
        return [function(task) for task in tasks]

    monkeypatch.setattr(sampler, "called_elsewhere", elsewhere)
    check_that_one_worker_was_lost(quiet, monkeypatch)
    assert lost == [2]


@pytest.mark.slow
@pytest.mark.chance
@pytest.mark.filterwarnings("ignore:A worker stopped")
def test_a_worker_that_dies_is_replaced_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `retry`, the audit ends: see `test_a_worker_that_dies_ends_the_audit_and_loses_nothing`."""
    check_that_one_worker_was_lost(KillsAWorker(tmp_path), monkeypatch)


def check_that_one_worker_was_lost(mechanism: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "_WORTH_SENDING", 0.0)  # otherwise workers make these runs only on a slow machine
    retried = audit(mechanism, CLAIM, PAIR, jobs=2, failures="retry", **FAST)
    assert retried.trials_used == 30, retried.warnings
    said = "worker processes died or could not return their outputs (1 times)"
    assert any(said in words for words in retried.warnings), retried.warnings
    assert fingerprint(retried.evidence) == fingerprint(audit(quiet, CLAIM, PAIR, **FAST).evidence)


CONFIG = """\
name: noise
claim: gaussian(mu=1)
mechanism: {python: "mine.py:f"}
pairs: [{d0: [0.0], d1: [1.0]}]
attacks: median_clipped
trials: 60
seed: 1
"""
STRICT = "np.seterr(all='raise')\n"
RUN = """
def f(dataset, rng):
    {line}
    return dataset[0] + rng.normal()
"""


@pytest.mark.parametrize(
    "code", ["import numpy as np\n" + STRICT + RUN.format(line=""), "import numpy as np\n" + RUN.format(line=STRICT)]
)
def test_an_error_state_that_a_module_sets_does_not_reach_dpaudit(
    code: str, tmp_path: Path, command: Callable[..., Result]
) -> None:
    (tmp_path / "mine.py").write_text(code)
    (tmp_path / "c.yaml").write_text(CONFIG)
    before = np.geterr()
    done = command("run", "c.yaml", "--no-pdf")
    assert np.geterr() == before
    assert "internal error" not in done.stderr
    result = AuditResult.from_json(tmp_path / "dpaudit-results" / "noise.json")
    assert result.verdict is not Verdict.INCONCLUSIVE


def test_a_module_that_is_loaded_during_an_audit_sets_the_state_of_runs_only(tmp_path: Path) -> None:
    strict = RUN.format(line="assert np.geterr()['under'] == 'raise'")
    (tmp_path / "mine.py").write_text("import numpy as np\n" + STRICT + strict)
    with np.errstate():
        mechanism = PythonMechanism("mine.py:f", folder=tmp_path)
        result = audit(mechanism, CLAIM, PAIR, attacks="median_clipped", trials=60, seed=1)
    assert result.verdict is not Verdict.INCONCLUSIVE


def test_a_mechanism_runs_under_the_error_state_of_its_caller() -> None:
    seen: set[str] = set()

    def mechanism(dataset: Any, rng: np.random.Generator) -> float:
        seen.add(np.geterr()["under"])
        return float(dataset[0] + rng.normal())

    with np.errstate(all="raise"):
        strict = audit(mechanism, CLAIM, PAIR, attacks="median_clipped", trials=60, seed=1)
        assert np.geterr()["under"] == "raise"
    assert seen == {"raise"}
    usual = audit(mechanism, CLAIM, PAIR, attacks="median_clipped", trials=60, seed=1)
    assert strict.to_dict()["evidence"] == usual.to_dict()["evidence"]
    assert seen == {"raise", "ignore"}
