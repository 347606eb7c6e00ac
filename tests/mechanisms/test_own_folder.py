"""Caches that are links."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpaudit import MechanismError
from dpaudit.mechanisms import environments
from dpaudit.mechanisms.environments import cached_environment, environment


def test_a_cache_that_is_the_link_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """He could turn it to a folder of his own once it was checked, and his Python would run as this user."""
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "real" / "environments").mkdir(mode=0o700, parents=True)
    (tmp_path / "cache").symlink_to(tmp_path / "real")
    if os.geteuid() == 0:
        os.chown(tmp_path / "cache", 12345, -1, follow_symlinks=False)
    else:  # the link then belongs to another user than this process seems to have
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    for find in (environment, cached_environment):
        with pytest.raises(MechanismError, match=r"is a link of another user \(uid \d+\).* set DPAUDIT_CACHE"):
            find([])


def test_a_cache_stays_the_same_folder_when_its_link_is_turned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "cache"))
    for folder in ("real", "elsewhere"):
        (tmp_path / folder).mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "real")
    assert environments.cache_folder() == tmp_path / "real"
    (tmp_path / "cache").unlink()
    (tmp_path / "cache").symlink_to(tmp_path / "elsewhere")
    assert environments.environments_folder() == tmp_path / "real" / "environments"
