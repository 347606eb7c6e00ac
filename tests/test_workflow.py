"""The files for contributors and continuous integration are true: they parse, and run the documented commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
GITHUB = ROOT / ".github"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
YAML = sorted([*GITHUB.rglob("*.yml"), ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"])
PAGES = ["CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md"]
LINT = ["ruff check .", "ruff format --check .", "mypy"]


def _read(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


WORKFLOW: dict[Any, Any] = _read(GITHUB / "workflows" / "ci.yml")
JOBS: dict[str, Any] = WORKFLOW["jobs"]
PAGES_WORKFLOW: dict[Any, Any] = _read(GITHUB / "workflows" / "pages.yml")


def _steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, job in JOBS.items():
        for step in job["steps"]:
            yield name, step


def _commands(job: str) -> list[str]:
    return [step["run"] for name, step in _steps() if name == job and "run" in step]


def _documented() -> list[str]:
    return _normal("".join(re.findall(r"```sh\n(.*?)```", CONTRIBUTING, re.DOTALL)).replace(".venv/bin/", ""))


def _normal(script: str) -> list[str]:
    lines = script.replace("\\\n", "").replace(" && ", "\n").splitlines()
    return [shlex.join(words) for line in lines if (words := shlex.split(line, comments=True))]


def test_nothing_may_be_written_and_actions_have_a_version() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert not [name for name, job in JOBS.items() if "permissions" in job]
    used = [step["uses"] for _, step in _steps() if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/(checkout|setup-python|upload-artifact)@v[1-9][0-9]*", action) for action in used)
    checkouts = [step for _, step in _steps() if step.get("uses", "").startswith("actions/checkout")]
    assert len(checkouts) == len(JOBS)
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts)
    assert all(job["timeout-minutes"] <= 360 for job in JOBS.values())
    assert "pull_request_target" not in WORKFLOW[True]  # `on` is a truth value in YAML 1.1


def test_no_command_holds_text_of_others() -> None:
    """An expression inside `run:` is inserted into a shell command, and a title of a pull request may hold code."""
    steps = [step for job in PAGES_WORKFLOW["jobs"].values() for step in job["steps"]]
    assert not [step["run"] for step in [*steps, *(step for _, step in _steps())] if "${{" in step.get("run", "")]


def test_only_the_job_without_code_of_the_project_may_publish_pages() -> None:
    jobs = PAGES_WORKFLOW["jobs"]
    assert PAGES_WORKFLOW["permissions"] == {"contents": "read"}
    assert PAGES_WORKFLOW[True] == {"workflow_dispatch": None}  # `on` is a truth value in YAML 1.1
    assert {name: job.get("permissions") for name, job in jobs.items()} == {
        "build": None,
        "deploy": {"pages": "write", "id-token": "write"},
    }
    assert [step["uses"] for step in jobs["deploy"]["steps"]] == ["actions/deploy-pages@v4"]
    assert jobs["build"]["steps"][0]["with"] == {"persist-credentials": False}
    assert all(job["timeout-minutes"] <= 360 for job in jobs.values())


def test_each_python_of_the_classifiers_is_tested() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    versions = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert JOBS["newest"]["strategy"]["matrix"]["python"] == versions
    assert f'requires-python = ">={versions[0]}"' in project
    others = [
        step["with"]["python-version"]
        for name, step in _steps()
        if "setup-python" in step.get("uses", "") and name != "newest"
    ]
    assert set(others) == {versions[0]}


@pytest.mark.parametrize("job", ["newest", "oldest", "nightly", "sdist"])
def test_a_job_runs_what_is_documented(job: str) -> None:
    """Every command is in CONTRIBUTING.md, word for word."""
    documented = _documented()
    for command in _normal("\n".join(_commands(job))):
        if command != "python -m pip freeze --exclude-editable":  # for the log
            assert command in documented


def test_the_pinned_job_runs_the_command_of_the_readme() -> None:
    """tests/test_project.py compares .ci/run with the README."""
    assert _commands("pinned") == ["bash .ci/run"]


def test_lint_is_the_same_everywhere() -> None:
    last = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-len(LINT) :]
    assert last == [f".venv/bin/python -m {command}" for command in LINT]
    assert {f"python -m {command}" for command in LINT} <= set(_documented())
    hooks = [hook["entry"] for repo in _read(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert hooks == ["ruff check --force-exclude", "ruff format --force-exclude", "mypy"]


def test_slow_tests_run_by_night_only() -> None:
    nightly = {name for name, job in JOBS.items() if "== 'schedule'" in job["if"]}
    assert nightly == {"nightly"} == {name for name in JOBS if any("-m slow" in text for text in _commands(name))}
    assert all(job["if"] == "github.event_name != 'schedule'" for name, job in JOBS.items() if name != "nightly")
    assert WORKFLOW[True]["schedule"]


@pytest.mark.parametrize("name", PAGES)
def test_links_and_files_of_the_page_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        path, _, anchor = link.partition("#")
        file = path or name  # a link without a path leads to a heading of the same page
        assert (ROOT / file).exists(), link
        if anchor:
            titles = re.findall(r"^#+ (.+)$", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}, link


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", ".github/pull_request_template.md"])
def test_the_paths_it_names_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:audit|attacks|reports|tests|benchmarks|docs|configs)/[\w./-]*\w", text))
    named |= set(re.findall(r"`([\w-]+\.(?:md|txt|toml))`", text))
    assert named or name.startswith(".github")
    missing = [path for path in named if not (ROOT / path).exists()]
    assert [path for path in missing if "NAME" not in path] == []


def test_version_and_address_are_the_same_everywhere() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    citation = _read(ROOT / "CITATION.cff")
    assert f'version = "{citation["version"]}"' in project
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert f'license = "{citation["license"]}"' in project
    assert f'Homepage = "{citation["repository-code"]}"' in project
    contact = _read(GITHUB / "ISSUE_TEMPLATE" / "config.yml")["contact_links"][0]["url"]
    assert contact == f"{citation['repository-code']}/security/policy"
    assert f"## [{citation['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
