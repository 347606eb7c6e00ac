"""Makes copies that share no mutable object with their original.

A mechanism may change or keep its dataset, or return an object that the mechanism changes later.  So each run gets a
new copy of the dataset, and each output is copied as soon as the run returns it.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import operator
import pickle
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import numpy as np

from dpaudit.mechanisms.raised import in_words
from dpaudit.values import Foreign, Output, RawOutputs


class NotCopyable(Exception):
    """Raised if a value cannot be copied.  The message names the type of the value and the reason."""


class UnusableOutputs(Exception):
    """Raised if a call returns too few or too many outputs, or the same mutable object for several runs."""


def _with_subclasses(kind: type[object]) -> Iterator[type[object]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from _with_subclasses(subclass)


IMMUTABLE: frozenset[type] = frozenset(
    {type(None), type(...), bool, int, float, complex, str, bytes, range}
    | {decimal.Decimal, fractions.Fraction, datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
    | {kind for kind in _with_subclasses(np.generic) if not issubclass(kind, np.void)}  # np.void has mutable records
)
"""Types whose values are immutable.  Subclasses do not count."""


def immutable(value: Foreign) -> bool:
    """Whether `value` and all its parts are certainly immutable."""
    kind = type(value)
    if kind in IMMUTABLE:
        return True
    if kind is frozenset or (issubclass(kind, tuple) and kind.__dictoffset__ == 0):  # includes named tuples
        return all(map(immutable, value))
    return False


def detached(value: Foreign) -> Foreign:
    """Return an equal value of the same type that shares no mutable object with `value`."""
    try:
        return _copier(value)()
    except Exception as error:
        words = "it is nested too deeply" if isinstance(error, RecursionError) else in_words(error)
        raise NotCopyable(f"a {type(value).__module__}.{type(value).__qualname__} cannot be copied ({words})") from None


class Dataset:
    """A dataset that is copied for each run.  A mechanism never gets the original.

    Attributes:
        value: The dataset, which the caller must not change.
        copy: A function that returns a new copy; it is chosen once, so that copying a short list takes little time.
        fixed: Whether the dataset is immutable.  In this case, `copy` returns the dataset itself.
    """

    def __init__(self, value: object) -> None:
        """Copy a dataset."""
        self.__setstate__((detached(value),))

    def changed(self, given: object) -> bool:
        """Whether the copy `given` certainly differs from the dataset."""
        try:
            return not (self.fixed or _equal(self.value, given))
        except Exception:  # a comparison calls methods of the dataset
            return False

    def __getstate__(self) -> object:
        return (self.value,)  # a tuple, because pickle does not call __setstate__ for a falsy state

    def __setstate__(self, state: tuple[Foreign]) -> None:
        (self.value,) = state
        self.copy: Callable[[], Foreign] = _copier(self.value)
        self.fixed = immutable(self.value)


def detached_batch(outputs: Foreign) -> RawOutputs:
    """Copy the outputs of one call of a batched mechanism, so that they share no object with it or with each other."""
    if type(outputs) is np.ndarray and not outputs.dtype.hasobject:
        return outputs.copy(order="K")
    if not isinstance(outputs, (list, tuple)) and not (type(outputs) is np.ndarray and outputs.ndim == 1):
        whole: RawOutputs = detached(outputs)
        return whole
    if IMMUTABLE.issuperset(map(type, outputs)):
        return outputs.copy() if isinstance(outputs, np.ndarray) else list(outputs)
    _refuse_shared(outputs)
    copies = [detached(output) for output in outputs]
    if not isinstance(outputs, np.ndarray):
        return copies
    array = np.empty(len(copies), dtype=object)
    array[:] = copies
    return array


def _refuse_shared(outputs: Iterable[Output]) -> None:
    owners: dict[object, int] = {}
    for run, output in enumerate(outputs):
        for key, kind in _mutable_parts(output):
            if (other := owners.setdefault(key, run)) != run:
                raise UnusableOutputs(
                    f"returned the same {kind} object for several runs ({other} and {run} of the batch), so that only "
                    "the values of the last run are visible; return a new object for each run"
                )


def _mutable_parts(value: object) -> Iterator[tuple[object, str]]:
    """Yield a key and the type name of each mutable object in a value, where only containers are searched."""
    kind = type(value)
    if kind in IMMUTABLE:
        return
    if isinstance(value, np.ndarray):
        if value.size and value.nbytes:  # equal views of the same memory count as one object
            at = value.__array_interface__["data"][0]
            yield (at, value.shape, value.strides, value.dtype.str), kind.__name__
        return
    if isinstance(value, (tuple, frozenset)):
        for item in value:
            yield from _mutable_parts(item)
        return
    if not _constant(value):
        yield id(value), kind.__name__
    if isinstance(value, (list, set)):
        for item in value:
            yield from _mutable_parts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _mutable_parts(item)


def _constant(value: Foreign) -> bool:
    """Whether runs may share this object, such as an enum, a function, a time, a sentinel or a frozen dataclass."""
    if isinstance(value, (enum.Enum, type, types.FunctionType, types.BuiltinFunctionType, datetime.date)):
        return True
    if hasattr(value, "__dataclass_params__"):
        parts = (getattr(value, item.name, None) for item in dataclasses.fields(value))
        return bool(value.__dataclass_params__.frozen) and all(map(immutable, parts))
    kind = type(value)
    slots = kind.__basicsize__ > _Empty.__basicsize__ or kind.__itemsize__ > 0  # data outside `__dict__`
    return kind.__dictoffset__ != 0 and not getattr(value, "__dict__", None) and not slots


class _Empty:
    """The smallest object with a `__dict__`, as a reference for sizes."""


def plain(value: Foreign) -> bool:
    """Whether a value consists of lists, dicts, sets, tuples and immutable values only."""
    kind = type(value)
    if kind is dict:
        return plain(list(value)) and plain(list(value.values()))
    return kind in IMMUTABLE or (
        kind in (list, set, tuple) and (IMMUTABLE.issuperset(map(type, value)) or all(map(plain, value)))
    )


def _copier(value: Foreign) -> Callable[[], Foreign]:
    """Return a function that copies `value`.  The caller must not change `value` afterwards."""
    kind = type(value)
    if immutable(value):
        return lambda: value
    if kind is np.ndarray and not value.dtype.hasobject:
        return value.copy if value.flags.c_contiguous else lambda: value.copy(order="K")
    if kind in (list, dict, set):
        parts = (*value, *value.values()) if kind is dict else value
        if IMMUTABLE.issuperset(map(type, parts)) or all(map(immutable, parts)):
            copied: Callable[[], Foreign] = value.copy
            return copied
    with suppress(RecursionError):  # the value contains itself or is deeply nested
        if plain(value):
            return _pickled(value)
    return _deep(value)


def _deep(value: Foreign) -> Callable[[], Foreign]:
    package = type(value).__module__.partition(".")[0]
    if package == "torch" and hasattr(value, "detach"):  # torch cannot deep-copy a tensor with a gradient history
        value = value.detach()
    if package == "pandas" and _holds_mutable_cells(value):  # a deep copy in pandas copies only references to the cells
        return _pickled(value)
    return lambda: copy.deepcopy(value)


def _pickled(value: object) -> Callable[[], Foreign]:
    kept = pickle.dumps(value)
    return lambda: pickle.loads(kept)


def _holds_mutable_cells(frame: Foreign) -> bool:
    columns = [frame[name] for name in frame.columns] if hasattr(frame, "columns") else [frame]
    objects = [column for column in columns if getattr(getattr(column, "dtype", None), "hasobject", False)]
    return not all(immutable(cell) for column in objects for cell in column)


def _all_equal(first: Iterable[object], second: Iterable[object]) -> bool:
    """Compare parts of equal number; copies share immutable parts, and comparing identities is much faster."""
    return all(map(operator.is_, first, second)) or all(map(_equal, first, second))


def _equal(first: Foreign, second: Foreign) -> bool:
    kind = type(first)
    if kind is not type(second):
        return False
    if kind in IMMUTABLE:
        return bool(first == second) or bool(first != first and second != second)
    if isinstance(first, np.ndarray):
        if first.dtype != second.dtype or first.shape != second.shape:
            return False
        return _equal(first.tolist(), second.tolist()) if first.dtype.hasobject else first.tobytes() == second.tobytes()
    if kind in (list, tuple):
        return len(first) == len(second) and _all_equal(first, second)
    if kind is dict:
        return list(first) == list(second) and _all_equal(first.values(), second.values())
    if hasattr(first, "equals"):  # a data frame or a series
        return bool(first.equals(second))
    if "__eq__" in {name for base in kind.__mro__[:-1] for name in vars(base)}:
        return bool(first == second)
    return pickle.dumps(first) == pickle.dumps(second)
