"""Private environments and their cache."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import MechanismError
from dpaudit.running import environments
from dpaudit.running.environments import environment
from dpaudit.running.sources import source_of

from .programs import isolated, wheel


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def builds(*_: object) -> None:
    raise ZeroDivisionError("built again")


def test_an_environment_has_its_packages_and_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = wheel(tmp_path, "tinynoise", "1.2", "def noise(rng): return rng.gauss(0, 1)\n")
    code = "import tinynoise\ndef release(dataset, rng): return tinynoise.noise(rng)"
    mechanism = isolated(tmp_path, code, requires=[tiny])
    assert isinstance(mechanism.sample(0, 1, rng())[0], float)
    assert mechanism.packages == {"tinynoise": "1.2"}
    assert mechanism.installed is not None
    monkeypatch.setattr(environments, "_build", builds)
    assert environment([tiny]) == environment((tiny,))


def test_a_failed_installation_shows_the_output_of_the_installer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    wanting = wheel(tmp_path, "wanting", "1.0", "", requires="no-such-thing-anywhere==3")
    before = set(environments.environments_folder().glob("*"))
    with pytest.raises(
        MechanismError, match=r"installing wanting @ .* failed; uv printed:\n(.*\n)*.*no-such-thing-anywhere"
    ):
        environment([wanting])
    left = set(environments.environments_folder().glob("*")) - before
    assert {path.suffix for path in left} == {".lock", ".used"}


def test_an_interrupted_environment_is_rebuilt_only_once(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = wheel(tmp_path, "tinyhalf", "1.0", "x = 1\n")
    program = f"""
import time
from dpaudit.running import environments
environments.run_uv = lambda *given: time.sleep(600)  # an installer that never ends
environments.environment([{tiny!r}])
"""
    process = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "DPAUDIT_CACHE": str(cache)})

    def begun() -> set[Path]:
        return {path for path in (cache / "environments").glob("*-*-*") if path.is_dir()}

    before = begun()
    while process.poll() is None and begun() <= before:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    built: list[Path] = []
    build = environments._build

    def counted(*given: Any) -> Any:
        built.append(given[0])
        return build(*given)

    monkeypatch.setattr(environments, "_build", counted)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: environment([tiny]), range(4)))
    assert found[0].packages["tinyhalf"] == "1.0"
    assert all(one == found[0] for one in found)
    assert len(built) == 1
    assert begun() == before


@pytest.mark.slow
def test_an_environment_whose_python_was_removed_is_rebuilt(tmp_path: Path) -> None:
    tiny = wheel(tmp_path, "tinygone", "1.0", "")
    python = environment([tiny]).python
    python.unlink()
    python.symlink_to("/nowhere/python3")
    assert environment([tiny]).python.exists()


def test_a_missing_python_is_reported() -> None:
    with pytest.raises(MechanismError, match=r"making an environment with Python 3\.99 failed; uv printed:\n.*3\.99"):
        environment([], "3.99")


def test_a_cache_into_which_others_can_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others could put their own Python there, which would then run with the rights of this user."""
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "made" / "cache"))
    monkeypatch.setattr(environments, "_build", builds)
    before = os.umask(0)
    try:
        with pytest.raises(ZeroDivisionError, match="built again"):
            environment([])
    finally:
        os.umask(before)
    folder = environments.environments_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o1777)
    with pytest.raises(MechanismError, match=r"other users of this machine can change .* set DPAUDIT_CACHE"):
        environment([])
    folder.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(folder, 12345, -1)
    else:  # the folder then belongs to another user than this process seems to have
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(MechanismError, match=r"other users of this machine can change .* set DPAUDIT_CACHE"):
        environment([])


def test_a_file_with_another_content_gets_another_environment_and_another_identity(tmp_path: Path) -> None:
    """Once the environment of the first content was used for ever."""
    code = "import tinyfile\ndef release(dataset, rng): return tinyfile.X"
    answers, hashes = [], []
    for value in (1, 2):
        tiny = wheel(tmp_path, "tinyfile", "1.0", f"X = {value}\n")
        with isolated(tmp_path, code, requires=[tiny]) as mechanism:
            answers.append(mechanism.sample(0, 1, rng())[0])
            hashes.append(source_of(mechanism).hashes["tinyfile"])
    assert answers == [1, 2]
    assert hashes[0] != hashes[1]
