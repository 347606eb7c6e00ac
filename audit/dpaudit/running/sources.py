"""The code of a mechanism: its file, the user's modules that it imports, programs, and packages with dependencies."""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from importlib.machinery import all_suffixes
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from dpaudit.running.command import CommandMechanism
from dpaudit.running.fingerprint import OURS, Fingerprint, fingerprint, is_library, module_file, of_library
from dpaudit.running.mechanisms import Batched, IsolatedMechanism, PythonMechanism
from dpaudit.running.requirements import local_hashes, project_name
from dpaudit.text import hint, masked_words

_IMPORTERS = ("import_module", "__import__")
_LEFT_OUT = ("__main__", *OURS)  # a result records these separately
_UNREADABLE = (OSError, SyntaxError, ValueError, RecursionError, MemoryError)  # of files that are not Python code


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
    if isinstance(mechanism, IsolatedMechanism):
        file, lock = file_of(mechanism), mechanism.installed
        found = set() if file is None else imported_files(file, [file.parent, mechanism.folder.absolute()])[0]
        local = {project_name(one): sha256 for one, sha256 in local_hashes(mechanism.requires).items()}
        source = Source(
            file=file,
            sha256=file_fingerprint(file),
            modules={str(other): file_fingerprint(other) for other in sorted(found) if other != file},
            packages=mechanism.packages,
            used=_normalised(mechanism.requires),
            hashes=local if lock is None else lock.hashes,
        )
    else:
        source = _in_this_process(mechanism, mechanism.__dict__.get("loaded"), None)
    if isinstance(mechanism, IsolatedMechanism) or "loaded" in mechanism.__dict__:
        mechanism.__dict__["_source"] = source
    return source


def _in_this_process(mechanism: object, loaded: object, content: Fingerprint | None) -> Source:
    file, module = file_of(mechanism), _module_of(mechanism)
    if file is not None:
        folders = [Path(entry or ".").absolute() for entry in sys.path]
        own = [folder for folder in folders if folder.is_dir() and not of_library(folder)]
        files, tops = imported_files(file, [*own, file.parent])
    elif content is not None and module == "__main__":
        files, tops = set[Path](), set(content.libraries)
    else:
        files, tops = set[Path](), {module.split(".")[0]}
    named = getattr(loaded, "libraries", ())
    tops |= {name for name in named if isinstance(name, str)} if isinstance(named, tuple) else set()
    names = {name for top in tops for name in _distributions(top)}
    versions: dict[str, str] = {}  # of these packages and of their installed dependencies
    left = sorted(names)
    while left:
        name, version, needs = _installed(left.pop())
        if version and name not in versions:
            versions[name] = version
            left += needs
    return Source(
        file=file,
        sha256=file_fingerprint(file),
        modules={str(other): file_fingerprint(other) for other in sorted(files - {file})},
        packages=dict(sorted(versions.items(), key=lambda item: item[0].lower())),
        used=_normalised(names),
        content=content,
    )


def _normalised(requirements: Iterable[str]) -> frozenset[str]:
    """Return the normalised project names of requirements; paths and options of the installer have none."""
    names = set()
    for requirement in requirements:
        with contextlib.suppress(ValueError):
            names.add(project_name(requirement))
    return frozenset(names)


def _files_of_command(mechanism: CommandMechanism) -> dict[str, str]:
    """Return the hashes of the program and of files and modules that it names, except those of secret options."""
    words, folder = mechanism.command, mechanism.cwd or Path()
    secret = {word for word, masked in zip(words, masked_words(words), strict=True) if word != masked}
    secret |= {word.partition("=")[2] for word in secret}
    program, *others = words
    named = [("program", folder / program if "/" in program else Path(shutil.which(program) or program))]
    values = (value for word in others for value in (word, word.partition("=")[2]))  # such as --params=FILE
    named += [(value, folder / value) for value in values if value]
    files = {name: path for name, path in named if os.path.isfile(path)}
    scripts = [path.absolute() for path in files.values() if path.suffix == ".py" or _is_script(path)]
    for word, name in pairwise(words):
        if word == "-m":
            scripts += module_files(f"{name}.__main__", [folder.absolute()])
    known = {path.absolute() for path in files.values()}
    for path in scripts:
        beside = imported_files(path, [path.parent, folder.absolute()])[0] - known
        files |= {os.path.relpath(other, folder): other for other in sorted(beside)}
    return {name: file_fingerprint(path) for name, path in files.items() if name not in secret}


def _is_script(path: Path) -> bool:
    """Whether the first line of a file marks it as a Python program."""
    with path.open("rb") as file:
        first = file.readline(200)
    return first.startswith(b"#!") and b"python" in first


def file_of(mechanism: object) -> Path | None:
    """Return the file with the mechanism's code, or None if there is no file outside installed packages."""
    if not isinstance(mechanism, PythonMechanism | IsolatedMechanism):
        module = _module_of(mechanism)
        return None if is_library(module) else module_file(module)
    name = (mechanism.code or mechanism.address).rpartition(":")[0]
    if name.endswith(".py"):
        path = (mechanism.folder / name).resolve()
        return path if path.is_file() else None
    if isinstance(mechanism, IsolatedMechanism):  # `find_spec` would import the package of a module in this process
        return next(iter(module_files(name, [mechanism.folder])[::-1]), None)
    if (file := module_file(name)) is not None:
        return file
    try:
        spec = find_spec(name) if name else None
    except (ImportError, ValueError):
        return None
    path = Path(spec.origin) if spec is not None and spec.origin else Path()
    return path.absolute() if path.is_file() else None


def missing_object(path: str, name: str, *, same_python: bool) -> str:
    """Return why a file of Python has no object of this name, as words that follow the file; "" if it may have it."""
    first = name.partition(".")[0]
    try:
        with warnings.catch_warnings(action="ignore"):
            code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
    except _UNREADABLE as error:
        return f"cannot be compiled: {error}" if same_python else ""
    hidden = {"globals", "exec", "setattr", "vars", "__getattr__"} & {*code.co_names}
    if (
        hidden
        or first in code.co_names
        or any("*" in constant for constant in code.co_consts if type(constant) is tuple)
    ):
        return ""
    return f"has no object {first!r}; {hint(first, code.co_names, 'define it at the top level')}"


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


def file_fingerprint(file: Path | None) -> str:
    """Return the SHA-256 of a file's bytes, as 64 hexadecimal digits; "" if there is no readable file."""
    try:
        with open(file or os.devnull, "rb") as stream:
            return "" if file is None else hashlib.file_digest(stream, "sha256").hexdigest()
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


_all_distributions = functools.cache(metadata.packages_distributions)


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


def imported_files(file: Path, folders: Sequence[Path]) -> tuple[set[Path], set[str]]:
    """Return the user's files that importing a file runs, by their sources, and the names of other modules in them."""
    files, others, left = {file}, set[str](), [file]
    while left:
        here = left.pop()
        try:
            imports = _imports_in(here.read_bytes())
        except _UNREADABLE:
            continue
        for level, name in imports:
            top = name.split(".")[0]
            if not level and (top in OURS or top in sys.stdlib_module_names):
                continue
            run = module_files(name, [here.parents[level - 1]] if 0 < level <= len(here.parents) else folders)
            left += [path for path in run if path not in files]
            files.update(run)
            if not run and not level:
                others.add(top)
    return files, others


def module_files(name: str, folders: Sequence[Path]) -> list[Path]:
    """Return the user's files that importing a module runs, including those of its packages, without importing it."""
    parts = name.split(".")
    for folder in folders:
        tried = [_in_folder(folder, parts[: n + 1]) for n in range(len(parts))]
        if files := [file for file in tried if file is not None]:
            return files
    return []


def imported_from(path: Path, name: str) -> str:
    """Return the module from which a file imports a name on its top level."""
    name = name.split(".")[0]
    try:
        left: list[ast.AST] = [ast.parse(path.read_bytes())] if path.is_file() else []
    except _UNREADABLE:
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


@functools.lru_cache(maxsize=1024)
def _imports_in(code: bytes) -> tuple[tuple[int, str], ...]:
    """Return the modules that code may import, and how many folders above it their names start; 0 for `sys.path`."""
    imports: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            imports += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            before = f"{node.module}." if node.module else ""
            imports += [(node.level, before + alias.name) for alias in node.names]
            imports += [(node.level, "__init__")] if node.level else []
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _IMPORTERS:
            imports += [(0, str(name.value)) for name in node.args[:1] if isinstance(name, ast.Constant)]
    return tuple(imports)


def _in_folder(folder: Path, parts: Sequence[str]) -> Path | None:
    """Return the file of a module in a folder.  As in Python, a package precedes a file of the same name."""
    place = os.path.join(folder, *parts)  # text, because Path is slower and an audit searches for hundreds of files
    for suffix in all_suffixes():
        for path in (f"{place}{os.sep}__init__{suffix}", f"{place}{suffix}"):
            if os.path.isfile(path):
                return Path(path).absolute()
    return None
