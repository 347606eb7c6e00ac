"""Programs end when dpaudit is interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

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
@pytest.mark.chance
def test_a_stuck_program_ends_with_dpaudit_and_the_measurement_is_written(folder: Path) -> None:
    (folder / "stuck.py").write_text(_STUCK)
    program = f"command: [{sys.executable}, stuck.py]"
    (folder / "stuck.yaml").write_text(CONFIG.replace("builtin: gaussian, params: {sigma: 1.0}", program))
    dpaudit = started(folder)
    program_id = awaited(folder / "started")
    os.kill(dpaudit.process, signal.SIGTERM)
    code, _, said = dpaudit.ended()
    assert ends(program_id)
    assert code == 3, said
    assert "interrupted" in said
    assert "Traceback" not in said
    found = json.loads((folder / "dpaudit-results" / "noise.json").read_text())
    assert found["verdict"] == "inconclusive"
