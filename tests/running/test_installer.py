"""uv obeys the user's settings, also those of pip, and no file of the current folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpaudit.running import environments
from dpaudit.running.environments import environment
from dpaudit.running.installer import index_settings, pip_variables, variables

from .programs import wheel


@pytest.fixture
def clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Use an empty home folder without settings."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "xdg"))
    return monkeypatch


def folder() -> Path:
    return environments._folder("3.11", ["tinylaw==1.0"], None)


def test_settings_of_pip_count_unless_uv_has_its_own(tmp_path: Path, clear: pytest.MonkeyPatch) -> None:
    (tmp_path / ".config" / "pip").mkdir(parents=True)
    (tmp_path / ".config" / "pip" / "pip.conf").write_text(
        "[global]\nindex-url = https://conf/simple\nextra_index_url =\n  https://a/simple\n  https://b/simple\n"
        "[install]\nno-index = true\ncert = /c.pem\n"
    )
    clear.delenv("SSL_CERT_FILE", raising=False)
    clear.setenv("PIP_FIND_LINKS", "/one /two")
    found = variables()
    assert found["UV_INDEX_URL"] == "https://conf/simple"
    assert found["UV_EXTRA_INDEX_URL"] == "https://a/simple https://b/simple"
    assert found["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert (found["UV_FIND_LINKS"], found["UV_NO_INDEX"], found["SSL_CERT_FILE"]) == ("/one,/two", "true", "/c.pem")
    clear.setenv("PIP_INDEX_URL", "https://variable/simple")
    assert variables()["UV_INDEX_URL"] == pip_variables()["PIP_INDEX_URL"] == "https://variable/simple"
    clear.setenv("UV_DEFAULT_INDEX", "https://own/simple")
    clear.setenv("UV_INDEX", "mine=https://c/simple")
    assert pip_variables()["PIP_INDEX_URL"] == "https://own/simple"
    assert pip_variables()["PIP_EXTRA_INDEX_URL"] == "https://c/simple https://a/simple https://b/simple"
    (tmp_path / "uv.toml").write_text('index-url = "https://uv/simple"\n')
    clear.setenv("UV_CONFIG_FILE", str(tmp_path / "uv.toml"))
    assert not {"UV_INDEX_URL", "UV_EXTRA_INDEX_URL"} & variables().keys()
    assert variables()["UV_FIND_LINKS"] == "/one,/two"
    clear.setenv("PIP_CONFIG_FILE", os.devnull)
    assert "UV_NO_INDEX" not in variables()


@pytest.mark.parametrize("name", ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX_URL", "UV_INDEX"])
def test_another_index_gets_another_environment(name: str, clear: pytest.MonkeyPatch) -> None:
    """A wheel of the same version from another index may hold other code."""
    found = {folder()}
    for url in ("https://one.example/simple", "https://two.example/simple"):
        clear.setenv(name, url)
        found.add(folder())
    assert len(found) == 3


@pytest.mark.parametrize("file", [".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/uv.toml", "xdg/pip/pip.conf"])
def test_another_settings_file_gets_another_environment(file: str, tmp_path: Path, clear: pytest.MonkeyPatch) -> None:
    before = folder()
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("[global]\nindex-url = https://one.example/simple\n")
    assert folder() != before


def test_credentials_are_neither_kept_nor_part_of_the_key(clear: pytest.MonkeyPatch) -> None:
    found = set()
    for password in ("secret", "s3cret"):
        clear.setenv("PIP_INDEX_URL", f"https://user:{password}@one.example/simple")
        assert index_settings()["UV_INDEX_URL"] == "https://one.example/simple"
        found.add(folder())
    assert len(found) == 1, "a new password does not rebuild all environments"


@pytest.mark.parametrize("name", ["uv.toml", pytest.param("pyproject.toml", marks=pytest.mark.slow)])
def test_settings_and_packages_of_the_current_folder_have_no_effect(
    tmp_path: Path, clear: pytest.MonkeyPatch, name: str
) -> None:
    for place, version in (("strange", "9.0"), ("own", "1.0")):
        (tmp_path / place).mkdir()
        wheel(tmp_path / place, "tinypick", version, "")
    links = f'find-links = ["{tmp_path / "strange"}"]\n'
    project = '[project]\nname = "a"\nversion = "1"\n[tool.uv]\n'
    (tmp_path / "strange" / name).write_text(links if name == "uv.toml" else project + links)
    clear.chdir(tmp_path / "strange")
    clear.setenv("UV_NO_INDEX", "1")
    (tmp_path / ".config" / "uv").mkdir(parents=True)
    (tmp_path / ".config" / "uv" / "uv.toml").write_text(f'find-links = ["{tmp_path / "own"}"]\n')
    assert environment(["tinypick"]).packages == {"tinypick": "1.0"}
