"""Fixtures that make fresh runs faster than eight new processes do."""

from __future__ import annotations

import pytest

from dpaudit.engine import fresh_runs
from dpaudit.sampling import fresh_process
from dpaudit.values import Foreign


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide the fresh runs among two new processes, which are faster and show less than eight."""
    monkeypatch.setattr(fresh_runs, "PROCESSES", 2)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the fresh runs in this process, each share with another copy of the mechanism."""

    def made(runs0: Foreign, runs1: Foreign, since: float) -> Foreign:
        return fresh_process._made((runs0, runs1), since, lambda reads: None)

    monkeypatch.setattr(fresh_process, "_in_a_new_process", made)
