"""Reads which package indexes and folders the user has set for pip and uv.

The same requirement may name other code in another index.  So the settings are part of the key of an environment.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

_VARIABLES = ("INDEX", "INDEX_URL", "DEFAULT_INDEX", "EXTRA_INDEX_URL", "FIND_LINKS", "NO_INDEX", "INDEX_STRATEGY")
_CREDENTIALS = re.compile(r"(?<=//)[^/\s]*@")  # a new password does not change the index


def index_settings() -> dict[str, str]:
    """Return the settings that choose package indexes, without the credentials in URLs."""
    names = [f"{installer}_{name}" for installer in ("PIP", "UV") for name in _VARIABLES]
    found = {name: value for name in names if (value := os.environ.get(name))}
    for file in _files():
        with contextlib.suppress(OSError):  # installers also ignore a file that they cannot read
            if file.is_file() and (content := file.read_text(encoding="utf-8", errors="replace").strip()):
                found[str(file)] = content
    return {name: _CREDENTIALS.sub("", value) for name, value in found.items()}


def uv_is_used() -> bool:
    """Whether environments are built with uv, which does not read the settings of pip."""
    return shutil.which("uv") is not None


def _files() -> Iterator[Path]:
    """Yield the settings files of pip and uv, whether or not they exist."""
    for name in ("PIP_CONFIG_FILE", "UV_CONFIG_FILE"):
        if os.environ.get(name):
            yield Path(os.path.abspath(os.environ[name]))
    yield Path("/etc/pip.conf")
    yield Path("/Library/Application Support/pip/pip.conf")
    with contextlib.suppress(RuntimeError):  # the user of a container may have no home folder
        yield Path.home() / ".pip" / "pip.conf"
        yield Path.home() / "Library" / "Application Support" / "pip" / "pip.conf"
    for folder in _settings_folders():
        yield folder / "pip" / "pip.conf"
        yield folder / "uv" / "uv.toml"


def _settings_folders() -> Iterator[Path]:
    """Yield the folders in which programs keep their settings."""
    if os.environ.get("XDG_CONFIG_HOME"):
        yield Path(os.environ["XDG_CONFIG_HOME"])
    else:
        with contextlib.suppress(RuntimeError):
            yield Path.home() / ".config"
    yield from (Path(part) for part in (os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep) if part)
    yield Path("/etc")
