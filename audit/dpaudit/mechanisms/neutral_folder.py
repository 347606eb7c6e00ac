"""Runs installers and interpreters in a fresh folder, so that no file of a stranger affects the installation.

uv reads `uv.toml` and `pyproject.toml` in the current folder and in all parent folders.  Both installers read relative
paths, such as `find-links = wheels`, from the current folder.  So they run in a fresh folder with empty settings.

The user's own settings and variables still apply.  Otherwise, a package that only the user's index should provide would
come from the public index.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.text.leftovers import temporary_folder

MAX_SECONDS = 7_200.0  # long enough to build a large package from its source

# uv reads only the nearest of these files.  So empty files hide the files of parent folders.
_END_OF_SEARCH = ("pyproject.toml", "uv.toml")
_ELSEWHERE = ("target", "prefix", "root", "dry_run", "user", "python", "require_virtualenv", "requirement", "editable")
_SETTINGS = ("PIP_CONFIG_FILE", "UV_CONFIG_FILE")
_DROPPED = frozenset(
    # PYTHONPATH and PYTHONHOME are settings for this process's Python.  pip may start the environment's Python without
    # -I, and that Python would then obey these settings.  The other variables make an installer install elsewhere or
    # not at all, or install other packages, or make uv read the settings of another folder.
    ["PYTHONPATH", "PYTHONHOME", "UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_TARGET", "UV_PREFIX", "UV_DRY_RUN"]
    + ["UV_PROJECT", "UV_WORKING_DIR", "UV_WORKING_DIRECTORY"]
    + [f"PIP_{name.upper()}" for name in _ELSEWHERE]
)


class TimedOut(MechanismError):
    """Raised if an installer or an interpreter does not end in time."""


def completed(command: Sequence[str], timeout: float = MAX_SECONDS) -> subprocess.CompletedProcess[str]:
    """Run a command in a fresh folder, without the environment variables that redirect installations."""
    variables = {name: value for name, value in os.environ.items() if name.upper() not in _DROPPED}
    variables |= {name: _absolute(name, variables[name]) for name in _SETTINGS if variables.get(name)}
    with temporary_folder() as folder:
        for name in _END_OF_SEARCH:
            Path(folder, name).touch()
        try:
            return subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                env=variables,
                cwd=folder,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            raise TimedOut(f"{Path(command[0]).name} did not end within {timeout:,g} s") from None


def _absolute(name: str, value: str) -> str:
    """Return the absolute path of a settings file.  An installer in another folder would ignore a relative path."""
    if os.path.isabs(value):
        return value
    if not os.path.exists(value):
        raise MechanismError(
            f"the variable {name} names the file {value}, which does not exist in {Path.cwd()}; installers would "
            "ignore its settings, such as the index of your company.  Set the variable to an absolute path, or unset it"
        )
    return os.path.abspath(value)
