"""Repeat the tests that use the clock or unseeded randomness on a busy machine.

    python benchmarks/flaky.py [--times 200] [--busy 2] [--workers 2] [--only TEXT] [--minutes M] [--log FILE]

`tests/test_rules.py` checks that every test that uses the clock or unseeded randomness has the mark `chance`.  Each
worker repeats tests in one process while `--busy` other processes compute.  The command appends each outcome to the log
file immediately.  If the log file exists, only the missing repetitions are run.  The command prints one row for each
test and the message of each failure.  The exit code is 1 if a test failed, and 0 otherwise.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
_LOG, _TIMES = "DPAUDIT_FLAKY_LOG", "DPAUDIT_FLAKY_TIMES"
_ROUND = 20  # number of repetitions of each test between two checks of the time limit


# --- Hooks for the processes of pytest, which load this file as a plugin


@pytest.fixture
def _repetition(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat every test that has the mark `chance`.

    For parametrised tests, `-m chance` selects the parameters that have this mark.
    """
    marks = metafunc.definition.iter_markers()
    if _TIMES in os.environ and any(mark.name == "chance" or "chance" in repr(mark.args) for mark in marks):
        metafunc.fixturenames.append("_repetition")
        times = range(int(os.environ[_TIMES]))
        metafunc.parametrize("_repetition", times, indirect=True, ids=[f"times{time}" for time in times])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deselect the repetitions that the log file already contains."""
    if _LOG not in os.environ:
        return
    done = {test: len(rows) for test, rows in _read(Path(os.environ[_LOG])).items()}
    items[:] = [item for item in items if _number(item.nodeid) >= done.get(_test(item.nodeid), 0)]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write one line to the log file for each repetition and for each failure of a fixture."""
    if _LOG in os.environ and "PYTEST_XDIST_WORKER" not in os.environ and (report.when == "call" or report.failed):
        row = {"test": _test(report.nodeid), "outcome": report.outcome, "seconds": round(report.duration, 3)}
        with Path(os.environ[_LOG]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row | ({"said": report.longreprtext[-2000:]} if report.failed else {})) + "\n")


def _test(node: str) -> str:
    """Return the test's id without the number of the repetition.

    The number of the repetition is the first or the last parameter in the id.
    """
    head, _, values = node.partition("[")
    kept = [value for value in values.rstrip("]").split("-") if not value.startswith("times")]
    return f"{head}[{'-'.join(kept)}]" if kept and values else head


def _number(node: str) -> int:
    return next((int(v[5:]) for v in node.partition("[")[2].rstrip("]").split("-") if v.startswith("times")), 0)


# --- The command


def _read(log: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    if log.exists():
        for line in log.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found[row["test"]].append(row)
    return found


@contextmanager
def _busy(processes: int) -> Iterator[None]:
    others = [multiprocessing.Process(target=_compute, args=(os.getpid(),), daemon=True) for _ in range(processes)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        for other in others:
            other.kill()


def _compute(parent: int) -> None:
    """Keep one processor busy until the parent process ends or is killed."""
    while os.getppid() == parent:
        sum(range(100_000))


def _run(times: int, workers: int, only: str, log: Path) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "flaky", "-p", "no:cacheprovider", "-o", "addopts="]
    command += ["--import-mode=importlib", "--strict-markers", "-m", "chance and not slow", "--tb=short", "--no-header"]
    command += ["-n", str(workers), "--dist", "worksteal"] if workers > 1 else []
    command += ["-k", only] if only else []
    files = sorted((ROOT / "tests").rglob("test_*.py"))  # pytest need not load the other test files
    command += [str(file) for file in files if "mark.chance" in file.read_text(encoding="utf-8")]
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, _LOG: str(log), _TIMES: str(times), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False).returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=200, help="repetitions of each test (%(default)s)")
    parser.add_argument("--busy", type=int, default=os.cpu_count(), help="processes that compute beside (%(default)s)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes that test (%(default)s)")
    parser.add_argument("--only", default="", help="tests that match this, as pytest's -k")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no further round after so long")
    parser.add_argument("--log", type=Path, default=Path("flaky.jsonl"), help="outcomes, also of earlier calls")
    arguments = parser.parse_args()
    log, began = arguments.log.resolve(), time.monotonic()
    with _busy(arguments.busy):
        for times in [*range(_ROUND, arguments.times, _ROUND), arguments.times]:
            code = _run(times, arguments.workers, arguments.only, log)
            if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
                sys.exit(f"pytest ended with exit code {code}")
            if time.monotonic() - began > 60 * arguments.minutes:
                break
    failures = 0
    for test, rows in sorted(_read(log).items()):
        failed = [row for row in rows if row["outcome"] == "failed"]
        skipped = sum(row["outcome"] == "skipped" for row in rows)
        failures += len(failed)
        mean = sum(row["seconds"] for row in rows) / len(rows)
        print(f"{len(failed)} of {len(rows)} failed, {skipped} skipped, {mean:6.2f} s each  {test}")
        for said in sorted({row["said"].strip().splitlines()[-1] for row in failed}):
            print(f"    {said}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
