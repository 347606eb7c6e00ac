"""Fixtures and hooks that all tests share."""

import compileall
import gc
import os
import secrets
import sys
from collections.abc import Callable, Generator
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import typer.testing
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner, Result

from dpaudit.cli.app import app
from dpaudit.engine import fresh_runs
from dpaudit.running import fresh_process

os.environ["OMP_NUM_THREADS"] = "1"  # in the processes that tests start

Command = Callable[..., Result]

hypothesis.settings.register_profile("ours", deadline=None)  # no test fails because the machine is busy
hypothesis.settings.load_profile("ours")

_NO_BYTECODE = sys.dont_write_bytecode  # PYTHONDONTWRITEBYTECODE, as in many containers


def pytest_configure() -> None:
    """Compile the packages once, so that the processes that tests start need not compile them again."""
    if not _NO_BYTECODE:
        return
    for package in ("dpaudit", "dpaudit_attacks", "dpaudit_reports"):
        spec = find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            compileall.compile_dir(folder, quiet=2)
    sys.dont_write_bytecode = False  # during collection: pytest rewrites the assertions of test modules once


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without garbage collection, which saves a fifth of the time of collection.

    Tests then run with rarer garbage collections, which take up to a twentieth of their time by default.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(10_000, 10, 10)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish() -> None:
    """Write no bytecode of files that tests write: Python would not notice a new file of the same second and size."""
    sys.dont_write_bytecode = _NO_BYTECODE


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> object:
    """Limit native libraries to one thread during the session, because tests run in parallel on small matrices."""
    return threadpool_limits(limits=1)


@pytest.fixture(autouse=True, scope="session")
def _commands_are_built_once() -> Generator[None, object, None]:
    """Keep the commands that typer otherwise builds anew in each call, which takes most of the time of a short one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(vars(typer.testing)["_get_command"]))
        yield


@pytest.fixture(autouse=True)
def _numbered_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace fresh seeds by 1, 2, 3 and so on in each test, so that no test of a command fails by chance."""
    numbers = count(1)
    monkeypatch.setattr(secrets, "randbelow", lambda limit: next(numbers))


@pytest.fixture
def known_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give an audit without a seed always the same seed, for code in the documentation, which omits the seed."""
    monkeypatch.setattr(secrets, "randbelow", lambda limit: 1)


@pytest.fixture
def eight() -> None:
    """Make the fresh runs in eight new processes, as outside tests."""


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide the fresh runs among two new processes, which are faster and show less than eight."""
    monkeypatch.setattr(fresh_runs, "PROCESSES", 2)


@pytest.fixture(autouse=True)
def _fresh_runs_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the fresh runs of other tests in this process, each share with another copy of the mechanism."""

    def made(runs0: Any, runs1: Any, since: float) -> Any:
        return fresh_process._made((runs0, runs1), since, lambda reads: None)

    if not {"two", "eight"} & set(request.fixturenames):
        monkeypatch.setattr(fresh_process, "_in_a_new_process", made)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return a function that runs `dpaudit` in `tmp_path` and in this process, and raises its exceptions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: CliRunner().invoke(app, arguments, catch_exceptions=False)
