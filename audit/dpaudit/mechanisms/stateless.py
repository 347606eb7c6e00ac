"""Decides whether a mechanism can keep state from one run to the next.  The decision uses the code, never the outputs.

A cache needs storage: a global, a closure, a default, an attribute, or a module.  A function has no such storage
under two conditions:

- Its closure, its defaults and the globals that it reads are numbers, text, tuples of such values, modules, or
  functions without storage.
- The function assigns no global, no variable of an outer function, and no attribute.

The function may also hold lists, dicts, sets and arrays, if the examined code changes none of them.  This condition
means that the code assigns no items and calls no method that changes its object.

The runs of a function without storage share only the modules that the function uses.  `forgets` has two further
conditions.  The modules must be known to keep no outputs, such as numpy and math.  No global, closure, default or class
of the function may hold a non-integer number, because the number could be noise that was sampled during loading.
`portable` allows any module, because a new process imports the module again.  The check detects mistakes but not
malice.  For example, the check does not notice code that writes into numpy's namespace.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import types

import numpy as np

from dpaudit.mechanisms.code_names import global_names
from dpaudit.mechanisms.modules import address
from dpaudit.mechanisms.protocol import Batched
from dpaudit.mechanisms.python import PythonMechanism
from dpaudit.values import Dataset, Foreign

_KEEP_NOTHING = frozenset(
    ("numpy", "scipy", "math", "cmath", "random", "secrets", "statistics", "itertools", "operator", "fractions",
     "decimal", "collections", "struct", "time", "typing", "builtins", "dpaudit")
)  # fmt: skip
_WRITES = frozenset(("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "STORE_NAME"))
_POWERFUL = frozenset(
    ("globals", "locals", "vars", "setattr", "delattr", "getattr", "exec", "eval", "compile", "open", "__import__",
     "breakpoint", "input", "memoryview", "super")
)  # fmt: skip
CHANGES = frozenset(
    ("add", "append", "appendleft", "clear", "copyto", "difference_update", "discard", "extend", "extendleft", "fill",
     "fill_diagonal", "insert", "intersection_update", "itemset", "out", "partition", "place", "pop", "popitem",
     "popleft", "put", "put_along_axis", "putmask", "remove", "resize", "reverse", "rotate", "setdefault", "setfield",
     "setflags", "shuffle", "sort", "symmetric_difference_update", "update")
)  # fmt: skip
"""Names of methods, functions and arguments that change a list, dict, set or array in place."""
_MADE_BY_DATACLASS = frozenset(
    ("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__lt__", "__le__", "__gt__", "__ge__",
     "__getstate__", "__setstate__", "__replace__")
)  # fmt: skip
_PLAIN = ("builtins", "numpy", "pandas", "polars", "datetime", "decimal", "fractions")


def forgets(mechanism: object, *datasets: Dataset) -> bool:
    """Whether runs can neither pass data to later runs in memory nor read noise that was sampled earlier.

    Args:
        mechanism: A mechanism as in `audit`.
        datasets: The datasets of the audit.  Datasets must have plain types, because methods of a user's class may keep
            state.
    """
    check = _Check(_KEEP_NOTHING)
    return all(_is_plain(dataset) for dataset in datasets) and check.mechanism(mechanism) and not check.fractions


def portable(mechanism: object) -> bool:
    """Whether a copy in another process starts in the mechanism's initial state, regardless of runs in this process.

    Args:
        mechanism: A mechanism as in `audit`.
    """
    return _Check(None).mechanism(mechanism)


def immutable(value: Foreign) -> bool:
    """Whether a value is a number, a text, bytes, or a tuple or frozenset of such values."""
    if type(value) in (tuple, frozenset):
        return all(map(immutable, value))
    return value is None or value is Ellipsis or type(value) in (bool, int, float, complex, str, bytes, range)


def _content(value: Foreign) -> bool:
    """Whether a value is a list, dict, set or array of immutable values."""
    if type(value) in (list, set, tuple, frozenset):
        return all(immutable(item) or _content(item) for item in value)
    if type(value) is dict:
        return all(immutable(item) or _content(item) for item in value.values())
    return type(value) is np.ndarray and not value.dtype.hasobject


def not_whole(value: Foreign) -> bool:
    """Whether a value is or contains a non-integer number."""
    if isinstance(value, float | complex | np.floating):
        return value != value or value.imag != 0 or not float(value.real).is_integer()
    if type(value) is dict:
        return any(map(not_whole, value.values()))
    if type(value) in (list, tuple, set, frozenset):
        return any(map(not_whole, value))
    return type(value) is np.ndarray and value.dtype.kind in "fc" and bool(np.any(value != np.round(value)))


def _is_plain(value: Foreign) -> bool:
    if type(value) in (list, tuple, set, frozenset):
        return all(type(item) in (int, float, str, bool) or _is_plain(item) for item in value)
    if type(value) is dict:
        return all(_is_plain(item) for item in value.values())
    return type(value).__module__.split(".")[0] in _PLAIN


def _keywords(code: types.CodeType) -> set[str]:
    """Return the names of the keyword arguments in the calls of the code."""
    names = [part for part in code.co_consts if isinstance(part, tuple)]
    return {name for part in names for name in part if isinstance(name, str)}


class _Check:
    """One examination of a mechanism's code.

    Args:
        modules: Top-level names of the modules that the code may use.  None allows all modules.
    """

    def __init__(self, modules: frozenset[str] | None) -> None:
        self._modules = modules
        self._seen: set[int] = set()
        self._changeable = False  # whether the mechanism holds a list, dict, set or array
        self._changes = False  # whether the code may change a list, dict, set or array
        self.fractions = False  # whether the code holds a non-integer number, which may be noise

    def mechanism(self, mechanism: object) -> bool:
        return self._mechanism(mechanism) and not (self._changeable and self._changes)

    def _mechanism(self, mechanism: object) -> bool:
        if isinstance(mechanism, PythonMechanism):
            mechanism = mechanism.loaded
        if isinstance(mechanism, Batched):
            mechanism = mechanism.function
        if isinstance(mechanism, types.FunctionType):
            return self._function(mechanism)
        if type(mechanism).__module__.startswith("dpaudit.catalogue."):
            return True
        return self._frozen(mechanism)

    def _frozen(self, value: Foreign) -> bool:
        cls = type(value)
        params = getattr(cls, "__dataclass_params__", None)
        if params is None or not params.frozen:
            return False
        names = {entry.name for entry in dataclasses.fields(value)}
        held = [getattr(value, name) for name in names]
        before = self.fractions
        known = set(getattr(value, "__dict__", names)) <= names and all(map(self._held, held))
        self.fractions = before  # the fields of a dataclass are parameters and not noise
        return known and self._class(cls)

    def _class(self, cls: type) -> bool:
        for base in cls.__mro__[:-1]:
            if base.__module__.split(".")[0] == "dpaudit" or base.__module__ in ("typing", "abc"):
                continue
            for name, member in vars(base).items():
                code = member.fget if isinstance(member, property) else member
                code = code.__func__ if isinstance(code, staticmethod | classmethod) else code
                if name in _MADE_BY_DATACLASS or (name.startswith("__") and not callable(code)):
                    continue
                if isinstance(code, types.FunctionType) and not self._function(code):
                    return False
                self.fractions |= not_whole(code)
                described = isinstance(code, types.MemberDescriptorType | types.GetSetDescriptorType)
                if not (isinstance(code, types.FunctionType) or described or immutable(code) or name == "claim"):
                    return False
        return True

    def _function(self, function: types.FunctionType) -> bool:
        if id(function) in self._seen:
            return True
        self._seen.add(id(function))
        cells = function.__closure__ or ()
        try:
            held = [cell.cell_contents for cell in cells]
        except ValueError:
            return False
        held += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        held += [kept for name, kept in vars(function).items() if name != "claim"]
        return self._code(function.__code__, set(function.__code__.co_freevars)) and all(
            self._held(value) for value in [*held, *self._read(function)]
        )

    def _read(self, function: types.FunctionType) -> list[object]:
        names = global_names(function.__code__)
        if names & _POWERFUL:
            return [object()]
        found = [function.__globals__[name] for name in names if name in function.__globals__]
        absent = [name for name in names if name not in function.__globals__ and not hasattr(builtins, name)]
        return [*found, *([object()] if absent else [])]

    def _code(self, code: types.CodeType, outer: set[str]) -> bool:
        self._changes |= bool(CHANGES & {*code.co_names, *_keywords(code)})
        for step in dis.get_instructions(code):
            self._changes |= step.opname in ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
            self._changes |= step.opname == "BINARY_OP" and step.argrepr.endswith("=")
            if step.opname in _WRITES and not (step.opname == "STORE_NAME" and code.co_name == "<module>"):
                return False
            if step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in outer:
                return False
            if step.opname == "IMPORT_NAME" and not self._may_use(step.argval):
                return False
            if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and str(step.argval).startswith("__"):
                return False
        inside = [part for part in code.co_consts if isinstance(part, types.CodeType)]
        return all(self._code(part, outer & set(part.co_freevars)) for part in inside)

    def _held(self, value: object) -> bool:
        self.fractions |= not_whole(value)
        if immutable(value):
            return True
        if _content(value):
            self._changeable = True
            return True
        if isinstance(value, types.ModuleType):
            return self._may_use(value.__name__)
        if isinstance(value, types.FunctionType) and not self._of_module(value):
            return self._function(value)
        if isinstance(value, types.FunctionType | types.BuiltinFunctionType | type) or callable(value):
            return self._of_module(value)
        return dataclasses.is_dataclass(value) and self._frozen(value)

    def _of_module(self, value: object) -> bool:
        """Whether a permitted module holds this function or class under its `__qualname__`."""
        if (known := address(value)) is None:
            return False
        module, _, found = known
        return found is value and self._may_use(module)

    def _may_use(self, module: str) -> bool:
        return self._modules is None or module.split(".")[0] in self._modules
