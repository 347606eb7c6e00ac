"""The outcomes of runs: outputs, which are copied, and exceptions, which get words and may count as outcomes.

A mechanism may change what it gets or returned, so datasets and outputs are copied.  `worker` loads this file by its
path, so it needs only the standard library of Python 3.8 or later, and uses numpy only if it is installed.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import decimal
import enum
import errno
import fractions
import linecache
import pickle
import re
import sysconfig
import types
from contextlib import suppress
from pathlib import Path
from typing import Any

try:
    import numpy
except ImportError:  # not every environment has numpy
    numpy = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from dpaudit.values import Output, RawOutputs


class NotCopyable(Exception):
    """Raised if a value cannot be copied.  The message names the type of the value and the reason."""


class UnusableOutputs(Exception):
    """Raised if a call returns too few or too many outputs, or the same mutable object for several runs."""


_PLAIN = {type(None), type(...), bool, int, float, complex, str, bytes, range, decimal.Decimal, fractions.Fraction}
_TIMES = {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
_NUMBERS = set() if numpy is None else {*numpy.sctypeDict.values()} - {numpy.void}
IMMUTABLE: frozenset[type] = frozenset(_PLAIN | _TIMES | _NUMBERS)  # records of numpy.void can be changed
"""Types whose values are immutable.  Subclasses do not count."""

_SMALLEST = type("Empty", (), {}).__basicsize__  # size of an object with nothing but a `__dict__`


def parts(value: Any) -> Collection[Any]:
    """Return the entries of a container, and the keys of a dict."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, (list, tuple, set, frozenset)) else ()


def immutable(value: Any) -> bool:
    """Whether `value` and all its parts are certainly immutable."""
    kind = type(value)
    frozen = kind is frozenset or (issubclass(kind, tuple) and kind.__dictoffset__ == 0)  # includes named tuples
    return kind in IMMUTABLE or (frozen and all(map(immutable, value)))


def plain(value: Any) -> bool:
    """Whether a value consists of lists, dicts, sets, tuples and immutable values only."""
    kind = type(value)
    return kind in IMMUTABLE or (
        kind in (list, dict, set, tuple)
        and (IMMUTABLE.issuperset(map(type, parts(value))) or all(map(plain, parts(value))))
    )


def detached(value: Any) -> Any:
    """Return an equal value of the same type that shares no mutable object with `value`."""
    try:
        return copier(value)()
    except Exception as error:
        deep = isinstance(error, RecursionError)
        reason = "it is nested too deeply" if deep else f"{type(error).__name__}: {error}"
        kind = type(value)
        raise NotCopyable(f"a {kind.__module__}.{kind.__qualname__} cannot be copied ({reason})") from None


def copier(value: Any) -> Callable[[], Any]:
    """Return a function that copies `value`, which the caller must not change afterwards."""
    kind = type(value)
    if immutable(value):
        return lambda: value
    if numpy is not None and kind is numpy.ndarray and not value.dtype.hasobject:
        return value.copy if value.flags.c_contiguous else lambda: value.copy(order="K")
    if kind in (list, dict, set):
        inside = parts(value)
        if IMMUTABLE.issuperset(map(type, inside)) or all(map(immutable, inside)):
            shallow: Callable[[], Any] = value.copy
            return shallow
    package = kind.__module__.partition(".")[0]
    pickled = False
    if package == "pandas":  # a deep copy of pandas copies only the references to mutable cells
        columns = [value[name] for name in value.columns] if hasattr(value, "columns") else [value]
        cells = (column for column in columns if getattr(getattr(column, "dtype", None), "hasobject", False))
        pickled = not all(immutable(cell) for column in cells for cell in column)
    with suppress(RecursionError):  # the value contains itself or is deeply nested
        pickled = pickled or plain(value)
    if pickled:
        kept = pickle.dumps(value)
        return lambda: pickle.loads(kept)
    if package == "torch" and hasattr(value, "detach"):  # torch cannot deep-copy a tensor with a gradient history
        value = value.detach()
    return lambda: copy.deepcopy(value)


def detached_batch(outputs: Any) -> RawOutputs:
    """Copy the outputs of one call of a batched mechanism, so that they share no object with it or with each other."""
    if type(outputs) is numpy.ndarray and not outputs.dtype.hasobject:
        return outputs.copy(order="K")
    if not isinstance(outputs, (list, tuple)) and not (type(outputs) is numpy.ndarray and outputs.ndim == 1):
        whole: RawOutputs = detached(outputs)
        return whole
    if IMMUTABLE.issuperset(map(type, outputs)):
        return outputs.copy() if isinstance(outputs, numpy.ndarray) else list(outputs)
    refuse_shared(outputs)
    copies = [detached(output) for output in outputs]
    if not isinstance(outputs, numpy.ndarray):
        return copies
    array = numpy.empty(len(copies), dtype=object)
    array[:] = copies
    return array


def refuse_shared(outputs: Iterable[Output]) -> None:
    """Raise UnusableOutputs if several outputs hold the same mutable object, where only containers are searched."""
    owners: dict[object, int] = {}
    for run, output in enumerate(outputs):
        try:
            shareable = list(_mutable(output))
        except RecursionError:  # the output is nested too deeply to be copied or sent
            return
        for key, kind in shareable:
            if (other := owners.setdefault(key, run)) != run:
                raise UnusableOutputs(
                    f"returned the same {kind} object for several runs ({other} and {run} of the batch), so that only "
                    "the values of the last run are visible; return a new object for each run"
                )


def _mutable(value: Any) -> Iterator[tuple[object, str]]:
    """Yield a key and the type name of each mutable object in a value."""
    kind = type(value)
    if numpy is not None and isinstance(value, numpy.ndarray):
        if value.size and value.nbytes:  # equal views of the same memory count as one object
            yield (value.__array_interface__["data"][0], value.shape, value.strides, value.dtype.str), kind.__name__
    elif kind not in IMMUTABLE and not isinstance(value, (tuple, frozenset)) and not _constant(value):
        yield id(value), kind.__name__
    for part in parts(value):
        yield from _mutable(part)


def _constant(value: Any) -> bool:
    """Whether runs may share this object, such as an enum, a function, a time, a sentinel or a frozen dataclass."""
    if isinstance(value, (enum.Enum, type, types.FunctionType, types.BuiltinFunctionType, datetime.date)):
        return True
    if hasattr(value, "__dataclass_params__"):
        fields = (getattr(value, item.name, None) for item in dataclasses.fields(value))
        return bool(value.__dataclass_params__.frozen) and all(map(immutable, fields))
    kind = type(value)
    slots = kind.__basicsize__ > _SMALLEST or kind.__itemsize__ > 0  # data outside `__dict__`
    return kind.__dictoffset__ != 0 and not getattr(value, "__dict__", None) and not slots


_MESSAGE = 20_000  # maximum length of an exception's message in characters, as it might hold a whole dataset
_NO_MEMORY = re.compile(r"out of memory|(can't|cannot|could not|unable to|failed to) allocate", re.IGNORECASE)
_MEMORY_GONE = re.compile("out of memory|(can't|cannot|could not) allocate memory", re.IGNORECASE)


def message_of(error: BaseException) -> str:
    """Return the message of an exception, or a note if `__str__` of the exception raises."""
    try:
        text = f"{error}"
        return text if len(text) <= _MESSAGE else f"{text[:_MESSAGE]}…"
    except KeyboardInterrupt:
        raise
    except BaseException as another:
        return f"(its message is unavailable: __str__ raised {type(another).__name__})"


def in_words(error: BaseException) -> str:
    """Return the class and message of an exception, even if `__str__` of the exception raises."""
    message = message_of(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def place(error: BaseException) -> str:
    """Return the place of the last frame in the user's own code, such as ", at m.py:2, in f: return d[5]", or ""."""
    paths, last = sysconfig.get_paths(), ""
    folders = {Path(paths["stdlib"]), Path(paths["platstdlib"]), Path(__file__).resolve().parents[1]}
    at = error.__traceback__
    while at is not None:
        code, line = at.tb_frame.f_code, at.tb_lineno
        path = Path(code.co_filename)
        installed = {"site-packages", "dist-packages"} & {*path.parts} or folders & {*path.parents}
        if not installed and not code.co_filename.startswith("<"):
            source = linecache.getline(code.co_filename, line).strip()
            name = "" if code.co_name == "<module>" else f", in {code.co_name}"
            last = f", at {path.name}:{line}{name}{': ' if source else ''}{source[:100]}"
        at = at.tb_next
    return last


def raised(error: BaseException) -> str:
    """Return the type and message of an exception, and the place in the user's own file that raised it."""
    return f"{in_words(error)}{place(error)}"


def of_code(error: BaseException) -> bool:
    """Whether an exception says something about its code; one that is no Exception and not Python's is the caller's."""
    cancelled = type(error).__name__ == "CancelledError"  # compared by name to avoid the import of asyncio
    return isinstance(error, (Exception, SystemExit, GeneratorExit)) or cancelled


def about_memory(error: BaseException | None) -> bool:
    """Whether an error or one of its causes reports a failed memory allocation, as torch does by a RuntimeError."""
    return _reports(error, [errno.ENOMEM], _NO_MEMORY)


def of_machine(error: BaseException | None, limited: bool = False) -> bool:
    """Whether an error says that memory, disk space or handles have run out, which depends on other programs."""
    numbers = [errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE]
    return _reports(error, numbers, _NO_MEMORY if limited else _MEMORY_GONE)


def _reports(error: BaseException | None, numbers: list[int], words: re.Pattern[str]) -> bool:
    for _ in range(20):  # a cyclic chain of causes would never end
        if error is None:
            return False
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in numbers):
            return True
        if words.search(message_of(error)):
            return True
        error = error.__cause__ or error.__context__
    return False
