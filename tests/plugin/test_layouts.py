"""The commands that a failing test prints work in the project that it belongs to, however its tests were started."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dpaudit.testing.layout import Layout

NOISE = "def noise(dataset, rng):\n    return sum(dataset) + rng.normal(scale=0.2)\n"
TEST = """\
from dplib import noise
from dpaudit import GaussianDP, Pair

def test_wrong(dpaudit):
    dpaudit.assert_private(noise, claim=GaussianDP(1.0), pairs=Pair([0], [1]), attacks="threshold")
"""
PYPROJECT = '[tool.pytest.ini_options]\npythonpath = ["{folder}"]\n'


@dataclass(frozen=True, kw_only=True)
class Project:
    """The files of a project whose package is not installed, and how its tests are started."""

    start: str
    folder: str = "."  # in which they are started
    package: str = "dplib"
    test: str = "tests/test_noise.py"
    files: dict[str, str] = field(default_factory=dict)


PROJECTS = {
    "flat": Project(start="python -m pytest"),
    "conftest": Project(start="pytest", files={"conftest.py": ""}),
    "src": Project(start="pytest", package="src/dplib", files={"pyproject.toml": PYPROJECT.format(folder="src")}),
    "inside-tests": Project(
        start="pytest", folder="tests", package="src/dplib", files={"pyproject.toml": PYPROJECT.format(folder="src")}
    ),
    "beside-tests": Project(
        start="python -m pytest ../tests", folder="build", files={"pyproject.toml": PYPROJECT.format(folder=".")}
    ),
    "many-packages": Project(
        start="pytest a/tests",
        package="a/dplib",
        test="a/tests/test_noise.py",
        files={"a/pyproject.toml": PYPROJECT.format(folder="."), "b/pyproject.toml": ""},
    ),
    "config-elsewhere": Project(
        start="pytest -c conf/t.ini --rootdir . tests", files={"conf/t.ini": "[pytest]\npythonpath = ..\n"}
    ),
    "tox": Project(start=".tox/py/bin/python -m pytest"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROJECTS)
def test_the_printed_commands_work_in_every_layout(name: str, tmp_path: Path) -> None:
    """The same runs fail again with the same numbers, and fresh runs confirm the violation.

    The noise is a fifth of the claimed: fresh runs miss it with probability < 1e-6.
    """
    project = PROJECTS[name]
    files = {f"{project.package}/__init__.py": NOISE, project.test: TEST, **project.files}
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    (tmp_path / project.folder).mkdir(exist_ok=True)
    tools = Path(sys.executable).parent
    env = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(filter(os.path.isabs, sys.path))}
    if name == "tox":
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / ".tox" / "py")], check=True)
        env["PATH"] = "/usr/bin:/bin"  # the environment is not active where the user types

    def typed(command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path / project.folder,
            env={**os.environ, "COLUMNS": "1000", **env},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    code, said = typed(project.start)
    assert code == 1, said
    (same,) = set(re.findall(r"same runs: (.+?) \(new runs: 1\)", said))
    (fresh,) = set(re.findall(r"fresh runs: (.+)", said))
    code, again = typed(same)
    assert code == 1, again
    assert re.findall(r"VIOLATION of .+", again) == re.findall(r"VIOLATION of .+", said)
    code, replayed = typed(fresh)
    assert code == 1, replayed
    assert "Confirmed" in replayed


@pytest.mark.parametrize(
    ("layout", "commands"),
    [
        (
            {"by_module": True},
            [
                "python -m pytest 'tests/test_a.py::t[1]' --dpaudit-seed 3 (new runs: 4)",
                "python -m dpaudit replay found/r.json",
            ],
        ),
        (
            {"by_module": False},
            ["pytest 'tests/test_a.py::t[1]' --dpaudit-seed 3 (new runs: 4)", "dpaudit replay found/r.json"],
        ),
        (
            {"here": Path("/p/tests"), "options": ["-c", "../tox.ini"]},
            [
                "python -m pytest -c ../tox.ini 'test_a.py::t[1]' --dpaudit-seed 3 (new runs: 4)",
                "PYTEST_ADDOPTS='-c ../tox.ini' python -m dpaudit replay ../found/r.json",
            ],
        ),
        (
            {"here": Path("/p/my build")},
            [
                "cd /p && python -m pytest 'tests/test_a.py::t[1]' --dpaudit-seed 3 (new runs: 4)",
                "cd /p && python -m dpaudit replay found/r.json",
            ],
        ),
        (
            {"python": Path("/p/.tox/py/bin/python"), "by_module": False},
            [
                ".tox/py/bin/pytest 'tests/test_a.py::t[1]' --dpaudit-seed 3 (new runs: 4)",
                ".tox/py/bin/dpaudit replay found/r.json",
            ],
        ),
    ],
)
def test_commands_fit_how_the_session_was_started(layout: dict[str, Any], commands: list[str]) -> None:
    made = Layout(**{"here": Path("/p"), "root": Path("/p"), "python": Path("/usr/bin/python3"), **layout})
    same, fresh = made.commands("t/test_a.py::t[1]", Path("/p/tests/test_a.py"), 3, "/p/found/r.json")
    assert [same.removeprefix("same runs: "), fresh.removeprefix("fresh runs: ")] == commands
