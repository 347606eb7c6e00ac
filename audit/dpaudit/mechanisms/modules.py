"""Modules and their files: which of them are the user's own, and to which others their imports lead.

Imports are read from the source, and files are looked for as Python does it, without importing anything.  So the
answer is the same before and after a mechanism has run, also for an import inside a function.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Any

_OURS = ("dpaudit", "dpaudit_attacks", "dpaudit_reports")
_MAX_FILES = 5_000


def file_fingerprint(path: str | Path) -> str:
    """SHA-256 of a file's bytes.  OSError if it cannot be read."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_library(module_name: str) -> bool:
    """Whether a module is installed, built in, or part of dpaudit, and not the user's own code."""
    if module_name.split(".")[0] in _OURS or module_name in sys.builtin_module_names:
        return True
    file = module_file(module_name)
    if file is None:  # built in; a module of a zip file, or whose file has gone, is the user's own
        spec = getattr(sys.modules.get(module_name), "__spec__", None)
        return spec is not None and spec.origin in (None, "built-in", "frozen") and module_name != "__main__"
    return of_library(file)


def module_file(module_name: str) -> Path | None:
    """The file that an imported module was made from; None if there is none."""
    found = getattr(sys.modules.get(module_name), "__file__", None)
    path = Path(found) if isinstance(found, str) else None
    return path.absolute() if path is not None and path.is_file() else None


def address(value: Any) -> tuple[str, str, Any] | None:
    """Module and qualified name of a function or class, and what is found there; None if it is of no other module.

    What is found is None, or another object, where the name leads to something else.
    """
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return module, name, found


def user_folders() -> list[Path]:
    """The folders that Python searches for modules, without those of installed packages."""
    folders = [Path(entry or ".").absolute() for entry in sys.path]
    return [folder for folder in folders if folder.is_dir() and not of_library(folder)]


def imported_files(file: Path, folders: Sequence[Path], *, loaded: bool = True) -> tuple[set[Path], set[str]]:
    """The files that a file's imports lead to.

    Args:
        file: where to begin.
        folders: where modules are looked for.
        loaded: whether modules count that this process has imported from elsewhere.

    Returns:
        The user's files, `file` included, and the first names of all other modules.
    """
    files, tops, left = {file}, set[str](), [file]
    while left and len(files) < _MAX_FILES:
        for found in _imports(left.pop(), folders, loaded=loaded):
            if isinstance(found, str):
                tops.add(found)
            elif found not in files:
                files.add(found)
                left.append(found)
    return files, tops


def user_files(name: str, folders: Sequence[Path], *, loaded: bool = True) -> list[Path]:
    """The user's files that importing `package.module` runs: also of the packages that it is in; see `imported_files`.

    Empty if it is no module of the user's.
    """
    parts = name.split(".")
    found = [_file_of(".".join(parts[: i + 1]), folders, loaded=loaded) for i in range(len(parts))]
    return [file for file in found if file is not None]


def _imports(file: Path, folders: Sequence[Path], *, loaded: bool) -> Iterator[Path | str]:
    """User's files, and the first names of other modules."""
    try:
        statements = _statements(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in statements:
        if isinstance(node, ast.ImportFrom) and node.level:
            yield from _relative(node, file)
            continue
        for name in _names(node):
            files = user_files(name, folders, loaded=loaded)
            yield from files
            if not files:
                yield name.split(".")[0]


@functools.lru_cache(maxsize=256)
def _statements(code: bytes) -> tuple[ast.AST, ...]:
    """All statements and calls that may import.  A source is parsed once, unless it changes."""
    return tuple(node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom | ast.Call))


def _names(node: ast.AST) -> Iterator[str]:
    """Modules that a statement may import: of `from a import b`, a and a.b."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and node.args:  # importlib.import_module("a.b")
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[0]
        if called in ("import_module", "__import__") and isinstance(first, ast.Constant):
            yield str(first.value)


def _relative(node: ast.ImportFrom, file: Path) -> Iterator[Path]:
    if node.level > len(file.parents):
        return
    base = file.parents[node.level - 1]
    parts = (node.module or "").split(".") if node.module else []
    for name in [".".join([*parts, alias.name]) for alias in node.names]:
        steps = name.split(".")
        yield from (found for i in range(len(steps)) if (found := _in_folder(base, steps[: i + 1])) is not None)
    if (package := _in_folder(base, ["__init__"])) is not None:
        yield package


def _file_of(name: str, folders: Sequence[Path], *, loaded: bool) -> Path | None:
    if loaded and name in sys.modules:
        return None if is_library(name) else module_file(name)
    parts = name.split(".")
    return next((found for folder in folders if (found := _in_folder(folder, parts)) is not None), None)


def _in_folder(folder: Path, parts: Sequence[str]) -> Path | None:
    """The file of a module, as Python finds it there: a package comes before a file of the same name."""
    place = os.path.join(folder, *parts)  # text, since an audit looks for hundreds of files
    for suffix in all_suffixes():
        for path in (f"{place}{os.sep}__init__{suffix}", f"{place}{suffix}"):
            if os.path.isfile(path):
                return Path(path).absolute()
    return None


INSTALLED = frozenset({"site-packages", "dist-packages"})
"""The names of folders that installers write to."""


@functools.lru_cache(maxsize=4096)
def of_library(path: Path) -> bool:
    """Whether a file belongs to Python or to an installed package, of this environment or another one on the path."""
    return not INSTALLED.isdisjoint(path.parts) or any(path.is_relative_to(folder) for folder in _library_folders())


@functools.cache
def _library_folders() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple({Path(paths[name]).absolute() for name in ("stdlib", "platstdlib", "purelib", "platlib")})
