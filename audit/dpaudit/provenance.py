"""Where and with what an audit ran."""

from __future__ import annotations

import datetime
import os
import platform
from importlib import metadata
from typing import Any

_PACKAGES = ("dpaudit", "numpy", "scipy", "scikit-learn", "joblib")


def environment(*, seed: int, mechanism: str, packages: tuple[str, ...] = ()) -> dict[str, Any]:
    """Versions, machine, seed and date, as plain values.  `packages`: distributions beyond the framework's own."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "mechanism": mechanism,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "packages": {name: found for name in (*_PACKAGES, *packages) if (found := _version(name))},
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
