"""`dpaudit compare` with packages that are built here, so that it needs no registry."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pypdf
import pytest
from typer.testing import CliRunner, Result

from dpaudit.cli.app import app

from .programs import wheel

CONFIG = """\
name: noise
claim: gaussian(mu=1)
mechanism: {python: noise.py:release, requires: [tinylaw==1.0]}
pairs: [{d0: [0], d1: [1]}]
trials: 60
attacks: median_clipped
seed: 0
"""
RELEASE = "import tinylaw\ndef release(dataset, rng): return tinylaw.noise(dataset, rng)\n"
LAW = "def noise(dataset, rng): return dataset[0] + rng.gauss(0, 1)\n"


@pytest.fixture
def compare(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs the command in a folder with a package of version 1.0; other versions cannot be installed."""
    wheel(tmp_path, "tinylaw", "1.0", LAW)
    (tmp_path / "noise.py").write_text(RELEASE)
    (tmp_path / "noise.yaml").write_text(CONFIG)
    for installer in ("PIP", "UV"):
        monkeypatch.setenv(f"{installer}_NO_INDEX", "1")
        monkeypatch.setenv(f"{installer}_FIND_LINKS", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*versions: str) -> Result:
        options = [part for version in versions for part in ("--with", f"tinylaw=={version}")]
        return CliRunner().invoke(app, ["compare", "noise.yaml", *options, "-q"], catch_exceptions=False)

    return run


def test_a_version_that_cannot_be_installed_does_not_end_the_comparison(
    compare: Callable[..., Result], tmp_path: Path
) -> None:
    """The seed is fixed, and a claim that is just true is not refuted in 60 runs with it."""
    ran = compare("1.0", "2.0")
    assert ran.exit_code == 3, ran.output
    assert "noise.yaml:3: audit noise-tinylaw-2.0: mechanism: installing tinylaw==2.0 for Python" in ran.stderr
    results = tmp_path / "dpaudit-results"
    assert json.loads((results / "noise-tinylaw-1.0.json").read_text())["verdict"] == "no violation found"
    row = next(line for line in ran.stdout.splitlines() if line.startswith(" noise ") and "could not be run" in line)
    assert "No violation found" in row
    text = "\n".join(page.extract_text() for page in pypdf.PdfReader(results / "comparison.pdf").pages)
    assert "noise – tinylaw==2.0 could not be run: installing tinylaw==2.0" in " ".join(text.split())


def test_a_comparison_without_any_version_that_loads_is_refused(compare: Callable[..., Result], tmp_path: Path) -> None:
    ran = compare("2.0")
    assert ran.exit_code == 2, ran.output
    assert ran.stderr.endswith("no mechanism could be loaded; see the messages above\n")
    assert list((tmp_path / "dpaudit-results").iterdir()) == []
