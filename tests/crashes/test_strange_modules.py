"""Modules in a stranger's folder do not replace modules of Python or of packages in the processes of dpaudit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NEIGHBOUR = """
import os, subprocess, sys, time
from pathlib import Path
sys.path.append(str(Path(__file__).parent))
import neighbour

def release(dataset, rng):
    child = subprocess.run([sys.executable, "-c", "import neighbour; print(neighbour.NUMBER)"], capture_output=True)
    return [os.getpid(), neighbour.NUMBER, int(child.stdout)]
"""
CALLS = """
import os
from pathlib import Path
from dpaudit.running.python import PythonMechanism
from dpaudit.running.backends import called_elsewhere

def release(dataset):
    return PythonMechanism("release.py:release").loaded(dataset, None)

for jobs in (1, 2):
    for process, *numbers in called_elsewhere(release, [[0], [0]], jobs):
        assert process != os.getpid()
        assert numbers == [7, 7]
assert "PYTHONSAFEPATH" not in os.environ
"""


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """Return a folder with modules that record their import, named like modules that the workers import."""
    (tmp_path / "joblib").mkdir()
    spy = f"from pathlib import Path\nPath({str(tmp_path / 'imported')!r}).open('a').write(__name__ + ' ')\n"
    for module in ("joblib/__init__", "random", "pickle", "runpy", "signal", "threading", "numpy"):
        (tmp_path / f"{module}.py").write_text(spy)
    return tmp_path


def run(folder: Path, code: str) -> None:
    """Run a program in a folder.  As for the program `dpaudit`, only the program's own folder is in the path."""
    (folder / "bin").mkdir()
    (folder / "bin" / "program").write_text(code)
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, "bin/program"], cwd=folder, env=variables, capture_output=True, text=True, timeout=100
    )
    assert not (folder / "imported").exists(), (folder / "imported").read_text()
    assert done.returncode == 0, done.stderr


def test_workers_import_nothing_from_the_current_folder_but_a_mechanism_and_its_programs_do(strange: Path) -> None:
    """The module of the mechanism appends its folder to the path."""
    (strange / "release.py").write_text(NEIGHBOUR)
    (strange / "neighbour.py").write_text("NUMBER = 7\n")
    run(strange, CALLS)
