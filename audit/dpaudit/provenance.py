"""Where and with what an audit ran."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from typing import Any

_PACKAGES = ("dpaudit", "numpy", "scipy", "scikit-learn", "joblib")


def environment(*, seed: int, mechanism: str, installed: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Versions, machine, seed and date, as plain values.

    `installed`: name and version of the packages in the mechanism's own environment, if it has one.
    """
    own = {} if installed is None else {"packages of the mechanism": dict(installed)}
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "mechanism": mechanism,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
        **own,
    }


@cache
def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
