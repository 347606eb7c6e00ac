"""Tests of the README's first command, with the real libraries."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import ks_2samp
from typer.testing import CliRunner

from dpaudit.cli.app import app

from .unseeded import CONFIDENCE_OPTION

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def quickstart() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quickstart", ROOT / "configs" / "quickstart.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.chance
def test_the_quickstart_finds_the_one_mistake_and_writes_a_report_of_each_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The README's command, with fewer trials and a higher confidence.

    At this confidence 300 to 750 runs detect the mistake, so 2,000 runs miss it with probability < 1e-6.  A right
    mechanism is refuted with probability < 1e-6, by the guarantee of the command.
    """
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "200")
    folder, options = tmp_path / "results", ("--trials", "2000", "--confirm", "never", *CONFIDENCE_OPTION)
    done = CliRunner().invoke(app, ["run", "configs/quickstart.yaml", "-o", str(folder), *options])
    assert done.exit_code == 1, done.stderr
    names = {path.stem for path in folder.iterdir()}
    assert len(names) == 4
    assert {path.name for path in folder.iterdir()} == {f"{name}.{end}" for name in names for end in ("json", "pdf")}
    assert all(path.read_bytes().startswith(b"%PDF") for path in folder.glob("*.pdf"))
    assert {path.name: json.loads(path.read_text())["verdict"] for path in folder.glob("*.json")} == {
        "opendp-gaussian-sum.json": "no violation found",
        "opendp-laplace-sum.json": "no violation found",
        "pydp-bounded-sum.json": "no violation found",
        "pydp-sum-clamped-to-the-data.json": "violation",
    }
    assert "NO" not in done.stdout.split()


@pytest.mark.chance
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_opendp_vector_noise_agrees_with_the_scalar_call(quickstart: ModuleType, noise: str) -> None:
    """One call for n elements has the same law as n calls.  Fails by chance < 1 in 10**6."""
    mechanism = quickstart.OpenDPSum(noise, 1.0, 3)
    dataset = [0.2, 0.5, 1.0]
    one_by_one = [mechanism.release(dataset) for _ in range(4000)]
    together = mechanism.sample(dataset, 4000, np.random.default_rng(0))
    assert ks_2samp(one_by_one, together).pvalue > 1e-6
    assert abs(np.corrcoef(together[:-1], together[1:])[0, 1]) < 6 / 4000**0.5  # the elements are independent


def test_claims_are_the_libraries_own(quickstart: ModuleType) -> None:
    assert quickstart.OpenDPSum("laplace", 1.0, 3).claim.epsilon(0.0) == pytest.approx(1.0)
    assert quickstart.OpenDPSum("laplace", 0.5, 3).claim.epsilon(0.0) == pytest.approx(2.0)
    assert quickstart.PyDPSum(0.7, 0.0, 1.0).claim.epsilon(0.0) == 0.7
