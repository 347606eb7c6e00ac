"""A mechanism that exits, hangs or changes the folder ends only its own audit, with a message.

Time limits are generous by orders of magnitude.  Nothing else here can fail by chance.
"""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import MechanismError, Pair, Verdict, audit, batched
from dpaudit.running.mechanisms import PythonMechanism
from dpaudit.running.processes import Child

PAIR = Pair([0], [1])
CLAIM = "gaussian(mu=1)"
Rng = np.random.Generator


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("nothing to say")


EXITS: list[Callable[[], Any]] = [
    lambda: sys.exit(0),
    lambda: raises(asyncio.CancelledError()),
    lambda: raises(Unspeakable()),
    lambda: raises(BaseException("of a test runner")),
]


def raises(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("end", EXITS)
def test_a_mechanism_that_raises_what_is_no_exception_ends_its_audit_inconclusive(end: Callable[[], Any]) -> None:
    def ends(dataset: list[int], rng: Rng) -> float:
        value = float(rng.normal())
        if value > 1.5:
            end()
        return value

    result = audit(ends, CLAIM, PAIR, trials=200, seed=1)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "the mechanism raised " in result.warnings[0]
    with pytest.raises(MechanismError, match="the mechanism raised "):
        audit(batched(lambda dataset, n, rng: end()), CLAIM, PAIR, trials=200, seed=1)


def test_an_exit_is_an_outcome_if_failures_are_but_what_a_test_runner_raises_is_not() -> None:
    def ends(dataset: list[int], rng: Rng) -> float:
        if dataset[0]:
            sys.exit(3)
        return float(rng.normal())

    assert audit(ends, CLAIM, PAIR, attacks="logistic", trials=300, seed=1, failures="outcome").violated
    for failures in ("outcome", "retry"):
        with pytest.raises(MechanismError, match="raised BaseException: stop"):
            audit(lambda dataset, rng: raises(BaseException("stop")), CLAIM, PAIR, seed=1, failures=failures)


class ExitsWhenRead:
    def __array__(self, *_: Any, **__: Any) -> Any:
        sys.exit(0)


class ExitsWhenCounted(list[float]):
    def __len__(self) -> int:
        sys.exit(0)


@pytest.mark.parametrize("output", [ExitsWhenRead, ExitsWhenCounted])
def test_an_output_that_exits_ends_its_audit(output: type) -> None:
    with pytest.raises(MechanismError):
        audit(lambda dataset, rng: output(), CLAIM, PAIR, trials=100, seed=1)
    with pytest.raises(MechanismError):
        audit(batched(lambda dataset, n, rng: output()), CLAIM, PAIR, trials=100, seed=1)


def exits_late(dataset: list[int], rng: Rng) -> float:
    time.sleep(0.004)
    if rng.random() < 0.02:
        sys.exit(0)
    return float(rng.normal())


@pytest.mark.slow
def test_an_exit_in_a_worker_process_ends_the_audit_inconclusive() -> None:
    mechanism = PythonMechanism(f"{__file__}:exits_late")
    result = audit(mechanism, CLAIM, PAIR, trials=400, seed=1, jobs=2, attacks="median_clipped")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "SystemExit" in result.warnings[0]


MODULES = {
    "import": ("import sys\nsys.exit(0)\ndef release(d, rng): ...\n", None, "importing mine.py raised SystemExit: 0"),
    "factory": ("def release(**_): quit()\n", {"a": 1}, "with params {'a': 1} raised SystemExit"),
    "words": (
        "class Bad(Exception):\n    def __str__(self): raise ValueError\nraise Bad\n",
        None,
        "importing mine.py raised Bad: (its message is unavailable: __str__ raised ValueError)",
    ),
}


@pytest.mark.parametrize("what", MODULES)
def test_a_module_that_exits_cannot_be_loaded(tmp_path: Path, what: str) -> None:
    code, params, words = MODULES[what]
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(MechanismError) as raised:
        _ = PythonMechanism("mine.py:release", params, folder=tmp_path).loaded
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("exit_", "words"),
    [("import sys; sys.exit(0)", "SystemExit: 0"), ("import os; os._exit(0)", "SystemExit: os._exit(0) was called")],
)
def test_the_program_never_says_success_where_a_mechanism_exits(tmp_path: Path, exit_: str, words: str) -> None:
    """The second of three audits exits in its first run; the first and the third are completed."""
    for name, mechanism in {
        "a": "{builtin: gaussian, params: {sigma: 1.0}}",
        "b": "{python: 'mine.py:release'}",
        "c": "{builtin: gaussian, params: {sigma: 1.0}}",
    }.items():
        text = f"name: {name}\nclaim: gaussian(mu=1)\nmechanism: {mechanism}\npairs: [{{d0: [0], d1: [1]}}]\n"
        (tmp_path / f"{name}.yaml").write_text(f"{text}attacks: median_clipped\ntrials: 50\nseed: 1\n")
    (tmp_path / "mine.py").write_text(f"def release(dataset, rng): {exit_}\n")
    arguments = [sys.executable, "-m", "dpaudit", "run", ".", "--no-pdf", "-q", "-o", "out"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert {file.name for file in (tmp_path / "out").glob("*.json")} == {"a.json", "c.json"}
    assert f"raised {words}" in done.stderr


def starts_processes(dataset: list[int], rng: Rng) -> float:
    """Start a process in five ways; each way ends or replaces a fork of this process."""
    codes = [
        subprocess.run(["sh", "-c", "exit 3"], check=False).returncode,
        subprocess.run(["sh", "-c", "exit 3"], check=False, preexec_fn=lambda: None).returncode,
        os.spawnlp(os.P_WAIT, "sh", "sh", "-c", "exit 3"),
    ]
    if (child := os.fork()) == 0:
        os.execlp("sh", "sh", "-c", "exit 3")
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    process = multiprocessing.get_context("fork").Process(target=sys.exit, args=(3,))
    process.start()
    process.join()
    assert [*codes, process.exitcode] == [3] * 5
    return float(rng.normal())


def test_a_mechanism_may_start_processes() -> None:
    assert audit(starts_processes, CLAIM, PAIR, trials=2, seed=1).trials_used == 2


# --- time -------------------------------------------------------------------------------------------------------------


def swallows(dataset: list[int], rng: Rng) -> float:
    value = float(rng.normal())
    while value > 1:
        try:  # noqa: SIM105
            time.sleep(1)
        except:  # noqa: E722
            pass
    return value


def gives_a_default(dataset: list[int], rng: Rng) -> float:
    value = float(rng.normal())
    try:
        while value > 1:
            time.sleep(0.01)
    except BaseException:
        return 0.0
    return value


@pytest.mark.chance
@pytest.mark.parametrize("failures", ["stop", "outcome"])
@pytest.mark.parametrize("mechanism", [pytest.param(swallows, marks=pytest.mark.slow), gives_a_default])
def test_a_timeout_ends_the_audit_whatever_the_mechanism_makes_of_it(mechanism: Any, failures: Any) -> None:
    """Timeouts depend on the load of the machine, which may differ between runs on d0 and runs on d1.

    On a very busy machine, even the first run may take too long.  Then there is no result, but the same explanation.
    """
    try:
        result = audit(mechanism, CLAIM, PAIR, trials=300, timeout=0.05, failures=failures, seed=0, attacks="logistic")
    except MechanismError as error:
        words = str(error)
    else:
        assert result.verdict is Verdict.INCONCLUSIVE
        words = result.warnings[0]
    assert "the mechanism took longer than 0.05 s on run " in words
    assert ("unless observe_time is set" in words) is (failures != "stop")


@pytest.mark.chance
def test_a_timeout_is_an_outcome_where_times_are_observed() -> None:
    def slow(dataset: list[int], rng: Rng) -> float:
        if dataset[0]:
            time.sleep(10)
        return float(rng.normal())

    given: dict[str, Any] = {"attacks": "plug_in_ratio", "confidence": 0.9}
    result = audit(slow, CLAIM, PAIR, trials=60, timeout=0.02, failures="outcome", observe_time=True, seed=0, **given)
    assert result.violated


@pytest.mark.chance
def test_a_module_that_hangs_on_import_is_ended(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import time\ntime.sleep(1000)\n")
    with pytest.raises(MechanismError, match=r"loading mine\.py:release took longer than 0\.1 s"):
        _ = PythonMechanism("mine.py:release", folder=tmp_path, timeout=0.1).loaded


@pytest.mark.parametrize("timeout", [float("inf")])
def test_a_timeout_may_be_longer_than_any_timer(timeout: float) -> None:
    result = audit(lambda dataset, rng: float(rng.normal()), CLAIM, PAIR, trials=12, timeout=timeout, seed=0)
    assert result.trials_used == 12
    child = Child(["cat"], name="cat")
    assert child.exchange(b"a\n", lambda heard, _: heard.find(b"\n") + 1, timeout=timeout, awaited="a line") == b"a\n"
    child.close()


# --- modules ----------------------------------------------------------------------------------------------------------


def test_a_module_that_changes_the_working_directory_moves_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import os\nos.chdir('/')\ndef release(d, rng): return d[0] + rng.normal()\n")
    before = Path.cwd()
    mechanism = PythonMechanism("mine.py:release", folder=tmp_path)
    _ = mechanism.loaded
    assert Path.cwd() == before
    result = audit(mechanism, CLAIM, PAIR, trials=50, seed=0, attacks="median_clipped")
    assert result.warnings == ("the mechanism changed the working directory to /; dpaudit restored it",)


def test_a_file_that_was_edited_is_loaded_again(tmp_path: Path) -> None:
    for answer in (1, 2):
        (tmp_path / "mine.py").write_text(f"def release(dataset, rng): return {answer}\n")
        assert PythonMechanism("mine.py:release", folder=tmp_path).loaded(None, None) == answer
