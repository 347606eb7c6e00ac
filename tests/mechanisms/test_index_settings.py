"""Environments depend on the package indexes that the user has set, because another index may have other code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpaudit.mechanisms import environments
from dpaudit.mechanisms.environments import cached_environment, environment
from dpaudit.mechanisms.index_settings import index_settings


@pytest.fixture
def pointers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Use an empty home folder without settings, and environments that are never built."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "xdg"))
    return monkeypatch


def pointer() -> Path:
    return environments._pointer("3.11", ["tinylaw==1.0"], {}, None)


@pytest.mark.parametrize("name", ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX_URL", "UV_INDEX"])
def test_another_index_gets_another_environment(name: str, pointers: pytest.MonkeyPatch) -> None:
    """A wheel of the same version from another index may hold other code."""
    found = {pointer()}
    for url in ("https://one.example/simple", "https://two.example/simple"):
        pointers.setenv(name, url)
        found.add(pointer())
    assert len(found) == 3


@pytest.mark.parametrize("file", [".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/uv.toml", "xdg/pip/pip.conf"])
def test_another_settings_file_gets_another_environment(
    file: str, tmp_path: Path, pointers: pytest.MonkeyPatch
) -> None:
    before = pointer()
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("[global]\nindex-url = https://one.example/simple\n")
    assert pointer() != before


def test_credentials_are_neither_kept_nor_part_of_the_key(tmp_path: Path, pointers: pytest.MonkeyPatch) -> None:
    found = set()
    for password in ("secret", "s3cret"):
        pointers.setenv("PIP_INDEX_URL", f"https://user:{password}@one.example/simple https://{password}@two.example")
        assert index_settings()["PIP_INDEX_URL"] == "https://one.example/simple https://two.example"
        found.add(pointer())
    assert len(found) == 1, "a new password does not rebuild all environments"


def test_an_environment_from_another_index_is_not_used(tmp_path: Path, pointers: pytest.MonkeyPatch) -> None:
    """Building is replaced, so the test only asks which environment would be used."""
    pointers.setenv("DPAUDIT_CACHE", str(tmp_path / "cache"))
    built = environments.Environment(tmp_path / "python", {"tinylaw": "1.0"})
    complete: set[Path] = set()

    def build(file: Path, *_: object) -> environments.Environment:
        complete.add(file)
        return built

    pointers.setattr(environments, "_build", build)
    pointers.setattr(environments, "complete_environment", lambda file, *_: built if file in complete else None)
    assert environment(["tinylaw==1.0"]) is cached_environment(["tinylaw==1.0"]) is built
    pointers.setenv("PIP_FIND_LINKS", "/wheels")
    assert cached_environment(["tinylaw==1.0"]) is None
