"""The quickstart on the real libraries: what the README's first command shows."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import Result
from scipy.stats import ks_2samp

from .unseeded import CONFIDENCE_OPTION

ROOT = Path(__file__).parent.parent
Command = Callable[..., Result]


@pytest.fixture(scope="module")
def quickstart() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quickstart", ROOT / "configs" / "quickstart.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_quickstart_exits_with_1_and_writes_a_report_of_each_audit(tmp_path: Path) -> None:
    """The command of the README, with fewer trials.  Nothing here depends on the verdicts about the three right ones.

    The mistake is seen in 300 to 750 runs even at the confidence of the next test: 1,500 miss it with odds < 1e-6.
    """
    done = subprocess.run(
        [sys.executable, "-m", "dpaudit", "run", "configs/quickstart.yaml", "-o", str(tmp_path), "--trials", "1500"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1800,  # against hanging; it takes six seconds on an idle machine
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert done.returncode == 1, done.stderr
    names = {path.stem for path in tmp_path.iterdir()}
    assert len(names) == 4
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.{end}" for name in names for end in ("json", "pdf")}
    assert all(path.read_bytes().startswith(b"%PDF") for path in tmp_path.glob("*.pdf"))


@pytest.mark.chance
def test_the_quickstart_finds_the_one_mistake_and_nothing_else(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fewer trials than the config allows; the mistake is seen in some hundreds.

    Fails by chance < 1 in 10**6, by the promise itself.
    """
    monkeypatch.chdir(ROOT)
    options = ("--trials", "2000", "--no-pdf", *CONFIDENCE_OPTION)
    done = command("run", "configs/quickstart.yaml", "-o", str(tmp_path), *options)
    assert done.exit_code == 1, done.stderr
    assert {path.name: json.loads(path.read_text())["verdict"] for path in tmp_path.iterdir()} == {
        "opendp-gaussian-sum.json": "no violation found",
        "opendp-laplace-sum.json": "no violation found",
        "pydp-bounded-sum.json": "no violation found",
        "pydp-sum-clamped-to-the-data.json": "violation",
    }
    assert "NO" not in done.stdout.split()


@pytest.mark.chance
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_opendp_vector_noise_agrees_with_the_scalar_call(quickstart: ModuleType, noise: str) -> None:
    """One call for n elements against n calls: the same law.  Fails by chance < 1 in 10**6."""
    mechanism = quickstart.OpenDPSum(noise, 1.0, 3)
    dataset = [0.2, 0.5, 1.0]
    one_by_one = [mechanism.release(dataset) for _ in range(4000)]
    together = mechanism.sample(dataset, 4000, np.random.default_rng(0))
    assert ks_2samp(one_by_one, together).pvalue > 1e-6
    assert abs(np.corrcoef(together[:-1], together[1:])[0, 1]) < 6 / 4000**0.5  # elements are drawn independently


def test_claims_are_the_libraries_own(quickstart: ModuleType) -> None:
    assert quickstart.OpenDPSum("laplace", 1.0, 3).claim.epsilon(0.0) == pytest.approx(1.0)
    assert quickstart.OpenDPSum("laplace", 0.5, 3).claim.epsilon(0.0) == pytest.approx(2.0)
    assert quickstart.PyDPSum(0.7, 0.0, 1.0).claim.epsilon(0.0) == 0.7
