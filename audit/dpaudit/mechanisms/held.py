"""Numbers that a mechanism holds between its runs: where noise would be kept.

The walk starts at the mechanism and follows closures, defaults, the globals that its code reads, attributes, items of
containers and the entries of `functools.lru_cache`.  State of random generators is left out: it is no noise yet.  What
compiled libraries hold, and globals of installed packages, are not seen.
"""

from __future__ import annotations

import collections
import functools
import gc
import math
import random
import types
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from dpaudit.mechanisms.fingerprint import global_names
from dpaudit.mechanisms.modules import is_library
from dpaudit.mechanisms.protocol import Batched
from dpaudit.mechanisms.python import PythonMechanism

_MOST_OBJECTS, _MOST_ITEMS = 20_000, 2_000  # that are looked at, in all and of one container
_CONTAINERS = (list, tuple, set, frozenset, collections.deque)
_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)


def held_numbers(mechanism: Any) -> Counter[float]:
    """All finite numbers that are held, and how often; parameters are among them.

    Args:
        mechanism: as in `audit`, in this process.
    """
    found: Counter[float] = Counter()
    left: list[Any] = [mechanism]
    seen: dict[int, Any] = {}  # kept alive, so that no address is used twice
    while left and len(seen) < _MOST_OBJECTS:
        value = left.pop()
        if isinstance(value, bool | str | bytes | complex) or value is None:
            continue
        if isinstance(value, int | float | np.integer | np.floating):
            number = value.item() if isinstance(value, np.generic) else value
            if isinstance(number, int) or math.isfinite(number):
                found[number] += 1
        elif isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
            numbers = value.ravel()[:_MOST_ITEMS]
            found.update(numbers[np.isfinite(numbers)].tolist())
        elif id(value) not in seen:
            seen[id(value)] = value
            left.extend(_parts(value))
    return found


def fractions(numbers: Iterable[float]) -> set[float]:
    """Those that are not whole."""
    return {number for number in numbers if isinstance(number, float) and not number.is_integer()}


def _parts(value: Any) -> list[Any]:
    """What a value is made of, or reads when it is called."""
    if isinstance(value, _GENERATORS):
        return []
    if isinstance(value, Batched):
        return [value.function]
    if isinstance(value, PythonMechanism):
        return [value.loaded]
    if isinstance(value, Mapping):
        return list(islice(value.values(), _MOST_ITEMS)) + _attributes(value)
    if isinstance(value, _CONTAINERS):
        return list(islice(value, _MOST_ITEMS)) + _attributes(value)
    if isinstance(value, np.ndarray):
        return list(value.ravel()[:_MOST_ITEMS]) if value.dtype.hasobject else []
    if isinstance(value, types.FunctionType):
        return _of_function(value)
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, functools._lru_cache_wrapper):
        return gc.get_referents(value)
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget]
    if isinstance(value, type):
        return [] if is_library(value.__module__) else list(vars(value).values())
    if isinstance(value, types.ModuleType | types.BuiltinFunctionType):
        return []
    return [type(value), *_attributes(value)]


def _attributes(value: Any) -> list[Any]:
    """Attributes of an object, without calling any code of its own."""
    held = list(getattr(value, "__dict__", {}).values())
    for cls in type(value).__mro__:
        slots = [member for member in vars(cls).values() if isinstance(member, types.MemberDescriptorType)]
        for slot in [] if is_library(cls.__module__) else slots:
            try:
                held.append(slot.__get__(value))
            except AttributeError:
                continue
    return held


def _of_function(function: types.FunctionType) -> list[Any]:
    """What a function of the user's holds and reads; of modules that it reads, what it names."""
    if is_library(function.__module__ or ""):
        return []
    held: list[Any] = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    held += vars(function).values()
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:
            continue
    wanted = _names(function.__code__)
    for name in global_names(function.__code__):
        value = function.__globals__.get(name)
        held.append(value)
        if isinstance(value, types.ModuleType) and not is_library(value.__name__):
            held += [vars(value)[part] for part in wanted & vars(value).keys()]
    return held


def _names(code: types.CodeType) -> set[str]:
    inside = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*map(_names, inside))
