"""The audit whose packages the tests of lock files install."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Command = Callable[..., Result]
CONFIG = """\
name: noise
claim: gaussian(mu=1)
mechanism: {python: m.py:release, requires: [tinylock==1.0]}
pairs: [{d0: [0], d1: [1]}]
attacks: median_clipped
trials: 40
seed: 0
"""
RELEASE = """\
import tinydep, tinylock
if tinydep.WORD == "bad":
    raise ValueError("this is not what was audited")
def release(dataset, rng): return dataset[0] + rng.gauss(0, 1.5)
"""


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder the current one, and install packages from there instead of a registry."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder / "packages"))
    monkeypatch.setenv("DPAUDIT_CACHE", str(folder / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(folder / "cache" / "uv"))
    monkeypatch.chdir(folder)
