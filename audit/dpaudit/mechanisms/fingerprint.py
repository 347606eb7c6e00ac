"""Computes fingerprints of datasets, functions and objects.  Fingerprints are equal only for equal content.

A fingerprint is a SHA-256 over type and content, and never over `repr`, which shortens arrays and data frames.
Numbers, text, bytes, dates, containers, numpy arrays, data frames and tensors have fingerprints.  Other objects have
fingerprints that cover:

    a function    its compiled code, constants, defaults, closure, and the global names that the code reads
    a class       its methods and attributes, and its bases
    an object     its class and all its attributes
    a module      its name, the SHA-256 of its file and, for a user's module, the values that the code reads

A function or class of an installed library is represented by its address and the SHA-256 of its module's file.
The state of a random generator is left out, because it does not change the distribution of the outputs.
A value with hidden state has no fingerprint and raises `Unknowable`.  Hidden state is, for example, an open file or a
pointer of a compiled library.
"""

from __future__ import annotations

import array
import builtins
import collections
import enum
import functools
import logging
import random
import re
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dpaudit.mechanisms.attributes import attributes
from dpaudit.mechanisms.code_names import attribute_names, global_names, imported_names
from dpaudit.mechanisms.digests import Unknowable, address_of, digest, simple_content
from dpaudit.mechanisms.foreign_content import foreign_content
from dpaudit.mechanisms.modules import (
    file_fingerprint,
    imported_files,
    is_library,
    module_file,
    user_files,
    user_folders,
)
from dpaudit.values import Foreign
from dpaudit.values.content import joined

__all__ = ["Unknowable", "fingerprint"]

_LOCK, _RLOCK = type(threading.Lock()), type(threading.RLock())
_MANY_TEXTS = 256  # from this number on, the texts of a list are digested together, which is faster


def fingerprint(value: object, what: str = "it") -> str:
    """Return the SHA-256 of the type and the content of a value, as 64 hexadecimal digits."""
    try:
        return _Walk().token(value, what).hex()
    except RecursionError:
        raise Unknowable(f"{what} is nested too deeply") from None


@functools.cache
def _file_token(path: Path, modified: int, size: int) -> str:
    return file_fingerprint(path)


class _Walk:
    """One walk through a value and all its parts, which yields a tree of SHA-256 digests."""

    def __init__(self) -> None:
        # Digests of functions and classes by id; the reference keeps the id from being reused.
        self._known: dict[tuple[int, bool], tuple[object, bytes]] = {}
        self._partly = False  # whether values that raise `Unknowable` are digested by `_rest`
        self._path: list[int] = []  # ids of the enclosing containers, functions and objects, outermost first

    def token(self, value: object, where: str) -> bytes:
        """Return the digest of one value."""
        if isinstance(value, np.ndarray | np.generic):
            return self._numpy(value, where)
        kind = type(value)
        simple = simple_content(value)
        if simple is not None:
            return digest(kind.__name__, simple)
        if (id(value), self._partly) in self._known:
            return self._known[id(value), self._partly][1]
        if id(value) in self._path:
            return digest("cycle", str(len(self._path) - self._path.index(id(value))).encode())
        self._path.append(id(value))
        try:
            found = self._compound(value, where)
        except Unknowable:
            if not self._partly:
                raise
            found = self._rest(value, where)
        finally:
            self._path.pop()
        if isinstance(value, types.FunctionType | type):
            self._known[id(value), self._partly] = value, found
        return found

    def _rest(self, value: object, where: str) -> bytes:
        """Digest a value that raises `Unknowable`: its type and, if its class is the user's, its attributes."""
        held = {} if is_library(type(value).__module__) else getattr(value, "__dict__", {})
        parts = [part for name in sorted(held) for part in (name.encode(), self.token(held[name], where))]
        return digest("partly", address_of(type(value)).encode(), *parts)

    def _compound(self, value: object, where: str) -> bytes:
        match value:
            case types.FunctionType():
                return self._function(value)
            case types.CodeType():
                return self._code(value, where)
            case types.ModuleType():
                return self._module(value, where)
            case types.MethodType():
                return self._many("method", [value.__func__, value.__self__], where)
            case functools.partial():
                return self._many("partial", [value.func, value.args, value.keywords, vars(value)], where)
            case types.BuiltinFunctionType() if not isinstance(value.__self__, types.ModuleType | None):
                return self._many("bound", [value.__self__, value.__name__], where)
            case types.BuiltinFunctionType() | types.MethodDescriptorType() | types.WrapperDescriptorType():
                module = str(getattr(value, "__module__", ""))
                return digest("builtin", module.encode(), value.__qualname__.encode())
            case np.ufunc() if _is_of_numpy(value):
                return digest("ufunc", str(value.__name__).encode())
            case type():
                return self._class(value, where)
        found = self._plain(value, where)
        return found if found is not None else self._container(value, where)

    def _plain(self, value: object, where: str) -> bytes | None:
        """Return the digest of a generator, logger or wrapper, or None for any other object."""
        match value:
            case np.random.Generator() | np.random.RandomState():
                bits = getattr(value, "bit_generator", None)
                return digest("generator", type(value).__name__.encode(), type(bits).__name__.encode())
            case random.Random() if type(value) in (random.Random, random.SystemRandom):
                return digest("generator", type(value).__name__.encode())
            case logging.Logger():
                return digest("logger", value.name.encode())
            case re.Pattern():
                return self._many("pattern", [value.pattern, value.flags], where)
            case _LOCK() | _RLOCK():  # a lock has no content
                return digest("lock", type(value).__name__.encode())
            case functools._lru_cache_wrapper():  # what it has kept is not compared
                return self._many("lru_cache", [value.__wrapped__, value.cache_parameters()], where)
            case staticmethod() | classmethod():
                return self._many(type(value).__name__, [value.__func__], where)
            case property():
                return self._many("property", [value.fget, value.fset, value.fdel], where)
            case types.MappingProxyType():
                return self._many("mappingproxy", [dict(value)], where)
            case functools.cached_property():
                return self._many("cached_property", [value.func], where)
        return None

    def _container(self, value: Foreign, where: str) -> bytes:
        kind = type(value)
        if isinstance(value, list | tuple) and kind in (list, tuple):
            return digest(kind.__name__, *self._items(value, where))
        if kind is dict:
            return digest("dict", *(self.token(part, where) for item in value.items() for part in item))
        if kind in (collections.OrderedDict, collections.Counter):
            return self._many(kind.__name__, [dict(value)], where)
        if kind is collections.defaultdict:
            return self._many("defaultdict", [value.default_factory, dict(value)], where)
        if kind is collections.deque:
            return self._many("deque", [value.maxlen, list(value)], where)
        if kind in (set, frozenset):
            return digest(kind.__name__, *sorted(self.token(item, where) for item in value))
        if isinstance(value, enum.Enum):
            return digest("enum", self.token(kind, where), value.name.encode())
        if isinstance(value, tuple) and hasattr(kind, "_fields") and kind.__basicsize__ == tuple.__basicsize__:
            return digest("namedtuple", self.token(kind, where), *self._items(value, where))
        found = foreign_content(value, where, self._many)
        return found if found is not None else self._instance(value, where)

    def _items(self, value: list[Foreign] | tuple[Foreign, ...], where: str) -> Iterator[bytes]:
        kinds = set(map(type, value))
        if kinds == {float}:
            yield digest("floats", array.array("d", value).tobytes())
        elif kinds == {int} and min(value) >= -(2**63) and max(value) < 2**63:
            yield digest("ints", array.array("q", value).tobytes())
        elif kinds == {str} and len(value) >= _MANY_TEXTS:
            yield digest("texts", *joined([str(text) for text in value]))
        else:
            yield from (self.token(item, where) for item in value)

    def _numpy(self, value: Foreign, where: str) -> bytes:
        if isinstance(value, np.ma.MaskedArray):
            return self._many("masked", [value.data, np.ma.getmaskarray(value), value.fill_value], where)
        if isinstance(value, np.ndarray) and type(value) not in (np.ndarray, np.matrix, np.recarray, np.memmap):
            raise Unknowable(f"{where} holds a {address_of(type(value))}, whose content cannot be compared")
        if value.dtype.hasobject:
            if value.dtype.names:
                raise Unknowable(f"{where} holds a numpy array of records with Python objects")
            return digest("array of objects", str(value.shape).encode(), *self._items(value.ravel().tolist(), where))
        about = (type(value).__name__, repr(value.dtype), value.dtype.str, str(value.shape))
        return digest("numpy", *(part.encode() for part in about), np.ascontiguousarray(value).tobytes())

    def _instance(self, value: object, where: str) -> bytes:
        held = attributes(value)
        if held is None:
            raise Unknowable(f"{where} holds a {address_of(type(value))}, whose content cannot be compared")
        parts = [self.token(type(value), where)]
        for name in sorted(held):
            parts += [name.encode(), self.token(held[name], f"the attribute {name} of {where}")]
        return digest("object", *parts)

    def _function(self, function: types.FunctionType) -> bytes:
        where = f"the function {function.__qualname__}"
        if self._is_address(function):
            return self._address(function)
        parts = [self._code(function.__code__, where)]
        for words, held in (("default", function.__defaults__), ("default", function.__kwdefaults__)):
            parts.append(self.token(held, f"a {words} of {where}"))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                content = cell.cell_contents
            except ValueError:
                parts.append(digest("empty"))
            else:
                parts.append(self.token(content, f"the variable {name} of {where}"))
                parts += self._taken(content, attribute_names(function.__code__))
        extra = {name: held for name, held in vars(function).items() if name != "__wrapped__"}
        parts.append(self.token(extra, f"an attribute of {where}"))
        parts += self._globals(function.__code__, function.__globals__, where)
        return digest("function", *parts)

    def _globals(self, code: types.CodeType, names: dict[str, object], where: str) -> Iterator[bytes]:
        wanted = attribute_names(code)
        for name in sorted(global_names(code) & names.keys()):
            yield digest(name, self._read(names[name], names, f"the global {name} of {where}"))
            yield from self._taken(names[name], wanted)
        for name in sorted(imported_names(code)):
            for file in user_files(name, user_folders()):
                for other in sorted(imported_files(file, [*user_folders(), file.parent])[0]):
                    yield digest(name, file_fingerprint(other).encode())
            yield from self._taken(sys.modules.get(name), wanted)

    def _read(self, value: object, names: dict[str, object], where: str) -> bytes:
        """Return the digest of a value that code reads from a module with the namespace `names`.

        A value that raises `Unknowable` is represented by the module's file, which creates the value on import, and by
        those parts of the value that have a fingerprint.  The parts are included because the value may depend on
        command-line arguments, or may have changed since the import.
        """
        try:
            return self.token(value, where)
        except Unknowable:
            file = module_file(str(names.get("__name__")))
            if file is None:
                raise
        before, self._partly = self._partly, True
        try:
            return digest("of a file", file_fingerprint(file).encode(), self.token(value, where))
        finally:
            self._partly = before

    def _taken(self, value: object, wanted: set[str], depth: int = 5) -> Iterator[bytes]:
        """Yield digests of the values that code reads from a user's module, because the values may have changed."""
        if not isinstance(value, types.ModuleType) or is_library(value.__name__) or not depth:
            return
        for name in sorted(wanted & vars(value).keys()):
            found = vars(value)[name]
            yield digest(name, self._read(found, vars(value), f"{name} of the module {value.__name__}"))
            yield from self._taken(found, wanted, depth - 1)

    def _code(self, code: types.CodeType, where: str) -> bytes:
        about = (code.co_flags, code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        return digest(
            "code",
            code.co_code,
            code.co_exceptiontable,
            repr(about).encode(),
            repr(names).encode(),
            *(self.token(part, where) for part in code.co_consts),
        )

    def _module(self, module: types.ModuleType, where: str) -> bytes:
        name = module.__name__
        if name == "__main__":
            raise Unknowable(f"{where} holds the module __main__")
        if not is_library(name) and module_file(name) is None:
            raise Unknowable(f"{where} holds the module {name}, which has no file")
        return digest("module", name.encode(), self._file_of(name), str(vars(module).get("__version__")).encode())

    def _class(self, cls: type, where: str) -> bytes:
        if self._is_address(cls):
            return self._address(cls)
        parts = [address_of(cls).encode(), *(self.token(base, where) for base in cls.__bases__)]
        for name, held in sorted(vars(cls).items()):
            if name in _NOT_OF_A_CLASS or isinstance(held, types.GetSetDescriptorType | types.MemberDescriptorType):
                continue
            try:
                parts.append(digest(name, self.token(held, f"the attribute {name} of the class {cls.__qualname__}")))
            except Unknowable:
                file = module_file(cls.__module__)
                if file is None:
                    raise
                parts.append(digest(name, file_fingerprint(file).encode()))
        return digest("class", *parts)

    @staticmethod
    def _is_address(value: object) -> bool:
        """Whether a module of a library holds this function or class under its `__qualname__`."""
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        if not isinstance(module, str) or not is_library(module):
            return False
        found: object = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        return found is value or getattr(builtins, name, None) is value

    def _address(self, value: object) -> bytes:
        return digest("address", address_of(value).encode(), self._file_of(value.__module__))

    @staticmethod
    def _file_of(module: str) -> bytes:
        file = module_file(module)
        if file is None:
            return sys.version.encode()
        stat = file.stat()
        return _file_token(file, stat.st_mtime_ns, stat.st_size).encode()

    def _many(self, kind: str, parts: list[object], where: str) -> bytes:
        return digest(kind, *(self.token(part, where) for part in parts))


_NOT_OF_A_CLASS = frozenset(
    ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__static_attributes__", "__firstlineno__",
     "__match_args__", "__dataclass_params__", "__dataclass_fields__", "__abstractmethods__", "_abc_impl",
     "__parameters__", "__orig_bases__", "__slots__")
)  # fmt: skip


def _is_of_numpy(function: Foreign) -> bool:
    return getattr(np, str(function.__name__), None) is function
