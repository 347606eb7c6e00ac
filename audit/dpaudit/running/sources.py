"""Identifies the code of a mechanism: its file, the user's modules that it imports, programs, and installed packages.

The packages include their dependencies.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from dpaudit.running.command import CommandMechanism
from dpaudit.running.fingerprint import Fingerprint, fingerprint
from dpaudit.running.isolated import IsolatedMechanism
from dpaudit.running.modules import (
    file_fingerprint,
    imported_files,
    is_library,
    module_file,
    module_files,
    user_folders,
)
from dpaudit.running.protocol import Batched
from dpaudit.running.python import PythonMechanism
from dpaudit.running.requirements import local_hashes, project_name
from dpaudit.text import masked_words

_LEFT_OUT = ("__main__", "dpaudit", "dpaudit_attacks", "dpaudit_reports")  # a result records these separately


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The code of a mechanism outside dpaudit."""

    file: Path | None = None
    sha256: str = ""
    modules: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of the user's other files, by path
    packages: Mapping[str, str] = field(default_factory=dict)  # versions by name
    used: frozenset[str] = frozenset()  # normalised names of the packages that the code itself names
    hashes: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of packages in a private environment, by name
    content: Fingerprint | None = None  # fingerprint of an object or function that has no address


def source_of(mechanism: object) -> Source:
    """Identify the code of a mechanism as it was when it was loaded."""
    if isinstance(mechanism, CommandMechanism):
        return Source(modules=_files_of_command(mechanism))
    if not isinstance(mechanism, PythonMechanism | IsolatedMechanism):
        return _in_this_process(mechanism, mechanism, fingerprint(mechanism))
    kept: Source | None = mechanism.__dict__.get("_source")
    if kept is not None:
        return kept
    if isinstance(mechanism, PythonMechanism):
        found = _in_this_process(mechanism, mechanism.__dict__.get("loaded"), None)
    else:
        found = _isolated(mechanism)
    if isinstance(mechanism, IsolatedMechanism) or "loaded" in mechanism.__dict__:
        mechanism.__dict__["_source"] = found
    return found


def _in_this_process(mechanism: object, loaded: object, content: Fingerprint | None) -> Source:
    file, module = file_of(mechanism), _module_of(mechanism)
    if file is not None:
        files, tops = imported_files(file, [*user_folders(), file.parent])
    elif content is not None and module == "__main__":
        files, tops = set[Path](), set(content.libraries)
    else:
        files, tops = set[Path](), {module.split(".")[0]}
    named = getattr(loaded, "libraries", ())
    tops |= {name for name in named if isinstance(name, str)} if isinstance(named, tuple) else set()
    names = {name for top in tops for name in _distributions(top)}
    return Source(
        file=file,
        sha256=_sha256(file),
        modules={str(other): _sha256(other) for other in sorted(files - {file})},
        packages=_required(names),
        used=_normalised(names),
        content=content,
    )


def _isolated(mechanism: IsolatedMechanism) -> Source:
    file, lock = file_of(mechanism), mechanism.installed
    beside = set() if file is None else imported_files(file, [file.parent, mechanism.folder.absolute()])[0] - {file}
    return Source(
        file=file,
        sha256=_sha256(file),
        modules={str(other): _sha256(other) for other in sorted(beside)},
        packages=mechanism.packages,
        used=_normalised(mechanism.requires),
        hashes=(
            {project_name(one): sha256 for one, sha256 in local_hashes(mechanism.requires).items()}
            if lock is None
            else lock.hashes
        ),
    )


def _normalised(requirements: Iterable[str]) -> frozenset[str]:
    """Return the normalised project names of requirements; paths and options of the installer have none."""
    found = set()
    for one in requirements:
        with contextlib.suppress(ValueError):
            found.add(project_name(one))
    return frozenset(found)


def _files_of_command(mechanism: CommandMechanism) -> dict[str, str]:
    """Return the hashes of the program and of files and modules that it names, except those of secret options."""
    words, folder = mechanism.command, mechanism.cwd or Path()
    secret = {word for word, shown in zip(words, masked_words(words), strict=True) if word != shown}
    secret |= {word.partition("=")[2] for word in secret}
    files = {name: path for name, path in _named_files(words, folder) if _is_file(path)}
    scripts = [path.absolute() for path in files.values() if path.suffix == ".py" or _is_script(path)]
    for word, name in pairwise(words):
        if word == "-m":
            scripts += module_files(f"{name}.__main__", [folder.absolute()])
    known = {path.absolute() for path in files.values()}
    for path in scripts:
        beside = imported_files(path, [path.parent, folder.absolute()])[0] - known
        files |= {os.path.relpath(other, folder): other for other in sorted(beside)}
    return {name: _sha256(path) for name, path in files.items() if name not in secret}


def _named_files(words: tuple[str, ...], folder: Path) -> Iterator[tuple[str, Path]]:
    program, *others = words
    yield "program", folder / program if "/" in program else Path(shutil.which(program) or program)
    for word in others:
        yield word, folder / word
        if value := word.partition("=")[2]:  # such as --params=FILE
            yield value, folder / value


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_script(path: Path) -> bool:
    """Whether the first line of a file marks it as a Python program."""
    with path.open("rb") as file:
        first = file.readline(200)
    return first.startswith(b"#!") and b"python" in first


def file_of(mechanism: object) -> Path | None:
    """Return the file with the mechanism's code, or None if there is no file outside installed packages."""
    if isinstance(mechanism, PythonMechanism | IsolatedMechanism):
        address = mechanism.code or mechanism.address
        return _addressed(address, mechanism.folder, isolated=isinstance(mechanism, IsolatedMechanism))
    module = _module_of(mechanism)
    return None if is_library(module) else module_file(module)


def _module_of(mechanism: Any) -> str:
    while True:
        if isinstance(mechanism, Batched):
            mechanism = mechanism.function
        elif isinstance(mechanism, functools.partial):
            mechanism = mechanism.func
        elif hasattr(mechanism, "__func__"):
            mechanism = mechanism.__func__
        elif (inner := of_ours(mechanism, "audited_class")) is not None:
            mechanism = inner
        else:
            break
    if not (isinstance(mechanism, type) or hasattr(mechanism, "__code__")):
        mechanism = type(mechanism)
    return str(getattr(mechanism, "__module__", ""))


def of_ours(mechanism: object, name: str) -> object:
    """Return an attribute that only a mechanism of dpaudit may have, or None."""
    return getattr(mechanism, name, None) if type(mechanism).__module__.startswith("dpaudit.") else None


def _addressed(address: str, folder: Path, *, isolated: bool) -> Path | None:
    name = address.rpartition(":")[0]
    if name.endswith(".py"):
        path = (folder / name).resolve()
        return path if path.is_file() else None
    if isolated:  # `find_spec` would import the package of a module in this process
        return next(iter(module_files(name, [folder])[::-1]), None)
    if (found := module_file(name)) is not None:
        return found
    try:
        spec = find_spec(name) if name else None
    except (ImportError, ValueError):
        return None
    path = Path(spec.origin) if spec is not None and spec.origin else Path()
    return path.absolute() if path.is_file() else None


def _sha256(file: Path | None) -> str:
    try:
        return "" if file is None else file_fingerprint(file)
    except OSError:
        return ""


@functools.cache
def _distributions(top: str) -> tuple[str, ...]:
    """Return the names of the installed packages that contain a module with this top-level name."""
    if not top or top in sys.stdlib_module_names or top in _LEFT_OUT:
        return ()
    try:
        return (metadata.distribution(top).name,)
    except (metadata.PackageNotFoundError, ValueError):
        return tuple(sorted(set(_all_distributions().get(top, ()))))


@functools.cache
def _all_distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _required(names: set[str]) -> dict[str, str]:
    """Return the versions of these packages and of their installed dependencies."""
    found: dict[str, str] = {}
    left = sorted(names)
    while left:
        name, version, needs = _installed(left.pop())
        if version and name not in found:
            found[name] = version
            left += needs
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


@functools.cache
def _installed(name: str) -> tuple[str, str, tuple[str, ...]]:
    """Return the name, version and dependencies of a package; no version if it is not installed."""
    try:
        about = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return name, "", ()
    needs = [text for text in about.requires or () if "extra ==" not in text.replace("'", '"')]
    names = tuple(match.group() for text in needs if (match := re.match(r"[\w.-]+", text)))
    return about.name, about.version, names
