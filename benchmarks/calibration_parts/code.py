"""Digests of source code, by which audits of different versions are told apart."""

from __future__ import annotations

import ast
import hashlib
import platform
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import dpaudit
import dpaudit_attacks

BENCHMARKS = Path(__file__).resolve().parent.parent
PACKAGES = [Path(package.__path__[0]).resolve() for package in (dpaudit, dpaudit_attacks)]
# packages whose versions may change the outcome of an audit with a seed
LIBRARIES = ("numpy", "scipy", "scikit-learn")
_LENGTH = 12  # hexadecimal digits of a digest


def versions() -> dict[str, str]:
    """Return the version of dpaudit, the digest of its code, and the versions of Python and of libraries."""
    return {
        "dpaudit": metadata.version("dpaudit"),
        "code": digest(file for folder in PACKAGES for file in folder.rglob("*.py")),
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: metadata.version(name) for name in LIBRARIES},
    }


def digest_of_benchmarks(names: Iterable[str]) -> str:
    """Return the digest of files in the folder `benchmarks`."""
    return digest(BENCHMARKS / name for name in names)


def digest(files: Iterable[Path]) -> str:
    """Return a digest of Python files that comments, docstrings and format do not affect."""
    total = hashlib.sha256()
    for file in sorted(files):
        total.update(f"{file.parent.name}/{file.name}\n{_without_docstrings(file)}\n".encode())
    return total.hexdigest()[:_LENGTH]


def newest(names: Iterable[str] = ()) -> float:
    """Return when a source file of dpaudit, or one of the given files of `benchmarks`, was last changed, in seconds."""
    files = [*(file for folder in PACKAGES for file in folder.rglob("*.py")), *(BENCHMARKS / name for name in names)]
    return max(file.stat().st_mtime for file in files)


def _without_docstrings(file: Path) -> str:
    tree = ast.parse(file.read_bytes())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)
