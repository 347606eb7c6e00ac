"""Small projects, and pytest runs on them."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from _pytest.pytester import SysModulesSnapshot

from dpaudit import AuditResult

collect_ignore = ["example"]  # a separate project, run by test_example


def _restore(snapshot: Any) -> None:
    """Remove the modules of a session's own folder only: those of packages would exist twice if loaded again."""
    saved = snapshot._SysModulesSnapshot__saved
    for name, module in list(sys.modules.items()):
        if name not in saved and "pytest-of-" in str(getattr(module, "__file__", "")):
            del sys.modules[name]
    sys.modules.update(saved)


SysModulesSnapshot.restore = _restore  # type: ignore[assignment,method-assign]

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
def elsewhere(pytester: pytest.Pytester) -> Run:
    """Write `test_project.py` and run pytest on it in another process, which takes seconds to start."""

    def run(code: str | None, *arguments: str) -> Done:
        if code is not None:
            pytester.makepyfile(test_project=HEAD + code)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *LEAN, *arguments],
            cwd=pytester.path,
            capture_output=True,
            text=True,
            timeout=1200,  # prevents a hang; a run takes seconds
            check=False,
            env={**os.environ, "COLUMNS": "200", "OMP_NUM_THREADS": "1", "PY_COLORS": "0"},
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def warm() -> None:
    """Load all modules of an audit, because pytester unloads modules that are first loaded within it."""
    from dpaudit import GaussianDP, Pair, audit, testing

    assert testing
    audit(lambda dataset, rng: rng.normal(), GaussianDP(1.0), Pair([0], [1]), trials=100, seed=0)


@pytest.fixture
def pdf() -> None:
    """Write the reports of failures as PDF; without this fixture, the files have no content, which is faster."""


@pytest.fixture(autouse=True)
def _no_pdf(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "pdf" not in request.fixturenames:
        monkeypatch.setattr(AuditResult, "as_pdf", lambda result: b"")


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
def killed(run: Run) -> Callable[..., int]:
    """Like `run`, in a copy of this process; return the signal that killed it."""

    def killed(code: str | None, *arguments: str) -> int:
        if (copy := os.fork()) == 0:
            try:
                run(code, *arguments)
            finally:
                os._exit(0)
        return os.WTERMSIG(os.waitpid(copy, 0)[1])

    return killed
