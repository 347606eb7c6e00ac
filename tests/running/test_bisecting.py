"""`dpaudit bisect` and `dpaudit compare` with packages that are built here, and the releases that pip lists."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pypdf
import pytest
from packaging.version import Version
from typer.testing import CliRunner, Result

from dpaudit.cli.app import app
from dpaudit.running import MechanismError
from dpaudit.running.requirements import released

from .programs import wheel

CONFIG = """\
name: noise
claim: gaussian(mu=1)
mechanism: {python: noise.py:release, requires: [tinystep>=1]}
pairs: [{d0: [0], d1: [1]}]
attacks: median_clipped
trials: 60
seed: 0
"""
RELEASE = "import tinystep\ndef release(dataset, rng): return tinystep.noise(dataset, rng)\n"
GOOD = "def noise(dataset, rng): return dataset[0] + rng.gauss(0, 4)\n"
BAD = "def noise(dataset, rng): return dataset[0] + rng.gauss(0, 0.05)\n"


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let installers read only the settings of the test."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.chdir(tmp_path)
    return monkeypatch


def test_a_bug_is_found_before_a_release_that_cannot_be_installed(tmp_path: Path, pip: pytest.MonkeyPatch) -> None:
    """The seed is fixed: noise four times as large as needed is not refuted, noise of 0.05 gives disjoint outputs."""
    wheel(tmp_path, "tinystep", "1.2", GOOD)
    wheel(tmp_path, "tinystep", "1.11", GOOD, requires="nowhere")
    wheel(tmp_path, "tinystep", "2.0", BAD)
    wheel(tmp_path, "tinystep", "2.1rc1", GOOD)
    (tmp_path / "noise.py").write_text(RELEASE)
    (tmp_path / "noise.yaml").write_text(CONFIG)
    for installer in ("PIP", "UV"):
        pip.setenv(f"{installer}_NO_INDEX", "1")
        pip.setenv(f"{installer}_FIND_LINKS", str(tmp_path))
    line = ["bisect", "noise.yaml", "tinystep", "-q", "--no-pdf", "--trials", "60"]
    done = CliRunner().invoke(app, line, catch_exceptions=False)
    assert done.exit_code == 1, done.output
    said = " ".join(done.stdout.split())
    assert "First bad release: 2.0, or a release between it and 1.2, which is good: 1.11" in said
    found = json.loads((tmp_path / "dpaudit-results" / "bisection.json").read_text())
    releases = {one["version"]: one for one in found["releases"]}
    assert {name: one["state"] for name, one in releases.items()} == {"1.2": "good", "1.11": "skipped", "2.0": "bad"}
    assert "nowhere" in releases["1.11"]["reason"]
    assert found["left_out"] == {"2.1rc1": "pre-release"}


def test_yanked_releases_and_pre_releases_are_told_apart(tmp_path: Path, pip: pytest.MonkeyPatch) -> None:
    page = tmp_path / "simple" / "tinystep"
    page.mkdir(parents=True)
    links = []
    for version in ("1.9", "1.10", "2.0.dev3", "0.1"):
        wheel(page, "tinystep", version, GOOD)
        yanked = ' data-yanked="leaks"' if version == "1.9" else ""
        python = ' data-requires-python="&lt;3"' if version == "0.1" else ""
        file = f"tinystep-{version}-py3-none-any.whl"
        links.append(f'<a href="{file}"{yanked}{python}>{file}</a>')
    links.append('<a href="tinystep-0.2-cp27-none-any.whl">tinystep-0.2-cp27-none-any.whl</a>')
    (page / "index.html").write_text("<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>")
    pip.setenv("PIP_INDEX_URL", (tmp_path / "simple").as_uri())
    found = released("tinystep")
    assert found.final == (Version("1.10"),)
    assert found.left_out == {Version("1.9"): "yanked", Version("2.0.dev3"): "pre-release"}
    assert found.unread == ()
    assert found.unsupported == {Version("0.1"), Version("0.2")}
    with pytest.raises(MechanismError, match=r"pip finds no release of tinystop for Python 3\.\d+\.  Check the name"):
        released("tinystop")


def test_an_index_that_cannot_be_read_is_named(tmp_path: Path, pip: pytest.MonkeyPatch) -> None:
    """Nothing listens on port 9 (discard) of this machine, so the connection is refused at once."""
    pip.setenv("PIP_INDEX_URL", "http://user:secret@127.0.0.1:9/simple")
    pip.setenv("PIP_RETRIES", "0")
    with pytest.raises(MechanismError, match=r"could not be read: http://.*127\.0\.0\.1:9/.*connection") as raised:
        released("tinystep")
    assert "secret" not in str(raised.value)
    assert "PIP_INDEX_URL" in str(raised.value)


@pytest.fixture
def compare(tmp_path: Path, pip: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs the command in a folder with a package of version 1.0; other versions cannot be installed."""
    wheel(tmp_path, "tinystep", "1.0", GOOD)
    (tmp_path / "noise.py").write_text(RELEASE)
    (tmp_path / "noise.yaml").write_text(CONFIG)
    for installer in ("PIP", "UV"):
        pip.setenv(f"{installer}_NO_INDEX", "1")
        pip.setenv(f"{installer}_FIND_LINKS", str(tmp_path))

    def run(*versions: str) -> Result:
        options = [part for version in versions for part in ("--with", f"tinystep=={version}")]
        return CliRunner().invoke(app, ["compare", "noise.yaml", *options, "-q"], catch_exceptions=False)

    return run


def test_a_version_that_cannot_be_installed_does_not_end_the_comparison(
    compare: Callable[..., Result], tmp_path: Path
) -> None:
    """The seed is fixed, and a claim that is just true is not refuted in 60 runs with it."""
    ran = compare("1.0", "2.0")
    assert ran.exit_code == 3, ran.output
    assert "noise.yaml:3: audit noise-tinystep-2.0: mechanism: installing tinystep==2.0 for Python" in ran.stderr
    results = tmp_path / "dpaudit-results"
    assert json.loads((results / "noise-tinystep-1.0.json").read_text())["verdict"] == "no violation found"
    for line in ("○ no violation  noise-tinystep-1.0", "– no result     noise-tinystep-2.0"):
        assert line in ran.stdout
    text = "\n".join(page.extract_text() for page in pypdf.PdfReader(results / "comparison.pdf").pages)
    assert "noise – tinystep==2.0 could not be run: installing tinystep==2.0" in " ".join(text.split())


def test_a_comparison_without_any_version_that_loads_is_refused(compare: Callable[..., Result], tmp_path: Path) -> None:
    ran = compare("2.0")
    assert ran.exit_code == 2, ran.output
    assert ran.stderr.endswith("no mechanism could be loaded; see the messages above\n")
    assert list((tmp_path / "dpaudit-results").iterdir()) == []
