"""Where the code of a mechanism is: its file, the user's modules that it imports, and the installed packages.

Imports are read from the source, with the modules of the user that they lead to.  So the answer does not depend on
what was imported before.  Of the packages found, those that they require are included.  Imports that the code makes
under computed names are not seen.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpaudit.mechanisms.fingerprint import file_fingerprint, is_library, module_file
from dpaudit.mechanisms.isolated import IsolatedMechanism
from dpaudit.mechanisms.loading import PythonMechanism
from dpaudit.mechanisms.protocol import Batched

_MOST_FILES = 500
_LEFT_OUT = ("__main__", "dpaudit", "dpaudit_attacks", "dpaudit_reports")  # reported elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The code of a mechanism outside of dpaudit."""

    file: Path | None = None  # absolute
    sha256: str = ""  # of the file when this was made; "" if there is none
    modules: Mapping[str, str] = field(default_factory=dict)  # SHA-256 by path, of the user's other modules
    packages: Mapping[str, str] = field(default_factory=dict)  # versions by name, of installed packages


def source_of(mechanism: Any) -> Source:
    """The code of a mechanism.

    Args:
        mechanism: as in `audit`.  The packages of an isolated one are those of its environment, which is built now.
    """
    if isinstance(mechanism, IsolatedMechanism):
        file = _addressed(mechanism.address, mechanism.folder)
        return Source(file=file, sha256=_sha256(file), packages=mechanism.packages)
    file = file_of(mechanism)
    if file is None:
        return Source(packages=_required(set(_installed(_module_of(mechanism)))))
    files, tops = _imports(file)
    others = {str(other): _sha256(other) for other in sorted(files - {file})}
    names = {name for top in tops for name in _distributions(top)}
    return Source(file=file, sha256=_sha256(file), modules=others, packages=_required(names))


def file_of(mechanism: Any) -> Path | None:
    """The file that the mechanism's own code is in; None if it has none, or belongs to an installed package."""
    if isinstance(mechanism, PythonMechanism | IsolatedMechanism):
        return _addressed(mechanism.address, mechanism.folder)
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
        else:
            break
    if not (isinstance(mechanism, type) or hasattr(mechanism, "__code__")):
        mechanism = type(mechanism)
    return str(getattr(mechanism, "__module__", ""))


def _addressed(address: str, folder: Path) -> Path | None:
    name = address.rpartition(":")[0]
    if name.endswith(".py"):
        path = (folder / name).resolve()
        return path if path.is_file() else None
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


def _imports(file: Path) -> tuple[set[Path], set[str]]:
    """The user's files that `file` leads to, itself included, and the first names of all other modules."""
    files, tops, left = {file}, set[str](), [file]
    while left and len(files) < _MOST_FILES:
        for name in _names(left.pop()):
            if name in sys.modules and not is_library(name):
                other = module_file(name)
                if other is not None and other not in files:
                    files.add(other)
                    left.append(other)
            else:
                tops.add(name.split(".")[0])
    return files, tops


def _names(file: Path) -> Iterator[str]:
    try:
        statements = _statements(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            module = _absolute(node, file)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names if f"{module}.{alias.name}" in sys.modules)


@functools.lru_cache(maxsize=64)
def _statements(code: bytes) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """All import statements.  A file is parsed once, unless it changes."""
    return tuple(node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom))


def _absolute(node: ast.ImportFrom, file: Path) -> str:
    if not node.level:
        return node.module or ""
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == str(file):
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            parts = package.split(".")[: len(package.split(".")) - node.level + 1]
            return ".".join([*parts, *([node.module] if node.module else [])])
    return ""


def _installed(module: str) -> tuple[str, ...]:
    return _distributions(module.split(".")[0])


@functools.cache
def _distributions(top: str) -> tuple[str, ...]:
    """Names of the installed packages that a module of this first name belongs to."""
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
    """Versions of these packages, and of all that they require and that is installed."""
    found: dict[str, str] = {}
    left = sorted(names)
    while left:
        try:
            one = metadata.distribution(left.pop())
        except (metadata.PackageNotFoundError, ValueError):
            continue
        if one.name in found:
            continue
        found[one.name] = one.version
        needs = [text for text in one.requires or () if "extra ==" not in text.replace("'", '"')]
        left += [match.group() for text in needs if (match := re.match(r"[\w.-]+", text))]
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))
