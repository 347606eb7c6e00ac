"""Environments that tests build go to a cache of their own; programs that they start end with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpaudit.mechanisms.processes import close_all


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for the session, since making an environment takes seconds."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DPAUDIT_CACHE", str(cache))
    yield
    close_all()
