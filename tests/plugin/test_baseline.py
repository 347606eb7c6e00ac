"""Evidence accumulates over runs of a suite in a file.  Seeds are fixed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaudit.testing.baseline import lock

pytest_plugins = ["pytester"]
Run = Callable[..., Any]

SUITE = """
SIGMA = {sigma}

def test_it(dpaudit):
    dpaudit.assert_private(noise(SIGMA), claim=CLAIM, pairs=BIT, attacks="threshold")
"""
FILE = ("--dpaudit-baseline", "b.json")


def chains(folder: Path) -> list[dict[str, Any]]:
    (entry,) = json.loads((folder / "b.json").read_text())["tests"].values()
    found: list[dict[str, Any]] = entry["chains"]
    return found


def test_small_violations_add_up_and_stay_until_they_are_corrected(run: Run, pytester: pytest.Pytester) -> None:
    """Each session makes fewer runs than a single session would need."""
    wrong, right = SUITE.format(sigma=0.6), SUITE.format(sigma=1.0)
    options = (*FILE, "--dpaudit-trials", "60", "--dpaudit-report", "found")
    nights = [run(wrong, *options) for _ in range(2)]
    while nights[-1].code == 0 and len(nights) < 15:
        nights.append(run(None, *options))
    assert 3 <= len(nights) < 15
    assert "VIOLATION of gaussian(mu=1)" in nights[-1].out
    assert f"together with {len(nights) - 1} earlier runs of the suite, under one budget" in nights[-1].out
    assert chains(pytester.path)[0]["runs"] == len(nights)
    assert "fails any session up to this one, number 2, with probability at most 1 in 1,000" in nights[1].out

    again = run(right, *options)
    assert again.counts == {"failed": 1}
    assert "and recorded in the baseline" in again.out
    assert run(None, *options, "--dpaudit-restart").counts == {"passed": 1}
    assert run(None, *options).counts == {"passed": 1}
    assert [(chain["number"], chain["runs"]) for chain in chains(pytester.path)] == [(1, len(nights)), (2, 2)]


def test_seeds_change_from_run_to_run_and_drift_is_reported(run: Run, pytester: pytest.Pytester) -> None:
    options = (*FILE, "--dpaudit-trials", "300")
    code = SUITE.format(sigma=1.6) + "\n    print(noise(1).sample([0], 1, __import__('numpy').random.default_rng(1)))"
    run(code, *options)
    first = float(chains(pytester.path)[0]["log_invested"])
    assert "drift: " not in run(None, *options).out
    second = float(chains(pytester.path)[0]["log_invested"])
    assert first != second
    done = run(SUITE.format(sigma=1.05), *options)
    assert done.counts == {"passed": 1}
    assert "drift: test_project.py::test_it: certified mu >= 0." in done.out


def test_of_two_sessions_at_once_one_is_refused_before_any_test(run: Run, pytester: pytest.Pytester) -> None:
    other = lock(pytester.path / "b.json")
    done = run(SUITE.format(sigma=1.0), *FILE)
    other.release()
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "--dpaudit-baseline: another session is using " in done.err
    assert run(None, *FILE, "--dpaudit-trials", "100").code == 0
