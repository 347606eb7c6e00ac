"""The action and the hooks for other projects work, and the page about them shows what exists."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import Command

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
EXPRESSION = re.compile(r"\$\{\{ ([\w.-]+) \}\}")
RIGHT = """\
name: right
claim: pure(epsilon=1)
mechanism: {builtin: geometric, params: {scale: 1.0}}
pairs: [{d0: [0], d1: [1]}]
trials: 40
"""
WRONG = RIGHT.replace("name: right", "name: wrong").replace("scale: 1.0", "scale: 0.3").replace("40", "4000")


class Job:
    """A job on GitHub that runs the action's own steps, and skips those of other actions."""

    def __init__(self, folder: Path, path: str) -> None:
        self.summary, self.log = folder / "summary.md", ""
        self._folder, self._path = folder, path
        self.values = {f"inputs.{name}": about.get("default") for name, about in ACTION["inputs"].items()}
        self.values |= {"inputs.configs": "project", "inputs.arguments": "--seed 1 --confirm never --no-pdf"}

    def code(self, source: Path, only: set[str]) -> int:
        """Run the steps as GitHub runs them in bash, up to the first that fails, and return its exit code."""
        self.values["github.action_path"] = str(source)
        for step in (step for step in STEPS if step.get("id") in only):
            given = {
                name: EXPRESSION.sub(lambda m: self.values[m[1]], text) for name, text in step.get("env", {}).items()
            }
            outputs = self._folder / step["id"]
            given |= {"GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(self.summary), "PATH": self._path}
            shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(
                shell, cwd=self._folder, env=os.environ | given, capture_output=True, text=True, check=False
            )
            self.log += done.stderr
            for line in outputs.read_text().splitlines() if outputs.exists() else ():
                name, _, value = line.partition("=")
                self.values[f"steps.{step['id']}.outputs.{name}"] = value
            if done.returncode:
                return done.returncode
        return 0


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Return a job with a project, in which `python` is the one that runs this test."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / "bin" / "python").chmod(0o755)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "right.yaml").write_text(RIGHT)
    return Job(tmp_path, f"{tmp_path / 'bin'}:{os.environ['PATH']}")


def test_a_violation_fails_the_job_after_the_summary_and_the_sarif_file(job: Job, tmp_path: Path) -> None:
    """The mechanism has a third of the noise.  The seeds are fixed."""
    (tmp_path / "project" / "wrong.yaml").write_text(WRONG)
    assert job.code(ROOT, {"audit", "verdict"}) == 1, job.log
    assert "wrong" in job.summary.read_text()
    sarif = json.loads((tmp_path / "dpaudit-results" / "dpaudit.sarif").read_text())
    assert {found["kind"] for found in sarif["runs"][0]["results"]} >= {"fail"}


def test_a_wrong_config_is_explained(job: Job, tmp_path: Path) -> None:
    (tmp_path / "project" / "right.yaml").write_text(RIGHT.replace("claim", "clam"))
    assert job.code(ROOT, {"audit", "verdict"}) == 2
    assert "right.yaml:2" in job.log
    assert "see the log" in job.summary.read_text()


@pytest.mark.parametrize(("python", "usable"), [("exit 127", None), ("exit 1", None), (None, "true")])
def test_a_python_that_takes_no_packages_is_replaced(
    job: Job, tmp_path: Path, python: str | None, usable: str | None
) -> None:
    """The next step sets up another Python then."""
    if python is not None:
        (tmp_path / "bin" / "python").write_text(f"#!/bin/sh\n{python}\n")
    assert job.code(ROOT, {"python"}) == 0
    assert job.values.get("steps.python.outputs.usable") == usable
    assert next(step for step in STEPS if "setup-python" in step.get("uses", ""))["if"] == (
        "steps.python.outputs.usable != 'true'"
    )


@pytest.mark.slow
def test_the_action_runs_in_a_fresh_clone(job: Job, tmp_path: Path) -> None:
    """All steps, in an environment without dpaudit."""
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{ROOT}", str(tmp_path / "action")], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    job = Job(tmp_path, f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}")
    assert job.code(tmp_path / "action", {step["id"] for step in STEPS if "id" in step}) in (0, 3), job.log
    assert "right" in job.summary.read_text()


def test_inputs_reach_a_shell_as_variables_only() -> None:
    """An expression inside `run:` is inserted into the command, and the name of a branch may hold code."""
    assert not [step["run"] for step in STEPS if "${{" in step.get("run", "")]
    assert all(re.fullmatch(r"(actions|github)/[\w/-]+@v\d+", step["uses"]) for step in STEPS if "uses" in step)


def test_the_page_names_the_inputs_and_the_hooks() -> None:
    assert re.findall(r"^\| `([\w-]+)` \|", PAGE, re.MULTILINE) == list(ACTION["inputs"])
    workflow, _, gitlab, hooks = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
    (used,) = [step for step in workflow["jobs"]["audit"]["steps"] if "dpaudit" in step.get("uses", "")]
    assert set(used["with"]) <= set(ACTION["inputs"])
    assert gitlab["privacy"]["script"][1].startswith("dpaudit run")
    assert {hook["id"] for hook in hooks["repos"][0]["hooks"]} == {hook["id"] for hook in HOOKS}


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_runs_the_command_it_names(hook: dict[str, Any], command: Command, tmp_path: Path) -> None:
    (tmp_path / "audit.yaml").write_text(RIGHT)
    program, *words = hook["entry"].split()
    assert program == "dpaudit"
    assert command(*words, "audit.yaml").exit_code in (0, 3)
    (tmp_path / "audit.yaml").write_text(RIGHT.replace("claim", "clam"))
    assert command(*words, "audit.yaml").exit_code == 2
