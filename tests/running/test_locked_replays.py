"""A replay and a comparison measure the packages of the audit, or say that they did not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from .programs import Command, wheel

UNLOCKED = "warning: the replay did not use the exact packages of the audit, but packages that the installer chose"


@pytest.fixture
def here(audited: Path, shared_audit: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the copy on the machine of the audit, where its environment need not be built again."""
    monkeypatch.setenv("DPAUDIT_CACHE", str(shared_audit / "cache"))
    return audited


def _replayed(command: Command, *options: str) -> Result:
    return command("replay", "out/noise.json", "--trials", "40", "--seed", "1", "-q", *options)


def _edit(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    file = folder / "out" / "noise.json"
    values = json.loads(file.read_text())
    edit(values["environment"])
    file.write_text(json.dumps(values))


def test_a_replay_installs_the_packages_of_the_audit(
    audited: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer release of a dependency is out, and a replay without a lock would measure that one."""
    wheel(audited / "packages", "tinydep", "2.0", "WORD = 'bad'\n")
    done = _replayed(command)
    assert done.exit_code == 0, done.stderr
    assert UNLOCKED not in done.stdout
    monkeypatch.setenv("DPAUDIT_CACHE", str(audited / "another cache"))
    named = command("replay", "out/noise.json", "--dry-run")
    assert "exactly these: tinydep==1.0, tinylock==1.0" in named.stdout


def test_a_replay_refuses_packages_with_other_content_or_says_so(audited: Path, command: Command) -> None:
    wheel(audited / "packages", "tinydep", "1.0", "WORD = 'other'\n")
    done = _replayed(command)
    assert done.exit_code == 3
    assert "Hash mismatch for `tinydep==1.0`" in done.stderr
    assert "--unlocked lets the installer choose others" in done.stderr
    done = _replayed(command, "--unlocked")
    assert done.exit_code == 0, done.stderr
    assert f"{UNLOCKED} (--unlocked)" in done.stdout
    assert "content of package tinydep" in done.stdout


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda a: a.pop("hashes of the mechanism's packages"), "the result has no hashes of the audit's packages"),
        pytest.param(
            lambda a: a.update({"python": "3.9.1"}), "the audit ran with Python 3.9.1", marks=pytest.mark.slow
        ),
    ],
)
def test_a_replay_that_cannot_be_locked_says_why(
    here: Path, command: Command, edit: Callable[[dict[str, Any]], object], reason: str
) -> None:
    _edit(here, edit)
    done = _replayed(command)
    assert done.exit_code == 0, done.stderr
    assert f"{UNLOCKED}: {reason}" in done.stdout


def test_a_comparison_can_be_locked(here: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    compare = ("compare", "c.yaml", "--with", "tinylock==1.0", "--no-pdf", "-q")
    done = command(*compare, "--locked")
    assert done.exit_code == 2
    assert "there is no lock file" in done.stderr
    assert command(*compare).exit_code == 0
    wheel(here / "packages", "tinydep", "1.0", "WORD = 'other'\n")
    monkeypatch.setenv("UV_CACHE_DIR", str(here / "another cache"))  # the first one still holds the locked file
    done = command(*compare, "--locked")
    assert done.exit_code == 2
    assert "Hash mismatch for `tinydep==1.0`" in done.stderr
