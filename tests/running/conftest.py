"""Tests build environments in a separate cache, and the programs that they start end with them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpaudit.cli.app import app
from dpaudit.running.processes import close_all

from .programs import CONFIG, RELEASE, enter, wheel


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of environments; the session shares it, because building an environment takes seconds."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DPAUDIT_CACHE", str(cache))
    monkeypatch.setenv("UV_CACHE_DIR", str(cache / "uv"))
    yield
    close_all()


@pytest.fixture(scope="session")
def shared_audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an audit that has run, for tests that only read it: `cache` holds its environment."""
    folder = tmp_path_factory.mktemp("audit")
    (folder / "packages").mkdir()
    wheel(folder / "packages", "tinylock", "1.0", "", requires="tinydep")
    wheel(folder / "packages", "tinydep", "1.0", "WORD = 'good'\n")
    (folder / "m.py").write_text(RELEASE)
    (folder / "c.yaml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as monkeypatch:
        enter(folder, monkeypatch)
        run = CliRunner().invoke(app, ["run", "c.yaml", "-o", "out", "--no-pdf"], catch_exceptions=False)
    assert run.exit_code == 0, run.stderr
    close_all()
    return folder


@pytest.fixture
def audited(shared_audit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of that folder for one test, on another machine: without the environment."""
    shutil.copytree(shared_audit, tmp_path, ignore=shutil.ignore_patterns("cache"), dirs_exist_ok=True)
    enter(tmp_path, monkeypatch)
    return tmp_path
