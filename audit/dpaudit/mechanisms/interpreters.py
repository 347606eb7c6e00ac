"""Finds a Python interpreter with the version that an isolated environment requires."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from dpaudit.mechanisms.neutral_folder import TimedOut, completed
from dpaudit.mechanisms.protocol import MechanismError

OLDEST = (3, 8)  # the oldest Python version that worker.py supports
_TIMEOUT_SECONDS = 30.0  # time limit for an interpreter to print its version


def check_version(version: str) -> str:
    """Return `version` unchanged if the version is valid."""
    if not re.fullmatch(r"3\.[0-9]{1,3}(\.[0-9]{1,3})?", version):
        raise ValueError(f'python_version must read like "3.11" or "3.11.7", got {version!r}')
    if tuple(map(int, version.split(".")))[:2] < OLDEST:
        raise ValueError(f"python_version must be {OLDEST[0]}.{OLDEST[1]} or later, got {version!r}")
    return version


def this_version() -> str:
    """Return the version of the running Python, e.g. "3.11"."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def find_interpreter(version: str) -> str:
    """Return the path of a Python interpreter with this version.

    The search covers this process's Python, PATH, pyenv, conda and uv, in this order.
    """
    seen: set[str] = set()
    for candidate in _candidates(version):
        if candidate not in seen and os.access(candidate, os.X_OK):
            seen.add(candidate)
            if _is(candidate, version):
                return candidate
    raise MechanismError(
        f"no Python {version} was found on PATH, in {_pyenv() / 'versions'}, in conda's environments"
        f"{' or by uv' if shutil.which('uv') else ''}; install it (uv python install {version}, "
        f"pyenv install {version}) or set another python_version"
    )


def _candidates(version: str) -> Iterator[str]:
    yield sys.executable
    minor = ".".join(version.split(".")[:2])
    for name in (f"python{minor}", "python3", "python"):
        for folder in os.get_exec_path():
            yield os.path.abspath(Path(folder) / name)
    for path in sorted((_pyenv() / "versions").glob(f"{version}*/bin/python"), key=_newest, reverse=True):
        yield str(path)
    for root in _conda():
        yield str(root / "bin" / "python")
        yield from map(str, sorted((root / "envs").glob("*/bin/python")))
    if uv := shutil.which("uv"):
        found = completed([os.path.abspath(uv), "python", "find", "--no-project", version])
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
    """Whether the interpreter runs and has the version.  A shim on PATH may name a Python that is not installed."""
    code = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
    try:
        said = completed([candidate, "-I", "-c", code], timeout=_TIMEOUT_SECONDS)
    except (OSError, TimedOut):
        return False
    return said.returncode == 0 and f"{said.stdout.strip()}.".startswith(f"{version}.")
