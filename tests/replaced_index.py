"""A package index and audits for tests of `dpaudit bisect`, so that no test installs a package or runs an audit."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version
from typer.testing import CliRunner, Result

from dpaudit.cli import audit_releases, runner
from dpaudit.cli.app import app
from dpaudit.cli.one_audit import End, Outcome, Task
from dpaudit.cli.options import RunOptions
from dpaudit.cli.prepare_run import NotReady
from dpaudit.config.planned import PlannedAudit
from dpaudit.result.suite import Promise
from dpaudit.running import MechanismError
from dpaudit.running.requirements import Releases

from .reports import sample

DOCS = Path(__file__).parent.parent / "docs"
CONFIG = """\
audits:
  - &noise
    name: noise
    claim: gaussian(mu=1)
    mechanism: {python: noise.py:release, requires: ["tinylaw[fast]>=1"]}
    pairs: [{d0: [0], d1: [1]}]
    seed: 7
"""
OFFLINE = "error: Failed to fetch: https://x/\n      cause: error sending request for url (https://x/)"
RESULTS = {"b": sample.violation, "g": sample.no_violation, "o": sample.inconclusive}


@dataclass
class Index:
    """The releases of an index, one letter a release as in `tests/engine/test_schedule.py`."""

    history: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    error: MechanismError | None = None
    installed: dict[str, str] = field(default_factory=dict)  # the installed version, where it is not the asked one
    environments: dict[str, dict[str, str]] = field(default_factory=dict)  # the packages that results record
    confidences: dict[str, float] = field(default_factory=dict)  # of each audit that was run
    seeds: dict[str, int | None] = field(default_factory=dict)

    def released(self, package: str, python_version: str | None = None) -> Releases:
        if self.error is not None:
            raise self.error
        final = tuple(sorted(Version(name) for name in self.history if name not in self.left_out))
        left_out = {Version(name): kind for name, kind in self.left_out.items()}
        return Releases(final=final, left_out=left_out, unread=self.unread)

    def version(self, planned: PlannedAudit) -> str:
        return (planned.config.mechanism.requires or [""])[0].partition("==")[2]

    def letter(self, planned: PlannedAudit) -> str:
        return self.history[self.version(planned)]

    def first_run(self, planned: PlannedAudit, options: RunOptions) -> dict[str, str]:
        version = self.version(planned)
        if self.letter(planned) == "s":
            raise NotReady("noise.yaml:3: ...", reason="installing it failed; uv printed:\n    one\n    No space left")
        if self.letter(planned) == "w":
            raise NotReady("noise.yaml:3: ...", reason=f"installing tinylaw failed; uv printed:\n    {OFFLINE}")
        return {"Tinylaw": self.installed.get(version, version), "other": "1"}

    def loaded(self, planned: Sequence[PlannedAudit], confidences: Sequence[float], _: RunOptions) -> list[Task]:
        if self.letter(planned[0]) == "n":
            raise NotReady("noise.yaml:3: noise.json is a folder; remove it or use another -o")
        return [
            Task(number=number, audits=len(planned), planned=one, confidence=confidence)
            for number, (one, confidence) in enumerate(zip(planned, confidences, strict=False))
        ]

    def make(self, task: Task, options: RunOptions, promise: Promise, log: object, *, shown: bool) -> Outcome:
        letter = self.letter(task.planned)
        self.confidences[task.name], self.seeds[task.name] = task.confidence, task.planned.config.seed
        if letter == "i":
            return Outcome(end=End.INTERRUPTED)
        if letter == "x":
            return Outcome(end=End.BROKEN, reason="internal error")
        result = RESULTS[letter]()
        provenance = replace(result.provenance, mechanism_packages=self.environments.get(self.version(task.planned)))
        return Outcome(end=End.RESULT, result=replace(result, name=task.name, provenance=provenance))


Bisect = Callable[..., Result]


def replaced_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Index:
    found = Index()
    monkeypatch.setattr(audit_releases, "released", found.released)
    monkeypatch.setattr(audit_releases, "_first_run", found.first_run)
    monkeypatch.setattr(audit_releases, "loaded", found.loaded)
    monkeypatch.setattr(runner, "make", found.make)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noise.yaml").write_text(CONFIG)
    (tmp_path / "noise.py").write_text("def release(dataset, rng): ...\n")
    return found


def bisected(index: Index, history: str | dict[str, str], *options: str) -> Result:
    """Run the command on releases 1.1, 1.2, ... with this history."""
    index.history = {f"1.{n}": letter for n, letter in enumerate(history, 1)} if isinstance(history, str) else history
    line = ["bisect", "noise.yaml", "tinylaw", "--no-pdf", *options]
    return CliRunner().invoke(app, line, catch_exceptions=False)


def written() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("dpaudit-results/bisection.json").read_text())
    return found


def prose(done: Result) -> str:
    return " ".join(done.stdout.split())
