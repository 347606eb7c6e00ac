"""`dpaudit init`: starting configs and their files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import Result

from dpaudit.cli.start import CASES
from dpaudit.config import read_configs

Command = Callable[..., Result]


@pytest.mark.parametrize("case", CASES)
def test_the_starting_config_of_each_case_is_complete(
    case: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each mechanism runs once on each dataset.  Its claim is true, so no audit is needed."""
    monkeypatch.chdir(tmp_path)
    wrote = command("init", "new.yaml", "--for", case)
    assert wrote.exit_code == 0
    assert wrote.stderr.endswith("; run it with: dpaudit run new.yaml\n")
    (planned,) = read_configs([tmp_path / "new.yaml"])
    assert {path.name for path in tmp_path.iterdir()} >= {"new.yaml", *CASES[case][1]}
    assert "{file}" not in (tmp_path / "new.yaml").read_text()
    mechanism, claim = planned.load()
    found: Any = getattr(mechanism, "loaded", mechanism)
    try:
        assert claim.beta(0.1) > 0
        for dataset in (dataset for pair in planned.pairs[:2] for dataset in (pair.d0, pair.d1)):
            rng = np.random.default_rng(1)
            outputs = found.sample(dataset, 1, rng) if hasattr(found, "sample") else [found(dataset, rng)]
            assert len(outputs) == 1
    finally:
        getattr(mechanism, "close", lambda: None)()


def test_starting_files_replace_nothing(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_mechanism.py").write_text("mine")
    done = command("init", "--for", "python")
    assert done.exit_code == 2
    assert "my_mechanism.py already exists; choose another file name or another folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["my_mechanism.py"]
    done = command("init", "--for", "pyhton")
    assert done.exit_code == 2
    assert "did you mean python?" in done.stderr
