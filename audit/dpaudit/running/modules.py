"""Finds the files of modules, recognises the user's own modules, and follows their imports without importing."""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import sys
import sysconfig
from collections.abc import Sequence
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Any

_IMPORTERS = ("import_module", "__import__")
_OURS = ("dpaudit", "dpaudit_attacks", "dpaudit_reports")


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


def address(value: Any) -> tuple[str, str, Any] | None:
    """Return the module and qualified name of a function or class, and the object there, which may differ; or None."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return module, name, found


def user_folders() -> list[Path]:
    """Return the folders in which Python searches for modules, except the folders of installed packages."""
    folders = [Path(entry or ".").absolute() for entry in sys.path]
    return [folder for folder in folders if folder.is_dir() and not of_library(folder)]


def imported_files(file: Path, folders: Sequence[Path]) -> tuple[set[Path], set[str]]:
    """Return the user's files that importing a file runs, by their sources, and the names of other modules in them."""
    files, others, left = {file}, set[str](), [file]
    while left:
        for level, name in _imports(here := left.pop()):
            top = name.split(".")[0]
            if not level and (top in _OURS or top in sys.stdlib_module_names):
                continue
            found = module_files(name, [here.parents[level - 1]] if 0 < level <= len(here.parents) else folders)
            left += [one for one in found if one not in files]
            files.update(found)
            if not found and not level:
                others.add(top)
    return files, others


def module_files(name: str, folders: Sequence[Path]) -> list[Path]:
    """Return the user's files that importing a module runs, including those of its packages, without importing it."""
    parts = name.split(".")
    for folder in folders:
        tried = [_in_folder(folder, parts[: n + 1]) for n in range(len(parts))]
        if found := [file for file in tried if file is not None]:
            return found
    return []


def imported_from(path: Path, name: str) -> str:
    """Return the module from which a file imports a name on its top level."""
    name = name.split(".")[0]
    try:
        left: list[ast.AST] = [ast.parse(path.read_bytes())] if path.is_file() else []
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    while left:
        node = left.pop()
        if isinstance(node, ast.ImportFrom) and any((one.asname or one.name) in (name, "*") for one in node.names):
            return "." * node.level + (node.module or "")
        if isinstance(node, ast.Import):
            for one in node.names:
                if (one.asname or one.name.partition(".")[0]) == name:
                    return one.name
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            left += ast.iter_child_nodes(node)
    return ""


def _imports(file: Path) -> tuple[tuple[int, str], ...]:
    try:
        return _imports_in(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


@functools.lru_cache(maxsize=1024)
def _imports_in(code: bytes) -> tuple[tuple[int, str], ...]:
    """Return the modules that code may import, and how many folders above it their names start; 0 for `sys.path`."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found += [(0, one.name) for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            before = f"{node.module}." if node.module else ""
            found += [(node.level, before + one.name) for one in node.names]
            found += [(node.level, "__init__")] if node.level else []
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _IMPORTERS:
            found += [(0, str(one.value)) for one in node.args[:1] if isinstance(one, ast.Constant)]
    return tuple(found)


def _in_folder(folder: Path, parts: Sequence[str]) -> Path | None:
    """Return the file of a module in a folder.  As in Python, a package precedes a file of the same name."""
    place = os.path.join(folder, *parts)  # text, because Path is slower and an audit searches for hundreds of files
    for suffix in all_suffixes():
        for path in (f"{place}{os.sep}__init__{suffix}", f"{place}{suffix}"):
            if os.path.isfile(path):
                return Path(path).absolute()
    return None


_INSTALLED = frozenset({"site-packages", "dist-packages"})  # folders in which installers put packages


@functools.lru_cache(maxsize=4096)
def of_library(path: Path) -> bool:
    """Whether a file belongs to Python or to an installed package, in this or another environment."""
    return not _INSTALLED.isdisjoint(path.parts) or any(path.is_relative_to(folder) for folder in _library_folders())


@functools.cache
def _library_folders() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple({Path(paths[name]).absolute() for name in ("stdlib", "platstdlib", "purelib", "platlib")})
