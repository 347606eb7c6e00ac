"""Computes fingerprints of datasets, functions and objects: equal for equal content, also in another process.

A fingerprint is the SHA-256 of what `values.ContentPickler` writes, which never depends on `repr`.  In addition,

    a function    counts by its code, constants, defaults and closure, and by the global values that it reads
    a class       counts by its bases, methods and attributes
    a dataclass   counts by its fields, and any other object by what pickling gives

What belongs to an installed library counts by its name, since versions are compared separately.  Random generators,
locks and names of temporary folders do not count.  An object that cannot be pickled counts by its type, which is named.
"""

from __future__ import annotations

import array
import contextlib
import copyreg
import dataclasses
import functools
import hashlib
import logging
import os
import pickle
import random
import re
import sys
import sysconfig
import tempfile
import threading
import types
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np

from dpaudit.values import PLAIN, ContentPickler, joined

OURS = ("dpaudit", "dpaudit_attacks", "dpaudit_reports")
_WITHOUT_CONTENT = (
    np.random.Generator, np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence, random.Random,
    type(threading.Lock()), type(threading.RLock()), logging.Logger,
)  # fmt: skip
_WRAPPERS = (property, staticmethod, classmethod, functools.cached_property, functools._lru_cache_wrapper)
_WRAPPED = ("fget", "fset", "fdel", "func", "__wrapped__")  # attributes with the functions of a wrapper
_DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_TEMPORARY = re.compile(re.escape(tempfile.gettempdir()) + r"/(\S*/)?(tmp\w{8}\b)?")
_DEPTH = 3  # maximum number of modules between a function and a value that it reads from another module


class Fingerprint(NamedTuple):
    """The fingerprint of a value, the types of objects in it that could not be compared, and its libraries."""

    sha256: str
    not_compared: frozenset[str]
    libraries: frozenset[str]  # top-level modules


def fingerprint(value: object) -> Fingerprint:
    """Return the fingerprint of a value."""
    sha256 = hashlib.sha256()
    walk = _Walk(types.SimpleNamespace(write=sha256.update))
    try:
        walk.dump(value)
    except Exception:  # pickling runs code of the value's classes; a value may hold itself, or be nested too deeply
        return Fingerprint("", frozenset([_name(type(value))]), frozenset(walk.libraries))
    return Fingerprint(sha256.hexdigest(), frozenset(walk.not_compared), frozenset(walk.libraries))


def same_content(a: Any, b: Any) -> bool:
    """Whether two values certainly have the same type and content."""
    if type(a) is not type(b):
        return False
    if type(a) is list:  # records that two lists share need not be read
        others = ((x, y) for x, y in zip(a, b, strict=False) if x is not y and type(x) in (dict, list, tuple))
        if len(a) != len(b) or any(fingerprint(x) != fingerprint(y) for x, y in others):
            return False
    first = fingerprint(a)
    return not first.not_compared and first == fingerprint(b)


class _Walk(ContentPickler):
    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.not_compared: set[str] = set()
        self.libraries: set[str] = set()
        # functions, classes and objects by id, kept so that ids are unique
        self._met: dict[int, tuple[int, object]] = {}

    def sort_key(self, item: object) -> bytes:
        content = fingerprint(item)
        self.not_compared |= content.not_compared
        return content.sha256.encode()

    def persistent_id(self, value: Any) -> tuple[object, ...] | None:
        kind = type(value)
        if kind in PLAIN:
            return _short(value) if kind in (str, list, tuple) else None
        if isinstance(value, _WITHOUT_CONTENT) and is_library(kind.__module__):
            return ("kind", _name(kind))
        if (known := super().persistent_id(value)) is not None:
            return known
        if isinstance(value, types.CodeType):
            about = (value.co_flags, value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount)
            names = (value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
            return ("code", value.co_code, value.co_exceptiontable, value.co_consts, about, names)
        if isinstance(value, _WRAPPERS):
            return (_name(kind), *(getattr(value, name, None) for name in _WRAPPED))
        if isinstance(value, PurePath | types.MappingProxyType):
            return (_name(kind), str(value) if isinstance(value, PurePath) else dict(value))
        if isinstance(value, types.ModuleType):
            self._library(value.__name__)
            return ("module", value.__name__)
        if isinstance(value, types.FunctionType | type) or dataclasses.is_dataclass(value):
            return self._again(value) or self._described(value)
        return None

    def reducer_override(self, value: Any) -> Any:
        """Return how an object is pickled, or its type if it cannot be pickled."""
        if again := self._again(value):
            return tuple, (again,)
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            reduced: Any = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL) if reduce is None else reduce(value)
        except Exception:
            self.not_compared.add(_name(type(value)))
            reduced = _name(type(value))
        return (str, (f"{getattr(value, '__module__', '')} {reduced}",)) if isinstance(reduced, str) else reduced

    def _again(self, value: object) -> tuple[object, ...] | None:
        """Return the number of an object that was met before."""
        if id(value) in self._met:
            return ("again", self._met[id(value)][0])
        self._met[id(value)] = len(self._met), value
        return None

    def _described(self, value: Any) -> tuple[object, ...]:
        if not isinstance(value, types.FunctionType | type):
            fields = [(field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)]
            return ("dataclass", type(value), fields)
        module, name = str(value.__module__), value.__qualname__
        if self._library(module):  # `functools.wraps` gives a user's function the names of a library's function
            known = address(value)
            if "<locals>" not in name if isinstance(value, type) else known is not None and known[2] is value:
                return ("name", module, name)
        if isinstance(value, type):
            attributes = [
                (attribute, content)
                for attribute, content in vars(value).items()
                if not isinstance(content, _DESCRIPTORS)
                and (callable(content) or not attribute.startswith(("__", "_abc_")))
            ]
            return ("class", name, value.__bases__, attributes)
        code, names = value.__code__, _names(value.__code__)
        space = {} if is_library(str(value.__globals__.get("__name__"))) else value.__globals__
        filled: dict[str, object] = dict.fromkeys(code.co_freevars, "empty")
        for variable, cell in zip(code.co_freevars, value.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # the cell is empty
                filled[variable] = cell.cell_contents
        read = _read(names | filled.keys(), filled), _read(names, space)
        return ("function", code, value.__defaults__, value.__kwdefaults__, *read, vars(value))

    def _library(self, module: str) -> bool:
        if library := is_library(module):
            self.libraries.add(module.split(".")[0])
        return library


def _short(value: Any) -> tuple[object, ...] | None:
    """Return a text without the name of a temporary folder, and equal kinds of items in one piece."""
    if type(value) is str:
        text = _TEMPORARY.sub("", value) if "/tmp" in value else value
        return None if text == value else ("temporary", text)
    kinds = set(map(type, value))
    if kinds == {float}:
        return type(value).__name__, "floats", array.array("d", value).tobytes()
    if kinds == {int} and min(value) >= -(2**63) and max(value) < 2**63:
        return type(value).__name__, "ints", array.array("q", value).tobytes()
    if kinds == {str} and len(value) > 256:
        return type(value).__name__, *joined(list(value))
    return None


def _names(code: types.CodeType) -> set[str]:
    """Return all names of global values and attributes in the code of a function and its nested functions."""
    return set(code.co_names).union(*(_names(part) for part in code.co_consts if isinstance(part, types.CodeType)))


def _read(names: set[str], space: Mapping[str, object], depth: int = _DEPTH) -> list[object]:
    """Return the values that code reads from a namespace, and from the user's modules in it."""
    read: list[object] = []
    for name in sorted(names & space.keys()):
        read += [name, value := space[name]]
        if isinstance(value, types.ModuleType) and depth and not is_library(value.__name__):
            read.append(_read(names, vars(value), depth - 1))
    return read


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def is_library(module_name: str) -> bool:
    """Whether a module is installed, built in or part of dpaudit, rather than the user's own code."""
    if module_name.split(".")[0] in OURS or module_name in sys.builtin_module_names:
        return True
    file = module_file(module_name)
    if file is None:  # a built-in module, or a user's module in a zip file or with a deleted file
        spec = getattr(sys.modules.get(module_name), "__spec__", None)
        return spec is not None and spec.origin in (None, "built-in", "frozen") and module_name != "__main__"
    return of_library(file)


def module_file(module_name: str) -> Path | None:
    """Return the file of an imported module, or None if the module is not imported or has no file."""
    file = getattr(sys.modules.get(module_name), "__file__", None)
    return Path(file).absolute() if isinstance(file, str) and os.path.isfile(file) else None


def address(value: Any) -> tuple[str, str, Any] | None:
    """Return the module and qualified name of a function or class, and the object there, which may differ; or None."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    there: Any = sys.modules.get(module)
    for part in name.split("."):
        there = getattr(there, part, None)
    return module, name, there


@functools.cache
def of_library(path: Path) -> bool:
    """Whether a file belongs to Python or to an installed package, in this or another environment."""
    paths = sysconfig.get_paths()
    folders = {Path(paths[name]).absolute() for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return bool({"site-packages", "dist-packages"} & {*path.parts} or folders & {path, *path.parents})
