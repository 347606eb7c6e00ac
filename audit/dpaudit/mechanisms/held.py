"""Finds the numbers that a mechanism holds between its runs.  Cached noise would be among these numbers.

The search starts at the mechanism.  It follows closures, defaults, the globals that the code reads, attributes, items
of containers and the entries of `functools.lru_cache`.  It skips the state of random generators, which is not
yet noise.  It searches neither the memory of compiled libraries nor the globals of installed packages.

The search runs no code of the mechanism.  So it bypasses overridden methods, such as `__iter__`, `__getattr__` or
`values`, and reads the storage of the base class.
"""

from __future__ import annotations

import collections
import functools
import gc
import math
import random
import types
from collections import Counter
from collections.abc import Iterable
from itertools import islice

import numpy as np

from dpaudit.mechanisms.code_names import global_names
from dpaudit.mechanisms.modules import is_library
from dpaudit.mechanisms.protocol import Batched
from dpaudit.mechanisms.python import PythonMechanism
from dpaudit.values import Foreign

_MAX_OBJECTS, _MAX_NUMBERS = 20_000, 1_000_000  # limits of one search, which then takes about two seconds at most
_MAX_ITEMS = 2_000  # maximum number of items read from one container
_CONTAINERS = (list, tuple, set, frozenset, collections.deque)
_WRAPPERS = (
    functools.partial, functools._lru_cache_wrapper, staticmethod, classmethod, property, types.MappingProxyType
)  # fmt: skip
# These descriptors read a class directly, so that no metaclass runs.
_MRO, _NAMESPACE = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__
_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)


def held_numbers(mechanism: object) -> Counter[float]:
    """Count all finite numbers that a mechanism holds, including its parameters.

    Args:
        mechanism: A mechanism as in `audit`, loaded in this process.

    Returns:
        The number of occurrences of each number.
    """
    found: Counter[float] = Counter()
    left: list[object] = [mechanism]
    seen: dict[int, object] = {}  # values by id; the reference keeps the id from being reused
    looked = 0
    while left and len(seen) < _MAX_OBJECTS and looked < _MAX_NUMBERS:
        value = left.pop()
        looked += 1
        if value is None or _is(value, bool, str, bytes, complex, np.bool_):
            continue
        if _is(value, int, float, np.integer, np.floating):
            number = _number(value)
            if isinstance(number, int) or math.isfinite(number):
                found[number] += 1
        elif id(value) not in seen:
            seen[id(value)] = value
            if _is(value, np.ndarray):
                array = np.asarray(value)  # discards a subclass that the user defined
                if array.dtype.kind in "iuf":
                    numbers = array.flat[:_MAX_ITEMS]
                    found.update(numbers[np.isfinite(numbers)].tolist())
                    looked += numbers.size
                elif array.dtype.hasobject and array.dtype.names is None:
                    left += array.flat[:_MAX_ITEMS].tolist()
            else:
                left += _parts(value)[: max(0, _MAX_NUMBERS - len(left))]
    return found


def fractions(numbers: Iterable[float]) -> set[float]:
    """Return the non-integer numbers."""
    return {number for number in numbers if isinstance(number, float) and not number.is_integer()}


def _parts(value: Foreign) -> list[Foreign]:
    """Return the parts of a value, or the values that a function reads when it is called."""
    if _is(value, *_GENERATORS):
        return []
    if _is(value, Batched):
        return [value.function]
    if _is(value, PythonMechanism):
        return [value.loaded]
    if _is(value, dict):
        return list(islice(dict.values(value), _MAX_ITEMS)) + _attributes(value)
    for kind in _CONTAINERS:
        if _is(value, kind):
            return list(islice(kind.__iter__(value), _MAX_ITEMS)) + _attributes(value)
    if _is(value, types.FunctionType):
        return _of_function(value)
    if _is(value, types.MethodType):
        return [value.__func__, value.__self__]
    if _is(value, *_WRAPPERS):
        return gc.get_referents(value)
    if _is(value, type):
        return [] if is_library(_module(value)) else list(_NAMESPACE(value).values())
    if _is(value, types.ModuleType, types.BuiltinFunctionType):
        return []
    return [type(value), *_attributes(value)]


def _is(value: object, *kinds: type) -> bool:
    """Behaves like `isinstance`, but runs no code of the user, such as a property `__class__`."""
    return issubclass(type(value), kinds)


def _number(value: Foreign) -> int | float:
    """Return the number as a built-in type, because a user's class might define other comparisons or hashes."""
    if _is(value, np.generic):
        value = np.generic.item(value)
    if _is(value, int):
        return int.__int__(value)
    return float.__float__(value) if _is(value, float) else float(value)


def _module(cls: type) -> str:
    name = type.__dict__["__module__"].__get__(cls)
    return name if isinstance(name, str) else ""


def _attributes(value: object) -> list[object]:
    """Return the attributes of an object without running any code of its class."""
    held: list[object] = list(_dict(value).values())
    for cls in _MRO(type(value)):
        slots = [member for member in _NAMESPACE(cls).values() if type(member) is types.MemberDescriptorType]
        for slot in [] if is_library(_module(cls)) else slots:
            try:
                held.append(slot.__get__(value))
            except AttributeError:
                continue
    return held


def _dict(value: object) -> dict[str, object]:
    """Return an object's `__dict__`, even if the class has a property of that name, or {} if there is none."""
    for cls in _MRO(type(value)):
        found = _NAMESPACE(cls).get("__dict__")
        if type(found) in (types.GetSetDescriptorType, types.MemberDescriptorType):
            held = found.__get__(value)
            return held if type(held) is dict else {}
    return {}


def _of_function(function: types.FunctionType) -> list[object]:
    """Return the values that a user's function holds and reads, including values in users' modules."""
    if is_library(str(function.__module__ or "")):
        return []
    held: list[object] = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    held += vars(function).values()
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:
            continue
    wanted = _names(function.__code__)
    for name in global_names(function.__code__):
        value = dict.get(function.__globals__, name)
        held.append(value)
        if _is(value, types.ModuleType):
            content = _dict(value)
            if not is_library(str(content.get("__name__"))):
                held += [content[part] for part in wanted & content.keys()]
    return held


def _names(code: types.CodeType) -> set[str]:
    inside = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*map(_names, inside))
