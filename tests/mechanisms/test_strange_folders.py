"""Installers obey the user's settings, and no file of the current folder, which may be a stranger's."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from dpaudit.mechanisms.environments import environment
from dpaudit.mechanisms.neutral_folder import completed
from dpaudit.mechanisms.protocol import MechanismError

from .programs import wheel

needs_uv = pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")


@pytest.fixture
def strange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change into a stranger's folder: the folder `wheels` beside it holds a newer `tinypick` than `own` does."""
    for folder, version in (("strange", ""), ("strange/wheels", "9.0"), ("own", "1.0")):
        (tmp_path / folder).mkdir()
        if version:
            wheel(tmp_path / folder, "tinypick", version, "x = 1\n")
    monkeypatch.chdir(tmp_path / "strange")
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "cache"))
    for installer in ("PIP", "UV"):
        monkeypatch.setenv(f"{installer}_NO_INDEX", "1")
    return tmp_path / "strange"


def _without_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "uv" else which(name))


def test_pip_looks_for_no_packages_in_the_current_folder(strange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path in the user's settings would lead into whatever folder dpaudit is run in."""
    _without_uv(monkeypatch)
    monkeypatch.setenv("PIP_FIND_LINKS", f"wheels {strange.parent / 'own'}")
    assert environment(["tinypick"]).packages == {"tinypick": "1.0"}


def test_pip_obeys_the_settings_of_the_user(strange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If they were ignored, a public index could stand in for that of the user's company."""
    _without_uv(monkeypatch)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    (strange.parent / "pip.conf").write_text(f"[global]\nfind-links = {strange.parent / 'own'}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(strange.parent / "pip.conf"))
    assert environment(["tinypick"]).packages == {"tinypick": "1.0"}


@pytest.mark.parametrize("name", ["PIP_CONFIG_FILE", "UV_CONFIG_FILE"])
def test_a_relative_file_of_settings_is_found_or_refused(
    strange: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """An installer ignores a file that it does not find, and then asks the public index."""
    shown = [sys.executable, "-c", f"import os; print(os.environ[{name!r}])"]
    monkeypatch.setenv(name, "settings")
    with pytest.raises(MechanismError, match=f"the variable {name} names the file settings, which does not exist"):
        completed(shown)
    (strange / "settings").write_text("")
    assert completed(shown).stdout.strip() == str(strange / "settings")


@needs_uv
@pytest.mark.parametrize("name", ["uv.toml", "pyproject.toml"])
@pytest.mark.parametrize("temporary", ["elsewhere", "in the stranger's folder"])
def test_uv_obeys_the_settings_of_the_user_and_not_those_of_a_folder(
    strange: Path, monkeypatch: pytest.MonkeyPatch, name: str, temporary: str
) -> None:
    if temporary != "elsewhere":
        monkeypatch.setattr("tempfile.tempdir", str(strange))
    links = f'find-links = ["{strange / "wheels"}"]\n'
    project = '[project]\nname = "a"\nversion = "1"\n[tool.uv]\n'
    (strange / name).write_text(links if name == "uv.toml" else project + links)
    (strange.parent / "settings" / "uv").mkdir(parents=True)
    (strange.parent / "settings" / "uv" / "uv.toml").write_text(f'find-links = ["{strange.parent / "own"}"]\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(strange.parent / "settings"))
    monkeypatch.setenv("UV_CACHE_DIR", str(strange.parent / "cache of uv"))
    monkeypatch.setenv("UV_PROJECT", str(strange))
    monkeypatch.setenv("UV_WORKING_DIR", str(strange))
    assert environment(["tinypick"]).packages == {"tinypick": "1.0"}


def test_every_call_of_uv_is_in_a_folder_with_empty_settings(strange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where uv is not installed, this program stands for it: it notes its folder, and hands the work to pip."""
    uv, notes = strange.parent / "bin" / "uv", strange.parent / "notes"
    uv.parent.mkdir()
    uv.write_text(
        f"""#!/bin/sh
echo "$1 $(pwd) $(cat uv.toml pyproject.toml && echo empty)$UV_PROJECT" >> {notes}
case $1 in
    venv) exec {sys.executable} -m venv --without-pip "$6";;
    python) echo /nowhere/python;;
    pip) exec {sys.executable} -I -m pip --python "$4" install --find-links {strange.parent / "own"} -q "$6";;
esac
"""
    )
    uv.chmod(0o755)
    (strange / "uv.toml").write_text("offline = true\n")
    monkeypatch.setenv("PATH", f"{uv.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("UV_PROJECT", str(strange))
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    assert environment(["tinypick"]).packages["tinypick"] == "1.0"
    with pytest.raises(Exception, match=r"no Python 3\.99"):
        environment([], "3.99")
    calls = [line.split() for line in notes.read_text().splitlines()]
    assert [call[0] for call in calls] == ["venv", "pip", "python"]
    assert {call[2] for call in calls} == {"empty"}
    assert str(strange) not in {call[1] for call in calls}
