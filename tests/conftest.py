"""What all tests share."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

from dpaudit.cli.app import app

os.environ["OMP_NUM_THREADS"] = "1"  # in the processes that tests start

Command = Callable[..., Result]


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> object:
    """Ended with the session.  Tests run side by side, and their matrices are small."""
    return threadpool_limits(limits=1)


@pytest.fixture
def known_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit without a seed always draws the same one: for code in the documentation, which leaves the seed out."""
    monkeypatch.setattr(secrets, "randbelow", lambda limit: 1)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`dpaudit` with arguments, in `tmp_path` and in this process, which saves seconds; what it raises is raised."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: CliRunner().invoke(app, arguments, catch_exceptions=False)
