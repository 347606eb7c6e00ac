"""Finds the files of modules, recognises the user's own modules, and follows their imports.

The imports are read from the source, and the files are found by Python's rules.  No module is imported.  So the result
is the same before and after the run of a mechanism, even for an import inside a function.
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

from dpaudit.values import Foreign

_OURS = ("dpaudit", "dpaudit_attacks", "dpaudit_reports")
_MAX_FILES = 5_000


def file_fingerprint(path: str | Path) -> str:
    """Return the SHA-256 of a file's bytes, as 64 hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_library(module_name: str) -> bool:
    """Whether a module is installed, built in or part of dpaudit, rather than the user's own code."""
    if module_name.split(".")[0] in _OURS or module_name in sys.builtin_module_names:
        return True
    file = module_file(module_name)
    if file is None:  # a built-in module, or a user's module in a zip file or with a deleted file
        spec = getattr(sys.modules.get(module_name), "__spec__", None)
        return spec is not None and spec.origin in (None, "built-in", "frozen") and module_name != "__main__"
    return of_library(file)


def module_file(module_name: str) -> Path | None:
    """Return the file of an imported module, or None if the module is not imported or has no file."""
    found = getattr(sys.modules.get(module_name), "__file__", None)
    path = Path(found) if isinstance(found, str) else None
    return path.absolute() if path is not None and path.is_file() else None


def address(value: Foreign) -> tuple[str, str, Foreign] | None:
    """Look up a function or class by its module and qualified name.

    Returns:
        The module, the qualified name, and the object that the name leads to, which may differ from `value`.  The
        result is None if `value` has no such names or belongs to `__main__`.
    """
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    found: Foreign = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return module, name, found


def user_folders() -> list[Path]:
    """Return the folders in which Python searches for modules, except the folders of installed packages."""
    folders = [Path(entry or ".").absolute() for entry in sys.path]
    return [folder for folder in folders if folder.is_dir() and not of_library(folder)]


def imported_files(file: Path, folders: Sequence[Path], *, loaded: bool = True) -> tuple[set[Path], set[str]]:
    """Return all files of the user that a file imports, directly or indirectly."""
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
    """Return the user's files that importing a module runs, including files of parent packages."""
    parts = name.split(".")
    found = [_file_of(".".join(parts[: i + 1]), folders, loaded=loaded) for i in range(len(parts))]
    return [file for file in found if file is not None]


def file_in(folder: Path, name: str) -> Path | None:
    """Return the file of a module in a folder without importing the module, or None if there is no such file."""
    parts = name.split(".")
    return _in_folder(folder, parts) if all(part.isidentifier() for part in parts) else None


def _imports(file: Path, folders: Sequence[Path], *, loaded: bool) -> Iterator[Path | str]:
    """Yield the user's files that a file imports, and the top-level names of other modules."""
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
    """Return all import statements and all calls, because calls may import modules.  The result is cached by source."""
    return tuple(node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom | ast.Call))


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the modules that a statement may import, such as a.b for `from a import b`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and node.args:  # for example importlib.import_module("a.b")
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
    """Return the file of a module in a folder.  As in Python, a package precedes a file of the same name."""
    place = os.path.join(folder, *parts)  # text, because Path is slower and an audit searches for hundreds of files
    for suffix in all_suffixes():
        for path in (f"{place}{os.sep}__init__{suffix}", f"{place}{suffix}"):
            if os.path.isfile(path):
                return Path(path).absolute()
    return None


INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Names of the folders in which installers put packages."""


@functools.lru_cache(maxsize=4096)
def of_library(path: Path) -> bool:
    """Whether a file belongs to Python or to an installed package, in this or another environment."""
    return not INSTALLED.isdisjoint(path.parts) or any(path.is_relative_to(folder) for folder in _library_folders())


@functools.cache
def _library_folders() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple({Path(paths[name]).absolute() for name in ("stdlib", "platstdlib", "purelib", "platlib")})
