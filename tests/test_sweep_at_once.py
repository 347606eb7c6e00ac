"""`dpaudit sweep` with two cells at once: the rule, lost workers, interruptions, and no process that is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dpaudit.cli import runner
from dpaudit.cli.one_audit import End, EventLog, Outcome, Task, make
from dpaudit.cli.options import RunOptions
from dpaudit.engine.schedule import FIRST_TRIALS, Round, Spent, next_round
from dpaudit.result.suite import Promise

from .crashes.test_internal_errors import alive, children, ends
from .replaced_audits import HEAD, Audits, replaced_audits, states, swept, written

NEW = Spent(log_threshold=9.0, most=100_000)
_PATIENCE = 60.0  # seconds; far longer than this test takes on a busy machine


class Simulated:
    """Workers that make their rounds in this process, when they are awaited.

    Attributes:
        together: The cells of each moment at which rounds were awaited.
        dies: The beginning of the names of cells whose worker dies.
    """

    together: list[list[int]]
    dies = "none"
    interrupt_at = 10**9

    def __init__(self, number: int, options: RunOptions, promise: Promise) -> None:
        self._number, self._about, self.tasks = number, (options, promise), list[Task]()
        type(self).together = []

    @property
    def free(self) -> bool:
        return len(self.tasks) < self._number

    def start(self, task: Task) -> None:
        self.tasks.append(task)

    def ended(self, seconds: float) -> list[tuple[Task, Outcome]]:
        self.together.append([task.number for task in self.tasks])
        if len(self.together) == self.interrupt_at:
            raise KeyboardInterrupt
        task = self.tasks.pop(0)
        if task.name.startswith(self.dies):
            return [(task, Outcome(end=End.FAILED, reason="the process ended: SIGSEGV", seconds=0.1))]
        return [(task, self._made(task))]

    def interrupt(self) -> list[tuple[Task, Outcome]]:
        ended = [(task, self._made(task)) for task in self.tasks]
        return [(task, one if "dropped" in task.name else Outcome(end=End.INTERRUPTED)) for task, one in ended]

    def close(self) -> None:
        self.tasks.clear()

    def _made(self, task: Task) -> Outcome:
        return make(task, *self._about, EventLog(None), shown=False)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> type[Simulated]:
    chosen = type("Chosen", (Simulated,), {})
    monkeypatch.setattr(runner, "Workers", chosen)
    return chosen


def audits_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *names: str) -> Audits:
    return replaced_audits(monkeypatch, tmp_path, *names)


def test_a_running_cell_gets_no_second_round_and_first_rounds_may_take_longer() -> None:
    used = replace(NEW, trials=300, seconds=2.0, last_seconds=2.0)
    assert next_round([replace(NEW, busy=True), NEW], 100, at_once=2) == Round(1, FIRST_TRIALS, 100)
    assert next_round([NEW] * 4, 100, at_once=2) == Round(0, FIRST_TRIALS, 25.0)
    assert next_round([replace(used, busy=True)], 100, at_once=2) is None
    found = next_round([replace(used, log_e=8.0, busy=True), used], 100, at_once=2)
    assert found is not None
    assert found.cell == 1


def test_two_cells_are_audited_at_once_and_have_the_same_verdicts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workers: type[Simulated]
) -> None:
    audits = audits_of(monkeypatch, tmp_path, "good", "bad", "failed")
    assert swept("--time", "2s", "--jobs", "2", "--seed", "3").exit_code == 1
    assert max(map(len, workers.together)) == 2
    assert all(len(set(cells)) == len(cells) for cells in workers.together), "a cell has one round at a time"
    two, seeds = states(), {name: seed for name, _, _, seed in audits.rounds}
    assert swept("--time", "2s", "--seed", "3", "-o", "one").exit_code == 1
    assert {name: seed for name, _, _, seed in audits.rounds} == seeds
    assert two == {
        **dict.fromkeys(("good-0.5", "good-1.0"), "no violation found"),
        **dict.fromkeys(("bad-0.5", "bad-1.0"), "violation"),
        **dict.fromkeys(("failed-0.5", "failed-1.0"), "not audited"),
    }


def test_a_lost_worker_closes_its_cell_also_for_a_resumed_sweep(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workers: type[Simulated]
) -> None:
    """The run that ended the worker must not be repeated because of its outcome."""
    audits = audits_of(monkeypatch, tmp_path, "good", "fragile")
    swept("--time", "0.3s", "--jobs", "2")
    first = {name for name, _, _, _ in audits.rounds}
    assert "fragile-0.5-1.1.5" in first
    workers.dies = "fragile-0.5"
    swept("--time", "3s", "--jobs", "2", "--resume")
    assert {cell["title"]: cell["closed"] for cell in written()["cells"]}["fragile-0.5"]
    before = len(audits.rounds)
    workers.dies = "none"
    swept("--time", "9s", "--jobs", "2", "--resume")
    later = {name for name, _, _, _ in audits.rounds[before:]}
    assert later
    assert "fragile-0.5-1.1.5" not in later


def test_an_interruption_keeps_failed_runs_and_the_elapsed_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workers: type[Simulated]
) -> None:
    audits_of(monkeypatch, tmp_path, "dropped", "good")
    workers.interrupt_at = 2
    done = swept("--time", "2s", "--jobs", "2")
    assert done.exit_code == 3
    assert written()["interrupted"]
    assert states() == {
        "dropped-0.5": "inconclusive",
        "dropped-1.0": "inconclusive",
        "good-0.5": "not audited",  # its blocks are in the store
        "good-1.0": "not audited",
    }
    assert written()["spent"] == pytest.approx(0.3), "the clock, and not the sum over cells"


HANGS = """\
import os, time
class Hangs:
    delta = 0.0
    def __init__(self, epsilon, dtype="int"):
        self.epsilon = epsilon
    def quick_result(self, data):
        open(f"started-{self.epsilon}", "w").close()
        while True:
            time.sleep(0.01)
"""


@pytest.mark.chance
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.slow  # crashes/test_interruption_and_progress.py ends `dpaudit run` in the same way
def test_all_processes_end_with_the_sweep(tmp_path: Path) -> None:
    module = tmp_path / "pydp" / "algorithms"
    module.mkdir(parents=True)
    for file, text in (("../__init__", ""), ("__init__", ""), ("laplacian", HANGS)):
        (module / f"{file}.py").write_text(text)
    entry = "  - {call: Hangs, grid: {epsilon: [0.5, 1.0]}, arguments: {epsilon: $epsilon}}\n"
    (tmp_path / "hangs.yaml").write_text(HEAD + entry)
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(
        [sys.executable, "-m", "dpaudit", "sweep", "hangs.yaml", "-q", "--no-pdf", "--jobs", "2", "-o", "out"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as dpaudit:
        end = time.monotonic() + _PATIENCE
        while len(list(tmp_path.glob("started-*"))) < 2 and time.monotonic() < end and dpaudit.poll() is None:
            time.sleep(0.02)
        others = children(dpaudit.pid)
        assert len([other for other in others if alive(other)]) >= 2
        dpaudit.send_signal(signal.SIGTERM)
        shown, said = dpaudit.communicate(timeout=_PATIENCE)
    assert [other for other in others if not ends(other)] == []
    assert dpaudit.returncode == 3, shown + said
    assert "interrupted; the later audits were not run.  To resume: dpaudit sweep" in said
    assert "the sweep was interrupted" in (tmp_path / "out" / "sweep.json").read_text()
