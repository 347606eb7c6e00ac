"""Identifies the code of a mechanism: its file, the user's modules that it imports, and the installed packages.

The imports are read from the source of the file and of the user's other modules (see `mechanisms.modules`).  The
packages include their dependencies.  Imports under computed names are not detected.
"""

from __future__ import annotations

import contextlib
import email.parser
import functools
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from dpaudit.mechanisms import members
from dpaudit.mechanisms.command import CommandMechanism
from dpaudit.mechanisms.command_files import files_of_command
from dpaudit.mechanisms.isolated import IsolatedMechanism
from dpaudit.mechanisms.local_files import local_hashes
from dpaudit.mechanisms.modules import file_fingerprint, file_in, imported_files, is_library, module_file, user_folders
from dpaudit.mechanisms.protocol import Batched
from dpaudit.mechanisms.python import PythonMechanism
from dpaudit.mechanisms.requirements import project_name
from dpaudit.text.masking import masked_words

_LEFT_OUT = ("__main__", "dpaudit", "dpaudit_attacks", "dpaudit_reports")  # a result records these separately


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The code of a mechanism outside dpaudit."""

    file: Path | None = None
    sha256: str = ""
    modules: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    used: frozenset[str] = frozenset()
    hashes: Mapping[str, str] = field(default_factory=dict)


def source_of(mechanism: object) -> Source:
    """Identify the code of a mechanism by its file, hashes and versions.

    For a mechanism with an address, the first call after loading fixes the result.  Later edits of the file do not
    change the code that runs.
    """
    if not isinstance(mechanism, PythonMechanism | IsolatedMechanism):
        return _found(mechanism)
    kept: Source | None = mechanism.__dict__.get("_source")
    if kept is not None:
        return kept
    found = _found(mechanism)
    if isinstance(mechanism, IsolatedMechanism) or "loaded" in mechanism.__dict__:
        mechanism.__dict__["_source"] = found
    return found


def _found(mechanism: object) -> Source:
    if isinstance(mechanism, IsolatedMechanism):
        file = file_of(mechanism)
        beside = (
            []
            if file is None
            else sorted(imported_files(file, [file.parent, mechanism.folder.absolute()], loaded=False)[0] - {file})
        )
        others = {str(other): _sha256(other) for other in beside}
        lock = mechanism.installed
        return Source(
            file=file,
            sha256=_sha256(file),
            modules=others,
            packages=mechanism.packages,
            used=_normalised(mechanism.requires),
            hashes=local_hashes(mechanism.requires) if lock is None else lock.hashes,
        )
    if isinstance(mechanism, CommandMechanism):
        return Source(modules=_files_of(mechanism))
    file = file_of(mechanism)
    loaded = mechanism.__dict__.get("loaded") if isinstance(mechanism, PythonMechanism) else mechanism
    called = {name for top in members.libraries(loaded) for name in _distributions(top)}
    if file is None:
        names = called | set(_installed(_module_of(mechanism)))
        return Source(packages=_required(names), used=_normalised(names))
    files, tops = imported_files(file, [*user_folders(), file.parent])
    others = {str(other): _sha256(other) for other in sorted(files - {file})}
    names = called | {name for top in tops for name in _distributions(top)}
    return Source(file=file, sha256=_sha256(file), modules=others, packages=_required(names), used=_normalised(names))


def _normalised(requirements: Iterable[str]) -> frozenset[str]:
    """Return the normalised project names of requirements; paths and options of the installer have none."""
    found = set()
    for one in requirements:
        with contextlib.suppress(ValueError):
            found.add(project_name(one))
    return frozenset(found)


def _files_of(mechanism: CommandMechanism) -> dict[str, str]:
    """Return the hashes of the program's files, except files that options for secrets, such as `--token`, name."""
    words = mechanism.command
    secret = {word for word, shown in zip(words, masked_words(words), strict=True) if word != shown}
    secret |= {word.partition("=")[2] for word in secret}
    return {name: _sha256(path) for name, path in files_of_command(mechanism).items() if name not in secret}


def file_of(mechanism: object) -> Path | None:
    """Return the file with the mechanism's code, or None if there is no file outside installed packages."""
    if isinstance(mechanism, PythonMechanism | IsolatedMechanism):
        address = mechanism.code or mechanism.address
        return _addressed(address, mechanism.folder, isolated=isinstance(mechanism, IsolatedMechanism))
    module = _module_of(mechanism)
    return None if is_library(module) else module_file(module)


def _module_of(mechanism: object) -> str:
    while True:
        if isinstance(mechanism, Batched):
            mechanism = mechanism.function
        elif isinstance(mechanism, functools.partial):
            mechanism = mechanism.func
        elif hasattr(mechanism, "__func__"):
            mechanism = mechanism.__func__
        elif (inner := members.audited_class(mechanism)) is not None:
            mechanism = inner
        else:
            break
    if not (isinstance(mechanism, type) or hasattr(mechanism, "__code__")):
        mechanism = type(mechanism)
    return str(getattr(mechanism, "__module__", ""))


def _addressed(address: str, folder: Path, *, isolated: bool) -> Path | None:
    name = address.rpartition(":")[0]
    if name.endswith(".py"):
        path = (folder / name).resolve()
        return path if path.is_file() else None
    if isolated:  # `find_spec` would import the package of a module in this process
        return file_in(folder, name)
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


def _installed(module: str) -> tuple[str, ...]:
    return _distributions(module.split(".")[0])


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
        try:
            one = metadata.distribution(left.pop())
        except (metadata.PackageNotFoundError, ValueError):
            continue
        name, version, needs = _reported(one)
        if name in found:
            continue
        found[name] = version
        left += needs
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def _reported(package: metadata.Distribution) -> tuple[str, str, tuple[str, ...]]:
    """Return the name, version and dependencies of a package."""
    text = package.read_text("METADATA")
    if text is None:  # an old installation may lack this file
        return package.name, package.version, _needed(package.requires or ())
    return _parsed(text)


@functools.lru_cache(maxsize=1024)
def _parsed(text: str) -> tuple[str, str, tuple[str, ...]]:
    """Return the name, version and dependencies in a METADATA file.  The result is cached by text."""
    lines = email.parser.HeaderParser().parsestr(text)
    return lines["Name"], lines["Version"], _needed(lines.get_all("Requires-Dist", ()))


def _needed(requirements: Iterable[str]) -> tuple[str, ...]:
    needs = [text for text in requirements if "extra ==" not in text.replace("'", '"')]
    return tuple(match.group() for text in needs if (match := re.match(r"[\w.-]+", text)))
