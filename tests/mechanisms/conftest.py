"""Tests build environments in a separate cache, and the programs that they start end with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpaudit.mechanisms.processes import close_all


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of environments; the session shares it, because building an environment takes seconds."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DPAUDIT_CACHE", str(cache))
    yield
    close_all()
