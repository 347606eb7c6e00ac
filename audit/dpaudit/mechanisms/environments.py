"""Private Python environments with only the packages that a mechanism requires.  They are built once and kept."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpaudit.mechanisms.interpreters import find_interpreter, this_version
from dpaudit.mechanisms.protocol import MechanismError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_log = logging.getLogger("dpaudit.environments")
_SHOWN = 15  # last lines of a failed installer that a message quotes


@dataclass(frozen=True, slots=True)
class Environment:
    """A complete environment.

    Args:
        python: The environment's interpreter.
        packages: The version of every installed package, by name.
    """

    python: Path
    packages: dict[str, str]


def project_name(requirement: str) -> str:
    """Return the normalised project name of a PEP 508 requirement.

    Args:
        requirement: E.g. "opendp==0.14.2".

    Raises:
        ValueError: If it is not a requirement, e.g. an option of pip or a path.
    """
    from packaging.utils import canonicalize_name

    return str(canonicalize_name(_parsed(requirement).name))


def pinned_version(requirement: str) -> tuple[str, str] | None:
    """Return name and version of a requirement `name==version`; None for any other requirement.

    A requirement with extras, markers, URLs, wildcards or further conditions is not of this form.

    Args:
        requirement: E.g. "opendp==0.14.2".

    Raises:
        ValueError: If it is not a PEP 508 requirement.
    """
    parsed = _parsed(requirement)
    exact = [one.version for one in parsed.specifier if one.operator == "==" and not one.version.endswith(".*")]
    plain = len(parsed.specifier) == 1 and not (parsed.extras or parsed.marker or parsed.url)
    return (parsed.name, exact[0]) if plain and exact else None


def _parsed(requirement: str) -> Requirement:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        if "\n" in requirement:
            raise InvalidRequirement("it has more than one line")
        return Requirement(requirement)
    except (InvalidRequirement, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f'a requirement must read like "opendp==0.14.2", got {requirement!r:.200}: {reason}') from None


def cache_folder() -> Path:
    """Return the folder that holds the environments: $DPAUDIT_CACHE, or dpaudit in the user's cache folder.

    Raises:
        MechanismError: If the user has no home folder and DPAUDIT_CACHE is not set.
    """
    if os.environ.get("DPAUDIT_CACHE"):
        return Path(os.environ["DPAUDIT_CACHE"])
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpaudit"
    except RuntimeError:  # the user of a container may have neither HOME nor an entry in passwd
        raise MechanismError(
            "there is no home folder for the environments; set DPAUDIT_CACHE to a writable folder"
        ) from None


def environment(requires: Sequence[str], python_version: str | None = None) -> Environment:
    """Return the environment with these packages and their dependencies; build it if it does not exist.

    An environment is built under a lock, in a new folder.  A file names that folder once everything is installed.  So
    no process uses an incomplete environment, even after an interruption.

    Args:
        requires: Requirements, as for pip.
        python_version: "3.11" or "3.11.7"; None: the version of this process.

    Raises:
        MechanismError: If the environment cannot be built; the message quotes the installer's last lines.
    """
    version = python_version or this_version()
    wanted = sorted(" ".join(requirement.split()) for requirement in requires)
    key = hashlib.sha256(json.dumps([version, wanted]).encode()).hexdigest()[:16]
    pointer = cache_folder() / "environments" / f"py{version}-{key}.json"
    found = _complete(pointer)
    if found is None:
        try:
            pointer.parent.mkdir(parents=True, exist_ok=True)
            with _locked(pointer.with_suffix(".lock")):
                found = _complete(pointer) or _build(pointer, version, wanted)
        except OSError as error:
            raise MechanismError(f"the environment {pointer} cannot be written: {error}") from error
    return found


def _complete(pointer: Path) -> Environment | None:
    """Return the environment that the file `pointer` names; None if its Python no longer exists."""
    try:
        about = json.loads(pointer.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(about, dict) or not isinstance(about.get("folder"), str):
        return None  # a damaged file: the environment is rebuilt
    python = pointer.parent / about["folder"] / "bin" / "python"
    packages = about.get("packages")
    return Environment(python, packages) if isinstance(packages, dict) and os.access(python, os.X_OK) else None


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # the system releases the lock if this process dies
        yield


def _build(pointer: Path, version: str, wanted: list[str]) -> Environment:
    """Build an environment, and remove the folders of interrupted builds.

    The caller holds the lock, so other folders of this name are incomplete, even if their installers still write.
    """
    for left in pointer.parent.glob(f"{pointer.stem}-*"):
        shutil.rmtree(left, ignore_errors=True)
    base = find_interpreter(version)
    folder = Path(tempfile.mkdtemp(prefix=f"{pointer.stem}-", dir=pointer.parent))
    _log.info("installing %s for Python %s", ", ".join(wanted) or "no packages", version)
    python = folder / "bin" / "python"
    uv = shutil.which("uv")
    try:
        if uv:
            _run([uv, "venv", "--no-project", "--quiet", "--python", base, str(folder)], "making an environment")
        else:
            _run([base, "-I", "-m", "venv", "--without-pip", str(folder)], "making an environment")
        if wanted:
            install = [uv, "pip", "install", "--python", str(python)] if uv else [*_pip(base, python), "install"]
            _run([*install, "--quiet", *wanted], f"installing {', '.join(wanted)} for Python {version}")
        packages = _installed(python)
        about = {"folder": folder.name, "python": version, "requires": wanted, "packages": packages}
        (folder / pointer.name).write_text(json.dumps(about, indent=1), encoding="utf-8")
        os.replace(folder / pointer.name, pointer)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Environment(python, packages)


def _pip(base: str, python: Path) -> list[str]:
    """Return a command for pip that installs for `python`: the pip of `base` from version 22.3 on, or a new one."""
    pip = ["-I", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    about = subprocess.run([base, *pip, "--version"], capture_output=True, text=True)
    version = tuple(map(int, re.findall(r"\d+", about.stdout)[:2]))
    if about.returncode == 0 and version >= (22, 3):
        return [base, *pip, "--python", str(python)]
    _run([str(python), "-I", "-m", "ensurepip"], "making an environment with pip")
    return [str(python), *pip]


def _installed(python: Path) -> dict[str, str]:
    code = (
        "import importlib.metadata as m, json; "
        "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}, sort_keys=True))"
    )
    found: dict[str, str] = json.loads(_run([str(python), "-I", "-c", code], "listing the packages"))
    return found


def _run(command: list[str], what: str) -> str:
    """Return the command's stdout.  If it fails, raise a MechanismError that quotes its last lines."""
    # pip starts the other Python without -I, so settings for this process's Python must be removed.
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=env)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()[-_SHOWN:]
        said = "\n".join(f"    {line}" for line in lines) or "    (nothing)"
        who = command[command.index("-m") + 1] if "-m" in command else Path(command[0]).name
        raise MechanismError(f"{what} failed; {who} said:\n{said}")
    return done.stdout
