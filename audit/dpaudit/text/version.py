"""The version of the code that runs: of its checkout, if this file lies in one, otherwise of the installed package.

A checkout that is on PYTHONPATH may differ from the version that is installed, and need not be installed.
"""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path


def _find() -> str:
    try:
        text = (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
        project = tomllib.loads(text)["project"]
        if project["name"] == "dpaudit":
            return str(project["version"])
    except (OSError, ValueError, LookupError, TypeError):
        pass  # not a checkout
    try:
        return metadata.version("dpaudit")
    except metadata.PackageNotFoundError:
        return "0+unknown"


__version__ = _find()
