"""Private Python environments with only the packages that a mechanism requires, kept in a cache, and their lock files.

An environment gets its name once it is complete.  A lock file lists the SHA-256 of each distribution file, and may come
from a stranger, so options of an installer are refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import logging
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO, NamedTuple

from dpaudit.running.foreign import MechanismError
from dpaudit.running.requirements import (
    OLDEST,
    check_version,
    index_settings,
    local_hashes,
    normalised,
    parsed_requirement,
    project_name,
    run_uv,
    this_version,
)

_BYTECODE = "bytecode"
_log = logging.getLogger("dpaudit.running")
_ABOUT = "dpaudit.json"  # the file of a complete environment with its packages
_NAME = re.compile(r"(py3[0-9.]*-[0-9a-f]{16})(-\w+)?")  # of an environment, and of a build
FORMAT = "# dpaudit-lock/1"
_LINE = re.compile(  # installers would replace ${NAME} by the value of a variable
    r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:==[A-Za-z0-9.!+_-]+| @ (?:https?|file):[^\s$]+) --hash=(sha256:[0-9a-f]{64})"
)


class Archive(NamedTuple):
    """The file from which a package is installed."""

    version: str
    sha256: str
    url: str  # the URL in the requirement, or "" without a URL


@dataclass(frozen=True)
class Lock:
    """The exact packages of an environment."""

    python_version: str
    requires: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The content of the lock file."""
        about = "# Exact packages of an audit.  `dpaudit run --locked` installs these and no others."
        python, requires = f"# python: {self.python_version}", f"# requires: {json.dumps(self.requires)}"
        return "\n".join((FORMAT, about, python, requires, *self.lines, ""))

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of each package's file, by package name."""
        return {match[1]: match[2] for match in map(_LINE.fullmatch, self.lines) if match}


def lock_of(python_version: str, requires: Sequence[str], files: Mapping[str, Archive]) -> Lock:
    """Return the lock with these files of packages; raise ValueError if it is not valid."""
    lines = tuple(
        f"{name}{f' @ {url}' if url else f'=={version}'} --hash=sha256:{sha256}"
        for name, (version, sha256, url) in sorted(files.items())
    )
    return read_lock(Lock(python_version, tuple(requires), lines).text)


def read_lock(text: str) -> Lock:
    """Read the content of a lock file."""
    first, *rest = text.split("\n")
    if first != FORMAT:
        raise ValueError(f"1: the line must be {FORMAT!r}, the format of lock files, got {first!r:.80}")
    for number, line in enumerate(rest, 2):
        if line and not line.startswith("# ") and not _LINE.fullmatch(line):
            allowed = "a package with its hash, such as NAME==VERSION --hash=sha256:..."
            raise ValueError(f"{number}: the line must be {allowed}, got {line!r:.100}")
    stated = dict(line[2:].split(": ", 1) for line in rest if line.startswith(("# python: ", "# requires: ")))
    try:
        version, requires = check_version(stated["python"]), json.loads(stated["requires"])
        return Lock(version, tuple(map(str, requires)), tuple(filter(_LINE.fullmatch, rest)))
    except (LookupError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"1: the file must state `# python: ...` and `# requires: [...]`: {error}") from None


@dataclass(frozen=True, slots=True)
class Environment:
    """A complete environment."""

    python: Path
    packages: dict[str, str]
    lock: Lock | None = None
    bytecode: Path | None = None  # folder for compiled modules, without which each process compiles all it imports


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedEnvironment:
    """An environment in the cache, or what an interrupted build left."""

    path: Path
    size: int
    used: float
    about: str


def environments_folder() -> Path:
    """Return the folder of environments in $DPAUDIT_CACHE, or in dpaudit in the user's cache folder."""
    try:
        users = os.environ.get("XDG_CACHE_HOME")
        cache = os.environ.get("DPAUDIT_CACHE") or Path(users or Path.home() / ".cache", "dpaudit")
    except RuntimeError:  # the user of a container may have neither HOME nor an entry in passwd
        raise MechanismError(
            "this user has no home folder for the environments; set DPAUDIT_CACHE to a writable folder"
        ) from None
    return Path(os.path.abspath(cache), "environments")


_held: dict[Path, IO[str]] = {}  # open, locked files that show `dpaudit clean` which environments this process uses


def environment(requires: Sequence[str], python_version: str | None = None, lock: Lock | None = None) -> Environment:
    """Return the environment with these packages and their dependencies, and build it if it is missing."""
    version, wanted = python_version or this_version(), normalised(requires)
    folder = _folder(version, wanted, lock)
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark = Path(f"{folder}.used")
        if mark not in _held:
            file = mark.open("a")
            fcntl.flock(file, fcntl.LOCK_SH)  # waits while another process removes the environment
            if _held.setdefault(mark, file) is not file:  # another thread was faster
                file.close()
        os.utime(mark)
        complete = _complete(folder)
        if complete is None:
            with open(f"{folder}.lock", "a") as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # the system releases the lock if this process dies
                complete = _complete(folder) or _build(folder, version, wanted, lock)
    except OSError as error:
        raise MechanismError(
            f"the environment {folder} cannot be written: {error}; set DPAUDIT_CACHE to a folder that can be written"
        ) from error
    return complete


@functools.cache
def existing_environment(python: Path) -> Environment:
    """Return the environment of a Python that somebody else has installed."""
    listing = (
        "import json, sys, importlib.metadata as found; versions = {one.metadata['Name']: one.version "
        "for one in found.distributions()}; print(json.dumps([sys.version_info[:2], versions]))"
    )
    try:
        done = subprocess.run([str(python), "-I", "-c", listing], capture_output=True, text=True, timeout=600)
        version, packages = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        reason = error if isinstance(error, OSError) else "it does not answer like a Python"
        raise MechanismError(f"the interpreter {python} cannot be used: {reason}") from None
    if tuple(version) < OLDEST:
        raise MechanismError(f"the interpreter {python} is Python {version[0]}.{version[1]}; it must be 3.8 or later")
    return Environment(python, dict(sorted(packages.items())))


def cached_environment(requires: Sequence[str], python_version: str | None = None) -> Environment | None:
    """Return the environment that was built for these requirements earlier, or None if there is none."""
    return _complete(_folder(python_version or this_version(), normalised(requires), None))


def cached_environments() -> list[CachedEnvironment]:
    """Return the environments in the cache, the least recently used first."""
    root, cached = environments_folder(), []
    for folder in root.iterdir() if root.is_dir() else ():
        if not _NAME.fullmatch(folder.name) or not folder.is_dir() or folder.is_symlink():
            continue
        try:
            content = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
            about = f"{', '.join(content['requires']) or 'no packages'}, Python {content['python']}"
        except FileNotFoundError:
            about = "an incomplete installation"
        mark = Path(f"{_of_build(folder)}.used")
        used = (mark if mark.exists() else folder).stat().st_mtime
        size = sum(file.lstat().st_blocks * 512 for file in folder.rglob("*"))  # st_blocks counts units of 512 bytes
        cached.append(CachedEnvironment(path=folder, size=size, used=used, about=about))
    return sorted(cached, key=lambda environment: (environment.used, environment.path))


def remove(cached: CachedEnvironment) -> None:
    """Remove an environment; raise BlockingIOError if a process uses or builds it, and OSError for other reasons."""
    with contextlib.ExitStack() as stack:
        for ending in ("lock", "used"):
            file = stack.enter_context(open(f"{_of_build(cached.path)}.{ending}", "a"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (cached.path / _ABOUT).unlink(missing_ok=True)  # so that no process finds half an environment
        shutil.rmtree(cached.path)


def _of_build(folder: Path) -> Path:
    """Return the folder that a build gets once it is complete."""
    return folder.with_name("-".join(folder.name.split("-")[:2]))


def _folder(version: str, wanted: list[str], lock: Lock | None) -> Path:
    """Return the folder of an environment.  Its name depends on local files and indexes, or on the lock."""
    root = environments_folder()
    if root.exists() and (root.stat().st_uid not in (os.geteuid(), 0) or root.stat().st_mode & 0o022):
        raise MechanismError(
            f"other users of this machine can change the packages in {root}; set DPAUDIT_CACHE to a folder of your "
            f"own, or run `chmod go-w {root}` if it is yours and you trust all users"
        )
    about = [lock.text] if lock is not None else [local_hashes(wanted), index_settings()]
    key = hashlib.sha256(json.dumps([version, wanted, *about]).encode()).hexdigest()[:16]
    return root / f"py{version}-{key}"


def _complete(folder: Path) -> Environment | None:
    """Return the environment in a folder; None if it is missing, or if its base Python has been removed."""
    try:
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    python = folder / "bin" / "python"
    lock = None if about["lock"] is None else read_lock(about["lock"])
    return Environment(python, about["packages"], lock, folder / _BYTECODE) if python.exists() else None


def _build(folder: Path, version: str, wanted: list[str], lock: Lock | None) -> Environment:
    """Build an environment, and remove what interrupted builds left.  The caller holds the environment's lock."""
    for left in folder.parent.glob(f"{folder.name}*/"):
        shutil.rmtree(left, ignore_errors=True)
    began, names = time.monotonic(), ", ".join(wanted) or "no packages"
    _log.info("building an environment with %s for Python %s, which is kept in %s", names, version, folder.parent)
    new = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    try:
        interpreter = sys.executable
        if not f"{platform.python_version()}.".startswith(f"{version}."):  # uv does not search the versions of pyenv
            pyenv = Path(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"), "versions")
            there = (path for end in ("", ".*[0-9]") for path in pyenv.glob(f"{version}{end}/bin/python"))
            interpreter = str(next(there, version))
        making = ["venv", "-q", "--python", interpreter, str(new)]
        run_uv(making, f"making an environment with Python {version}")
        python = str(new / "bin" / "python")
        what = f"installing {', '.join(wanted)} for Python {version}"
        if lock is None:
            lock = _resolved(python, version, wanted, what)
        if lock is None:
            run_uv(["pip", "install", "-q", "--python", python, *wanted], what)
        elif lock.lines:
            exact = ["--require-hashes", "-r", "-"]
            run_uv(["pip", "install", "-q", "--python", python, *exact], what, "\n".join(lock.lines))
        installed = metadata.distributions(path=[str(path) for path in new.glob("lib/python*/site-packages")])
        packages = dict(sorted((package.metadata["Name"], package.version) for package in installed))
        about = {"python": version, "requires": wanted, "packages": packages, "lock": lock and lock.text}
        (new / _ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
        os.sync()
        new.rename(folder)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    _log.info("the environment has %d packages, installed in %.0f s", len(packages), time.monotonic() - began)
    return Environment(folder / "bin" / "python", packages, lock, folder / _BYTECODE)


def _resolved(python: str, version: str, wanted: list[str], what: str) -> Lock | None:
    """Return the exact packages that requirements need; None if one has no hash, such as one of version control."""
    files: dict[str, Archive] = {}
    urls = {project_name(requirement): parsed_requirement(requirement).url or "" for requirement in wanted}
    resolve = ["pip", "compile", "-q", "--python", python, "--format", "pylock.toml", "-"]
    text = run_uv(resolve, what, "\n".join(wanted)) if wanted else ""
    for package in tomllib.loads(text).get("packages", []):
        wheels: list[Mapping[str, Mapping[str, str]]] = package.get("wheels", [])
        native = sorted(wheels, key=lambda wheel: "-none-any." in str(wheel))  # uv prefers these
        file = native[0] if native else package.get("sdist") or package.get("archive") or {}
        if not (sha256 := file.get("hashes", {}).get("sha256")):
            return None
        files[package["name"]] = Archive(package["version"], sha256, urls.get(package["name"], ""))
    return lock_of(version, wanted, files)
