"""Finds a Python of the version that an isolated environment asks for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from dpaudit.mechanisms.protocol import MechanismError

OLDEST = (3, 8)  # what the worker file is written for
_TIMEOUT_SECONDS = 30.0  # seconds an interpreter may take to say its version


def check_version(version: str) -> str:
    """`version` if it reads like "3.11" or "3.11.7" and is not too old.  ValueError otherwise."""
    if not re.fullmatch(r"3\.\d+(\.\d+)?", version):
        raise ValueError(f'python_version must read like "3.11" or "3.11.7", got {version!r}')
    if tuple(map(int, version.split(".")))[:2] < OLDEST:
        raise ValueError(f"python_version must be {OLDEST[0]}.{OLDEST[1]} or later, got {version!r}")
    return version


def this_version() -> str:
    """Of the Python that is running."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def find_interpreter(version: str) -> str:
    """Path of a Python of that version: this one, on PATH, of pyenv, of conda, or known to uv.

    MechanismError names where it was looked for.
    """
    seen: set[str] = set()
    for candidate in _candidates(version):
        if candidate not in seen and os.access(candidate, os.X_OK):
            seen.add(candidate)
            if _is(candidate, version):
                return candidate
    raise MechanismError(
        f"there is no Python {version} on this machine: looked on PATH, in {_pyenv() / 'versions'}, in conda's "
        f"environments{' and asked uv' if shutil.which('uv') else ''}; install it (uv python install {version}, "
        f"pyenv install {version}) or ask for another python_version"
    )


def _candidates(version: str) -> Iterator[str]:
    yield sys.executable
    minor = ".".join(version.split(".")[:2])
    for name in (f"python{minor}", "python3", "python"):
        for folder in os.get_exec_path():
            yield str(Path(folder) / name)
    for path in sorted((_pyenv() / "versions").glob(f"{version}*/bin/python"), key=_newest, reverse=True):
        yield str(path)
    for root in _conda():
        yield str(root / "bin" / "python")
        yield from map(str, sorted((root / "envs").glob("*/bin/python")))
    if shutil.which("uv"):
        found = subprocess.run(["uv", "python", "find", "--no-project", version], capture_output=True, text=True)
        if found.returncode == 0:
            yield found.stdout.strip()


def _newest(path: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", path.parts[-3])))


def _pyenv() -> Path:
    return Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")


def _conda() -> Iterator[Path]:
    if "CONDA_EXE" in os.environ:
        yield Path(os.environ["CONDA_EXE"]).parent.parent
    if "MAMBA_ROOT_PREFIX" in os.environ:
        yield Path(os.environ["MAMBA_ROOT_PREFIX"])
    for home in (Path.home(), Path("/opt")):
        for name in ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", "conda"):
            yield home / name
    listed = Path.home() / ".conda" / "environments.txt"
    if listed.is_file():
        yield from (Path(line.strip()) for line in listed.read_text().splitlines() if line.strip())


def _is(candidate: str, version: str) -> bool:
    """Whether it runs and has the version.  Shims on PATH may stand for a Python that is not installed."""
    code = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
    try:
        said = subprocess.run([candidate, "-I", "-c", code], capture_output=True, text=True, timeout=_TIMEOUT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.returncode == 0 and f"{said.stdout.strip()}.".startswith(f"{version}.")
