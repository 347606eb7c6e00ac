"""Builds private Python environments with only the packages that a mechanism requires, and keeps them in a cache."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dpaudit.mechanisms.index_settings import index_settings, uv_is_used
from dpaudit.mechanisms.installer import Archive, archives, check_installed, pip_of
from dpaudit.mechanisms.installer import run as _run
from dpaudit.mechanisms.interpreters import find_interpreter, this_version
from dpaudit.mechanisms.local_files import local_hashes
from dpaudit.mechanisms.locks import Lock, lock_of, read_lock
from dpaudit.mechanisms.own_folder import check_own_folders, is_trusted, make_own_folders, resolved_cache
from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.mechanisms.requirements import pinned_version, project_name, unmet

__all__ = [
    "Environment",
    "cache_folder",
    "environment",
    "environments_folder",
    "named_cache",
    "normalised",
    "pinned_version",
    "project_name",
]

_log = logging.getLogger("dpaudit.environments")


@dataclass(frozen=True, slots=True)
class Environment:
    """A complete environment."""

    python: Path
    packages: dict[str, str]
    lock: Lock | None = None


def cache_folder() -> Path:
    """Return the folder of `named_cache` with all symbolic links resolved.

    The result stays the same until this process ends.
    """
    return resolved_cache(named_cache())


def named_cache() -> Path:
    """Return the absolute folder of the environments: $DPAUDIT_CACHE, or dpaudit in the user's cache folder.

    If that folder belongs to another user, as the mounted home folder of a container may, the folder dpaudit-UID beside
    it is used.
    """
    if os.environ.get("DPAUDIT_CACHE"):
        return Path(os.path.abspath(os.environ["DPAUDIT_CACHE"]))
    try:
        default = Path(os.path.abspath(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")) / "dpaudit"
    except RuntimeError:  # the user of a container may have neither HOME nor an entry in passwd
        raise MechanismError(
            "this user has no home folder for the environments; set DPAUDIT_CACHE to a writable folder"
        ) from None
    return default if is_trusted(default) else default.with_name(f"dpaudit-{os.geteuid()}")


def environment(requires: Sequence[str], python_version: str | None = None, lock: Lock | None = None) -> Environment:
    """Return the environment with these packages and their dependencies, and build it if it is missing.

    An environment is built under a lock, in a new folder.  A pointer file names that folder after everything has been
    installed and checked.  So no process uses an incomplete environment, even after an interruption.  The command
    `dpaudit clean` does not remove the environment before this process ends.
    """
    version = python_version or this_version()
    wanted = normalised(requires)
    files = local_hashes(wanted) if lock is None else {}
    pointer = _pointer(version, wanted, files, lock)
    try:
        make_own_folders(cache_folder(), environments_folder())
        _hold(pointer)
        found = complete_environment(pointer, wanted, version)
        if found is None:
            with _locked(pointer.with_suffix(".lock")):
                found = complete_environment(pointer, wanted, version) or _build(pointer, version, wanted, files, lock)
    except OSError as error:
        raise MechanismError(f"the environment {pointer} cannot be written: {error}") from error
    return found


def cached_environment(requires: Sequence[str], python_version: str | None = None) -> Environment | None:
    """Return the environment that was built for these requirements earlier, or None if there is none.

    The function creates and changes nothing.
    """
    version, wanted = python_version or this_version(), normalised(requires)
    try:
        check_own_folders(cache_folder(), environments_folder())
    except OSError:  # the cache does not exist; `environment` reports a cache that cannot be written
        return None
    return complete_environment(_pointer(version, wanted, local_hashes(wanted), None), wanted, version)


def _pointer(version: str, wanted: list[str], files: Mapping[str, str], lock: Lock | None) -> Path:
    """Return the path of the pointer file, which names the folder of an environment once it is complete.

    Without a lock, the name depends on the indexes and on the installer, because another index may have other code
    under the same version.  The name holds only a hash of these settings.
    """
    about: list[object] = [version, wanted, files if lock is None else lock.text]
    if lock is None and (settings := index_settings()):
        about += [settings, uv_is_used()]
    key = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
    return environments_folder() / f"py{version}-{key}.json"


def environments_folder() -> Path:
    """Return the folder that holds the environments and nothing else."""
    return cache_folder() / "environments"


def normalised(requires: Sequence[str]) -> list[str]:
    """Return requirements in the form in which environments are compared: sorted, with single spaces."""
    return sorted(" ".join(requirement.split()) for requirement in requires)


_held: dict[Path, IO[str]] = {}  # open, locked files that show `dpaudit clean` which environments this process uses


def _hold(pointer: Path) -> None:
    """Mark an environment as used by this process until it ends."""
    mark = pointer.with_suffix(".used")
    if mark not in _held:
        file = mark.open("a")
        fcntl.flock(file, fcntl.LOCK_SH)  # waits while another process removes the environment
        if _held.setdefault(mark, file) is not file:  # another thread was faster
            file.close()
    os.utime(mark)


def complete_environment(pointer: Path, wanted: list[str], version: str) -> Environment | None:
    """Return the environment that the file `pointer` names, or None if the environment is damaged or incomplete."""
    try:
        about = json.loads(pointer.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    folder, packages, lock = (
        (about.get(name) for name in ("folder", "packages", "lock")) if isinstance(about, dict) else (None,) * 3
    )
    if not isinstance(folder, str) or not re.fullmatch(rf"{re.escape(pointer.stem)}-\w+", folder):
        return None  # the file is damaged, so the environment is rebuilt
    python = pointer.parent / folder / "bin" / "python"
    if not isinstance(packages, dict) or not os.access(python, os.X_OK) or unmet(wanted, packages, version):
        return None
    try:
        return Environment(python, packages, read_lock(lock) if isinstance(lock, str) else None)
    except ValueError:
        return None


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # the system releases the lock if this process dies
        yield


def _build(pointer: Path, version: str, wanted: list[str], local: Mapping[str, str], lock: Lock | None) -> Environment:
    """Build an environment, and remove the folders of interrupted builds.

    The caller holds the environment's lock.  So all earlier folders of the environment are incomplete, even if an
    interrupted build left an installer running.
    """
    for left in pointer.parent.glob(f"{pointer.stem}-*"):
        shutil.rmtree(left, ignore_errors=True)
    base = find_interpreter(version)
    folder = Path(tempfile.mkdtemp(prefix=f"{pointer.stem}-", dir=pointer.parent))
    _log.info("installing %s for Python %s", ", ".join(wanted) or "no packages", version)
    python = folder / "bin" / "python"
    uv = shutil.which("uv")
    uv = uv and os.path.abspath(uv)
    try:
        if uv:
            _run([uv, "venv", "--no-project", "--quiet", "--python", base, str(folder)], "making an environment")
        else:
            _run([base, "-I", "-m", "venv", "--without-pip", str(folder)], "making an environment")
        files = _install(uv, base, folder, version, wanted, lock) if wanted else {}
        packages = check_installed(python, wanted, version)
        if lock is None and local_hashes(wanted) != local:
            raise MechanismError("a required file changed during the installation; run again")
        found = Environment(python, packages, lock_of(version, wanted, packages, files) if lock is None else lock)
        if lock is not None and {project_name(name) for name in packages} != {
            project_name(name) for name in lock.hashes
        }:
            raise MechanismError("the installed packages differ from the packages of the lock file")
        about = {"folder": folder.name, "python": version, "requires": wanted, "packages": packages}
        about |= {"lock": found.lock.text} if found.lock is not None else {}
        _publish(folder / pointer.name, json.dumps(about, indent=1), pointer)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return found


def _install(
    uv: str | None, base: str, folder: Path, version: str, wanted: list[str], lock: Lock | None
) -> dict[str, Archive]:
    """Install packages, and return the archive of each package if the installer reports the archives."""
    python, report = folder / "bin" / "python", folder / "report.json"
    install = [uv, "pip", "install", "--python", str(python)] if uv else [*pip_of(base, python), "install"]
    if lock is not None:
        exact = folder / "requirements.txt"
        exact.write_text("\n".join(lock.lines), encoding="utf-8")
        _run([*install, "--quiet", "--require-hashes", "-r", str(exact)], "installing the packages of the lock file")
        return {}
    reported = [] if uv else ["--report", str(report)]
    _run([*install, "--quiet", *reported, *wanted], f"installing {', '.join(wanted)} for Python {version}")
    return archives(report)


def _publish(file: Path, text: str, pointer: Path) -> None:
    """Flush a complete environment to the disk, and then write the file that names the environment."""
    os.sync()
    with file.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(file, pointer)
