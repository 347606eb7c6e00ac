"""Runs a mechanism in another Python: the whole of dpaudit that enters an isolated environment.

This one file is started there as a program, and imported here for the encoding, so that both ends speak the same.  It
needs nothing but the standard library of Python 3.8 or later, and uses numpy if it is there.

A frame is 8 bytes of length (little-endian) and one encoded value.  A value is a tag byte and its content; numbers are
the machine's own bytes (IEEE 754 for floats), so that every bit arrives, also of subnormals, NaNs and -0.0:

    N T F           None, True, False           s b   text (UTF-8), bytes; after their length
    i I             int64; any other int        l t   list, tuple; after their number of items
    d               float64                     m     dict: keys and values in turn
    D Q             list of only float / int64  a     numpy array: dtype, shape, bytes
    z               numpy scalar                Z     list of numpy scalars of one dtype, as an array

Requests are dicts with the key `do`: `load` (address, folder, params, batched), then any number of `sample` (dataset,
n, seed) and `claim`.  Answers are dicts with `outputs` and `changed` (whether the dataset was changed in place),
`claim` (text or None), or `error` and `traceback`.
"""

from __future__ import annotations

import array
import copy
import os
import struct
import sys

try:
    import numpy
except ImportError:  # not every environment has it
    numpy = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO

HEADER = struct.Struct("<q")
_SIZE = struct.Struct("=q")
_DOUBLE = struct.Struct("=d")
_INT64 = range(-(2**63), 2**63)
_FIXED = frozenset([type(None), bool, int, float, complex, str, bytes])  # types whose values cannot change


class Unsendable(Exception):
    """A value that has no encoding; says which."""


def frame(value: Any) -> bytes:
    """`value` as it goes over the wire.  Unsendable if something in it has no encoding."""
    out = bytearray(HEADER.size)
    _encode(value, out)
    HEADER.pack_into(out, 0, len(out) - HEADER.size)
    return bytes(out)


def unframe(body: bytes) -> Any:
    """The value in the body of a frame.  ValueError if it is not one."""
    try:
        value, end = _decode(memoryview(body), 0)
    except (struct.error, IndexError, TypeError, OverflowError) as error:
        raise ValueError(f"not a value: {error}") from None
    if end != len(body):
        raise ValueError(f"{len(body) - end} bytes follow the value")
    return value


def _encode(value: Any, out: bytearray) -> None:
    kind = type(value)
    if value is None:
        out += b"N"
    elif kind is bool:
        out += b"T" if value else b"F"
    elif kind is float:
        out += b"d" + _DOUBLE.pack(value)
    elif kind is int:
        _encode_int(value, out)
    elif kind is list:
        _encode_list(value, out)
    elif numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        _encode_numpy(value, out)
    elif isinstance(value, str):
        _encode_sized(b"s", value.encode("utf-8", "surrogatepass"), out)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        _encode_sized(b"b", bytes(value), out)
    elif isinstance(value, (tuple, list)):
        out += (b"t" if isinstance(value, tuple) else b"l") + _SIZE.pack(len(value))
        for item in value:
            _encode(item, out)
    elif isinstance(value, dict):
        out += b"m" + _SIZE.pack(len(value))
        for key, item in value.items():
            _encode(key, out)
            _encode(item, out)
    elif isinstance(value, int):  # IntEnum and the like
        _encode_int(int(value), out)
    elif isinstance(value, float):
        out += b"d" + _DOUBLE.pack(value)
    elif hasattr(value, "columns") and hasattr(value, "to_dict"):  # data frames of pandas and polars
        _encode({name: value[name].to_list() for name in value.columns}, out)
    elif numpy is not None and hasattr(value, "__array__"):  # tensors, series
        _encode_numpy(numpy.asarray(value.detach().cpu() if hasattr(value, "detach") else value), out)
    else:
        raise Unsendable(
            f"a {kind.__module__}.{kind.__qualname__} cannot be sent between environments; return numbers, booleans, "
            "text, bytes, None, numpy arrays, data frames, or lists, tuples and dicts of them"
        )


def _encode_sized(tag: bytes, content: bytes, out: bytearray) -> None:
    out += tag + _SIZE.pack(len(content))
    out += content


def _encode_int(value: int, out: bytearray) -> None:
    if value in _INT64:
        out += b"i" + _SIZE.pack(value)
    else:
        _encode_sized(b"I", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True), out)


def _encode_list(value: Any, out: bytearray) -> None:
    """Lists of one kind of number go as one piece: this is what most mechanisms return, by the thousand."""
    kinds = set(map(type, value))
    if len(kinds) == 1:
        (kind,) = kinds
        if kind is float:
            return _encode_sized(b"D", array.array("d", value).tobytes(), out)
        if kind is int and min(value) in _INT64 and max(value) in _INT64:
            return _encode_sized(b"Q", array.array("q", value).tobytes(), out)
        if numpy is not None and issubclass(kind, numpy.generic):
            together = numpy.array(value)
            if together.dtype.kind in "biufc":
                out += b"Z"
                return _encode_numpy(together, out)
    out += b"l" + _SIZE.pack(len(value))
    for item in value:
        _encode(item, out)
    return None


def _encode_numpy(value: Any, out: bytearray) -> None:
    if value.dtype.kind not in "biufcSU":  # objects, dates, records: as Python sees them
        return _encode(value.tolist(), out)
    if isinstance(value, numpy.generic):
        out += b"z"
        value = numpy.asarray(value)
    out += b"a"
    _encode(value.dtype.str, out)
    _encode(list(value.shape), out)
    return _encode_sized(b"b", value.tobytes(), out)


def _decode(data: memoryview, at: int) -> tuple[Any, int]:
    tag, at = chr(data[at]), at + 1
    if tag in "NTF":
        return {"N": None, "T": True, "F": False}[tag], at
    if tag == "d":
        return _DOUBLE.unpack_from(data, at)[0], at + 8
    if tag == "i":
        return _SIZE.unpack_from(data, at)[0], at + 8
    if tag in "sbIDQ":
        (size,) = _SIZE.unpack_from(data, at)
        content, end = data[at + 8 : at + 8 + size], at + 8 + size
        if size < 0 or end > len(data):
            raise ValueError("the value is cut off")
        if tag == "s":
            return str(content, "utf-8", "surrogatepass"), end
        if tag == "b":
            return bytes(content), end
        if tag == "I":
            return int.from_bytes(content, "little", signed=True), end
        numbers = array.array("d" if tag == "D" else "q")
        numbers.frombytes(content)
        return numbers.tolist(), end
    if tag in "ltm":
        (size,) = _SIZE.unpack_from(data, at)
        at += 8
        items = []
        for _ in range(2 * size if tag == "m" else size):
            item, at = _decode(data, at)
            items.append(item)
        if tag == "m":
            return dict(zip(items[::2], items[1::2])), at  # noqa: B905  (Python 3.8 knows no strict=)
        return (tuple(items) if tag == "t" else items), at
    if tag == "a":
        return _decode_array(data, at)
    if tag in "zZ":
        value, at = _decode(data, at)
        if numpy is None:
            return value, at
        return (value[()] if tag == "z" else list(value)), at
    raise ValueError(f"unknown tag {tag!r}")


def _decode_array(data: memoryview, at: int) -> tuple[Any, int]:
    dtype, at = _decode(data, at)
    shape, at = _decode(data, at)
    content, at = _decode(data, at)
    if numpy is not None:
        return numpy.frombuffer(content, dtype=dtype).reshape(shape).copy(), at
    codes = {"b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q"}
    code = dict(codes, f4="f", f8="d").get(dtype[1:])
    if code is None:
        raise ValueError(f"an array of dtype {dtype} needs numpy, which this environment does not have")
    if not shape:
        return memoryview(content).cast(code)[0], at
    if 0 in shape:
        return [], at
    return memoryview(content).cast(code, shape).tolist(), at


def misfit(found: Any, batched: bool = False) -> str:
    """Say why an object cannot be called as a mechanism; "" if it can, or if its signature is not known."""
    import inspect

    if isinstance(found, type):
        return "is a class; in a config add `params: {}`, in Python call it: an object of it is the mechanism"
    many = getattr(found, "sample", found if batched else None)
    if many is None and not callable(found):
        kind = type(found).__name__
        return f"must be a callable (dataset, rng) -> output or have sample(dataset, n, rng), got {kind}"
    try:
        signature = inspect.signature(found if many is None else many)
    except (TypeError, ValueError):
        return ""
    short, long = ("dataset", "rng"), ("dataset", "n", "rng")
    wanted, other = (short, long) if many is None else (long, short)
    if _binds(signature, wanted):
        return ""
    problem = "takes {}, but a {}mechanism is called with ({})".format(
        signature, "" if many is None else "batched ", ", ".join(wanted)
    )
    if not _binds(signature, other):
        return problem
    if many is None:
        return problem + "; if it returns n outputs, say `batched: true` in the config, or @batched in Python"
    return problem + "; if it returns one output, leave out `batched`"


def _binds(signature: Any, values: tuple[str, ...]) -> bool:
    try:
        signature.bind(*values)
    except TypeError:
        return False
    return True


class _Loaded:
    """The user's mechanism in this process."""

    def __init__(self, address: str, folder: str, params: dict[str, Any] | None, batched: bool) -> None:
        module_name, _, object_name = address.rpartition(":")
        found: Any = _module(module_name, folder)
        for part in object_name.split("."):
            if not hasattr(found, part):
                raise LookupError(f"{module_name} has no object {object_name!r}")
            found = getattr(found, part)
        if params is not None:
            found = found(**params)
        problem = misfit(found, batched)
        if problem:
            raise TypeError(f"{address} {problem}")
        self.found = found
        self.many: Callable[..., Any] | None = getattr(found, "sample", found if batched else None)
        self.changed: bool | None = None  # whether it changes its dataset in place; None: not looked at yet

    def sample(self, dataset: Any, n: int, seed: int) -> Any:
        rng = _seeded(seed)
        if self.many is None:
            return [self._run(dataset, rng) for _ in range(n)]
        given = _copied(dataset)
        outputs = self.many(given, n, rng)
        self._look(dataset, given)
        if len(outputs) != n:
            raise ValueError(f"returned {len(outputs)} outputs instead of {n}")
        if isinstance(outputs, (list, tuple)):
            _refuse_shared(outputs)
        if isinstance(outputs, (list, tuple)) or (numpy is not None and isinstance(outputs, numpy.ndarray)):
            return outputs
        return outputs if hasattr(outputs, "__array__") and not hasattr(outputs, "columns") else list(outputs)

    def _run(self, dataset: Any, rng: Any) -> Any:
        """One run on a dataset of its own; its output is copied, since the mechanism may change it later."""
        given = _copied(dataset)
        output = _copied(self.found(given, rng))
        self._look(dataset, given)
        return output

    def _look(self, dataset: Any, given: Any) -> None:
        if self.changed is None:
            try:
                self.changed = frame(given) != frame(dataset)
            except Unsendable:
                self.changed = True


def _copied(value: Any) -> Any:
    """An equal value that shares nothing mutable with this one."""
    kind = type(value)
    if kind in _FIXED:
        return value
    if kind is list and _FIXED.issuperset(map(type, value)):
        return value[:]
    if numpy is not None and kind is numpy.ndarray and not value.dtype.hasobject:
        return value.copy()
    if hasattr(value, "detach"):  # tensors that remember how they were computed have no deep copy
        value = value.detach()
    return copy.deepcopy(value)


def _refuse_shared(outputs: Any) -> None:
    seen = {}  # type: dict[int, int]
    for run, output in enumerate(outputs):
        if isinstance(output, (list, dict, set, bytearray)) or hasattr(output, "__array_interface__"):
            if numpy is not None and isinstance(output, numpy.generic):
                continue
            if seen.setdefault(id(output), run) != run:
                raise ValueError(
                    f"returned one and the same {type(output).__name__} object for several runs ({seen[id(output)]} "
                    f"and {run} of the batch); return a new object for each run"
                )


def _module(name: str, folder: str) -> Any:
    import importlib.util

    path = os.path.join(folder, name)
    beside = os.path.dirname(path) if name.endswith(".py") else folder
    if beside not in sys.path:
        sys.path.append(beside)  # at the end: a random.py beside the mechanism must not replace Python's own
    if not name.endswith(".py"):
        return importlib.import_module(name)
    if not os.path.isfile(path):
        raise LookupError(f"there is no file {name} in {folder}")
    spec = importlib.util.spec_from_file_location("_dpaudit_mechanism", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["_dpaudit_mechanism"] = module
    spec.loader.exec_module(module)
    return module


def _seeded(seed: int) -> Any:
    """The rng for one call; also seeds, each with a key of its own, the global generators that libraries draw from."""
    import hashlib
    import random

    def key(name: str) -> int:
        return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:16], "little")

    random.seed(key("random"))
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(key("torch") % 2**63)
    if numpy is None:
        return random.Random(key("rng"))
    numpy.random.seed([key("numpy") >> shift & 0xFFFFFFFF for shift in (0, 32, 64, 96)])
    return numpy.random.Generator(numpy.random.Philox(key=key("rng")))


def _answer(request: Any, loaded: _Loaded | None) -> tuple[bytes, _Loaded | None]:
    import traceback

    try:
        if request["do"] == "load":
            loaded = _Loaded(request["address"], request["folder"], request["params"], request["batched"])
            return frame({}), loaded
        assert loaded is not None
        if request["do"] == "claim":
            claim = getattr(loaded.found, "claim", None)
            return frame({"claim": None if claim is None else str(claim)}), loaded
        loaded.changed = None
        outputs = loaded.sample(request["dataset"], request["n"], request["seed"])
        return frame({"outputs": outputs, "changed": bool(loaded.changed)}), loaded
    except BaseException as error:  # SystemExit too: the mechanism must not end this process unheard
        at = error.__traceback__
        while at is not None and at.tb_frame.f_code.co_filename == __file__:  # from the user's code on
            at = at.tb_next
        told = "" if at is None else "".join(traceback.format_exception(type(error), error, at))
        return frame({"error": f"{type(error).__name__}: {_message(error)}", "traceback": told}), loaded


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as another:
        return f"(its message cannot be had: __str__ raised {type(another).__name__})"


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more."""
    loaded: _Loaded | None = None
    while True:
        header = requests.read(HEADER.size)
        if len(header) < HEADER.size:
            return
        body = requests.read(HEADER.unpack(header)[0])
        try:
            request = unframe(body)
        except ValueError as error:
            answer = frame({"error": f"the dataset or the parameters could not be read: {error}", "traceback": ""})
        else:
            answer, loaded = _answer(request, loaded)
        answers.write(answer)
        answers.flush()


if __name__ == "__main__":
    # Whatever the mechanism prints must not mix with the answers: its stdout becomes stderr, its stdin is empty.
    own_in, own_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    serve(os.fdopen(own_in, "rb"), os.fdopen(own_out, "wb"))
