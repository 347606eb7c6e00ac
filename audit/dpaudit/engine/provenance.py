"""Where and with what an audit ran."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from dpaudit.mechanisms.sources import Source, source_of
from dpaudit.text.version import __version__

_PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib")


FILE = "file of the mechanism"


def environment(*, seed: int, mechanism: str, source: Source | None = None) -> dict[str, Any]:
    """Versions, machine, seed and date, as plain values.

    Args:
        seed: of the audit.
        mechanism: its name.
        source: the mechanism's code, if it has any outside of dpaudit.
    """
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "mechanism": mechanism,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "packages": {"dpaudit": __version__} | {name: found for name in _PACKAGES if (found := _version(name))},
        **(_of_source(source) if source is not None else {}),
    }


def _of_source(source: Source) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if source.packages:
        found["packages of the mechanism"] = dict(source.packages)
    if source.file is not None:
        found[FILE] = {"path": str(source.file), "sha256": source.sha256}
    if source.modules:
        found["modules of the mechanism"] = dict(source.modules)
    return found


def changed_since(environment: Mapping[str, Any], mechanism: Any) -> list[str]:
    """Which code of the mechanism is not that of a finished audit, in words.

    Args:
        environment: of the audit's result; a file may say anything there.
        mechanism: the one at hand.
    """
    told = environment.get(FILE)
    if not isinstance(told, Mapping) or not told.get("sha256"):
        return []
    source, then = source_of(mechanism), str(told["sha256"])
    name = Path(str(told.get("path", "the file of the mechanism"))).name
    found = []
    if source.file is None:
        found.append(f"the audit was of {name}; this mechanism has no file, so it may be another one")
    elif source.sha256 != then:
        now = source.sha256
        found.append(f"{source.file.name} has changed since the audit (SHA-256 {then[:12]} then, {now[:12]} now)")
    found += _other_versions(environment.get("packages of the mechanism"), source.packages)
    return found


def _other_versions(told: Any, now: Mapping[str, str]) -> list[str]:
    if not isinstance(told, Mapping):
        return []
    other = [f"{name} {told[name]} then, {now[name]} now" for name in told if name in now and told[name] != now[name]]
    return [f"packages of the mechanism have changed since the audit: {', '.join(other)}"] if other else []


@cache
def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
