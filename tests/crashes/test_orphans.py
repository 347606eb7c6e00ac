"""Whenever dpaudit ends, its child processes end too, and foreign code cannot end it silently."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dpaudit.mechanisms import CommandMechanism, MechanismError

from .command_line import CONFIG, Copy

_PATIENCE = 60.0  # seconds; far longer than any of these tests takes on a busy machine
_STUCK = """
import os, sys, time
sys.stdin.readline()
open("started", "w").write(str(os.getpid()))
while True: pass
"""


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"


def awaited(path: Path) -> int:
    """Wait for the number that another process writes to a file, and return it."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        if path.exists() and (text := path.read_text()):
            return int(text)
        time.sleep(0.02)
    raise AssertionError(f"{path} was not written")


def ends(process: int) -> bool:
    end = time.monotonic() + _PATIENCE
    while alive(process):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def children(process: int) -> list[int]:
    """Return all processes that a process started, and those that they started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == process:
                found.append(int(stat.parent.name))
    return [*found, *(child for one in found for child in children(one))]


def started(folder: Path, *options: str) -> Copy:
    return Copy(folder, ("run", "stuck.yaml", "--no-pdf", *options))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL"])
@pytest.mark.chance
def test_a_stuck_program_ends_with_dpaudit_and_the_measurement_is_written(how: str, folder: Path) -> None:
    (folder / "stuck.py").write_text(_STUCK)
    program = f"command: [{sys.executable}, stuck.py]"
    (folder / "stuck.yaml").write_text(CONFIG.replace("builtin: gaussian, params: {sigma: 1.0}", program))
    dpaudit = started(folder)
    program_id = awaited(folder / "started")
    os.kill(dpaudit.process, getattr(signal, how))
    code, _, said = dpaudit.ended()
    assert ends(program_id)
    if how == "SIGTERM":
        assert code == 3, said
        assert "interrupted" in said
        assert "Traceback" not in said
        found = json.loads((folder / "dpaudit-results" / "noise.json").read_text())
        assert found["verdict"] == "inconclusive"
    else:
        assert code == -signal.SIGKILL


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.chance
def test_a_stuck_worker_ends_with_dpaudit(folder: Path) -> None:
    """The other worker and the resource tracker end, too."""
    (folder / "slow.py").write_text(
        "import os, time\n"
        "def release(dataset, rng):\n"
        f"    if os.getppid() != {os.getpid()} and not os.path.exists('started'):\n"
        "        open('started', 'w').write(str(os.getpid()))\n"
        "        while True: time.sleep(0.01)\n"
        "    time.sleep(0.05)\n"
        "    return 0.0\n"
    )
    (folder / "stuck.yaml").write_text(
        CONFIG.replace("{builtin: gaussian, params: {sigma: 1.0}}", '{python: "slow.py:release"}')
    )
    dpaudit = started(folder, "--jobs", "2")
    worker = awaited(folder / "started")
    others = children(dpaudit.process)
    assert worker in others
    assert len(others) >= 3
    os.kill(dpaudit.process, signal.SIGKILL)
    dpaudit.ended()
    assert [other for other in others if not ends(other)] == []


@pytest.mark.chance
def test_a_program_that_died_is_reported_although_its_child_holds_the_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.mechanisms.processes._LOOK", 0.05)
    with CommandMechanism(["sh", "-c", "read x; sleep 1000 & exit 1"]) as mechanism:
        began = time.monotonic()
        with pytest.raises(MechanismError, match=r"ended with exit status 1 .*still holds its stdout"):
            mechanism.sample([0], 1, np.random.default_rng(0))
        assert time.monotonic() - began < _PATIENCE


@pytest.mark.chance
def test_an_endless_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.mechanisms.processes.MAX_ANSWER_BYTES", 10**6)
    with (
        CommandMechanism(["sh", "-c", "read x; exec yes | tr -d '\\n'"]) as mechanism,
        pytest.raises(MechanismError, match="in one answer and was killed; return smaller outputs"),
    ):
        mechanism.sample([0], 1, np.random.default_rng(0))


ENDS = {
    "import posix; posix._exit(0)": "os._exit(0) was called",
    "import os; os.execlp('true', 'true')": "/true', ...) was called",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_run_can_neither_end_nor_replace_dpaudit(end: str, folder: Path) -> None:
    (folder / "sly.py").write_text(f"def release(dataset, rng):\n    {end}\n")
    text = CONFIG.replace("{builtin: gaussian, params: {sigma: 1.0}}", '{python: "sly.py:release"}')
    (folder / "stuck.yaml").write_text(text)
    code, shown, said = started(folder).ended()
    assert code == 3, shown + said
    assert ENDS[end] in said


@pytest.mark.parametrize("place", ["import", "exit"])
def test_a_mechanism_cannot_end_dpaudit_silently(place: str, folder: Path) -> None:
    (folder / "sly.py").write_text(
        "import atexit, os\n"
        f"place = {place!r}\n"
        "if place == 'import': os._exit(0)\n"
        "if place == 'exit': atexit.register(os._exit, 0)\n"
        "def release(dataset, rng):\n"
        "    return dataset[0] * 100 + rng.normal()\n"  # equal outputs would be tested again in new processes
    )
    text = CONFIG.replace("{builtin: gaussian, params: {sigma: 1.0}}", '{python: "sly.py:release"}')
    (folder / "stuck.yaml").write_text(f"{text}confirm: never\n")
    code, shown, said = started(folder).ended()
    assert code == {"import": 2, "exit": 1}[place], shown + said
    if place != "exit":
        assert "os._exit(0) was called" in said
