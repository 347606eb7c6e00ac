"""Small projects, and pytest runs on them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpaudit.testing import messages

collect_ignore = ["example"]  # a separate project, run by test_example

HEAD = """\
import unittest
import pytest
from dpaudit import GaussianDP, Pair, batched
from dpaudit.testing import assert_private

CLAIM, BIT = GaussianDP(1.0), Pair([0], [1])

def noise(sigma):
    return batched(lambda dataset, n, rng: rng.normal(sum(dataset), sigma, n))

"""


LEAN = ("-p", "no:hypothesispytest")  # otherwise loading scikit-learn loads Hypothesis, which takes seconds each time


@dataclass(frozen=True)
class Done:
    """A finished run of pytest."""

    code: int
    out: str
    err: str

    @property
    def counts(self) -> dict[str, int]:
        """Return the counts in pytest's last line, e.g. {"passed": 2, "failed": 1}."""
        last = [line for line in self.out.splitlines() if line.strip()][-1]
        return {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|deselected|error)", last)}


Run = Callable[..., Done]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Run:
    """Write `test_project.py` and run pytest on it in another process, in `tmp_path`."""

    def run(code: str | None, *arguments: str) -> Done:
        if code is not None:
            (tmp_path / "test_project.py").write_text(HEAD + code)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *LEAN, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=1200,  # prevents a hang; a run takes seconds
            check=False,
            env={**os.environ, "COLUMNS": "200", "OMP_NUM_THREADS": "1", "PY_COLORS": "0"},
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Load all modules of an audit and a report, because pytester unloads modules that are first loaded within it."""
    from dpaudit import GaussianDP, Pair, audit

    result = audit(lambda dataset, rng: rng.normal(), GaussianDP(1.0), Pair([0], [1]), trials=100, seed=0)
    messages.inconclusive(result, tmp_path_factory.mktemp("warm"))


@pytest.fixture
def run(pytester: pytest.Pytester, warm: None, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Write `test_project.py` and run pytest on it in this process; without code, the existing file is run.

    An interrupt ends only the session on the project.
    """
    monkeypatch.setenv("COLUMNS", "200")

    def run(code: str | None, *arguments: str) -> Done:
        if code is not None:
            pytester.makepyfile(test_project=HEAD + code)
        cache = () if "--lf" in arguments else ("-p", "no:cacheprovider")
        done = pytester.runpytest_inprocess(*LEAN, *cache, *arguments, no_reraise_ctrlc=True)
        return Done(int(done.ret), done.stdout.str(), done.stderr.str())

    return run


@pytest.fixture
def here(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Like `run`, in `tmp_path`: a session after killed sessions of `elsewhere`."""
    monkeypatch.chdir(tmp_path)

    def here(code: str | None, *arguments: str) -> Done:
        if code is not None:
            (tmp_path / "test_project.py").write_text(HEAD + code)
        return run(None, *arguments)

    return here
