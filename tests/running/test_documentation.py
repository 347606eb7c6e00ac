"""The adapters in docs/mechanisms.md run in the environments that they require, and state a claim."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from dpaudit import parse_claim
from dpaudit.running import IsolatedMechanism

from .programs import needs_registry, script

TEXT = (Path(__file__).parents[2] / "docs" / "mechanisms.md").read_text(encoding="utf-8")
ADAPTERS = re.findall(r"```python\n# requires: ([^\n]*)\n(.*?)```", TEXT, re.DOTALL)
DATASETS = {"pure-ldp": 1, "smartnoise-sql": list(range(100))}


@needs_registry
@pytest.mark.slow
@pytest.mark.parametrize(("requires", "code"), ADAPTERS, ids=[requires.split(",")[0] for requires, _ in ADAPTERS])
def test_an_adapter_runs(requires: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test installs from a package registry into the user's cache."""
    monkeypatch.delenv("DPAUDIT_CACHE")
    (tmp_path / "adapter.py").write_text(code)
    mechanism = IsolatedMechanism(address="adapter.py:mechanism", requires=requires.split(", "), folder=tmp_path)
    dataset = DATASETS.get(re.split("[=<]", requires)[0], [0.0, 1.0, 1.0])
    outputs = np.array(mechanism.sample(dataset, 20, np.random.default_rng(0)), dtype=float)
    assert outputs.shape[0] == 20
    assert len(np.unique(outputs)) > 1
    assert mechanism.claim is not None
    parse_claim(mechanism.claim)


def test_the_first_example_runs() -> None:
    code = TEXT.split("```python\n", 1)[1].split("```", 1)[0]
    space: dict[str, object] = {}
    exec(code, space)
    release, many = space["release"], space["Release"]
    assert callable(release)
    assert callable(many)
    assert isinstance(release([1], np.random.default_rng(0)), float)
    assert len(many().sample([1], 5, np.random.default_rng(0))) == 5


def test_the_answer_with_a_running_time_is_understood(tmp_path: Path) -> None:
    (answer,) = re.findall(r'^    (\{"outputs".*"seconds".*)$', TEXT, re.MULTILINE)
    found = script(tmp_path, f"print({answer!r})").run([[0, 1]], 0, np.random.default_rng(0))
    assert (found.output, found.seconds, found.clock) == (0.25, 0.0013, "reported by the program")
