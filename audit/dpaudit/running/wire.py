"""Encodes values as bytes for pipes between processes, for stores, and for the fingerprint of all outputs.

`worker` loads this file by its path, so it needs only the standard library of Python 3.8 or later, and perhaps numpy.
A frame is a length of 8 bytes (little-endian) and one encoded value, which is a tag byte and its content.  Numbers are
stored in the byte order of the machine (IEEE 754 for floats), with every bit.  The tags are:

    N T F           None, True, False           s b   text (UTF-8), bytes; after their length
    i I             int64; any other int        l t   list, tuple; after their number of items
    d               float64                     m     dict: keys and values in turn
    D Q             list of only float / int64  a     numpy array: dtype, shape, bytes
    z               numpy scalar                Z     list of numpy scalars of one dtype, as an array
    v               value of another type (`_TYPES`): name of the type, list of the parts of the value
"""

from __future__ import annotations

import array
import os
import pickle
import struct
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

try:
    import numpy
except ImportError:  # not every environment has numpy
    numpy = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from dpaudit.values import Any

HEADER = struct.Struct("<q")
_UNREADABLE = (
    struct.error, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, SyntaxError, SystemError,
    MemoryError,
)  # fmt: skip
_SIZE = struct.Struct("=q")
_DOUBLE = struct.Struct("=d")
_INT64 = range(-(2**63), 2**63)
# For each type: the function that returns the parts of a value, and the function that makes an equal value from them.
_TYPES: dict[type, tuple[Callable[[Any], list[Any]], Callable[..., Any]]] = {
    complex: (lambda value: [value.real, value.imag], complex),
    Decimal: (lambda value: [str(value)], Decimal),
    Fraction: (lambda value: [value.numerator, value.denominator], Fraction),
    date: (lambda value: [value.isoformat()], date.fromisoformat),
    datetime: (lambda value: [value.isoformat()], datetime.fromisoformat),
    timedelta: (lambda value: [value.days, value.seconds, value.microseconds], timedelta),
    set: (lambda value: sorted(value, key=frame), lambda *items: set(items)),
    frozenset: (lambda value: sorted(value, key=frame), lambda *items: frozenset(items)),
}
_FROM_BYTES: dict[str, Callable[[memoryview], Any]] = {
    "s": lambda content: str(content, "utf-8", "surrogatepass"),
    "b": bytes,
    "I": lambda content: int.from_bytes(content, "little", signed=True),
    "D": lambda content: array.array("d", bytes(content)).tolist(),
    "Q": lambda content: array.array("q", bytes(content)).tolist(),
}
_MAKERS = {kind.__name__: made for kind, (_, made) in _TYPES.items()}


def register(kind: type, values_of: Callable[[Any], list[Any]], made_from: Callable[..., Any]) -> None:
    """Let this process encode a type of dpaudit, which private environments do not know."""
    _TYPES[kind], _MAKERS[kind.__name__] = (values_of, made_from), made_from


def own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return the streams of requests and answers.  What a mechanism prints goes to stderr, and its stdin is empty."""
    own_in, own_out = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return os.fdopen(own_in, "rb"), os.fdopen(own_out, "wb")


def received(requests: BinaryIO) -> bytes | None:
    """Return the content of the next frame, or None at the end of the stream."""
    header = requests.read(HEADER.size)
    return requests.read(HEADER.unpack(header)[0]) if len(header) == HEADER.size else None


def frame_size(heard: bytearray, _: int) -> int:
    """Return the size of the frame at the start of a buffer, or 0 if the frame is incomplete."""
    size = HEADER.size + HEADER.unpack_from(heard)[0] if len(heard) >= HEADER.size else 0
    return size if len(heard) >= size else 0


class Unsendable(Exception):
    """Raised if a value has no encoding.  The message names the type of the value."""


def frame(value: object) -> bytes:
    """Return a value as a frame, which consists of the length and the encoding."""
    out = bytearray(HEADER.size)
    try:
        _encode(value, out)
    except RecursionError:
        raise Unsendable("the value is nested too deeply to be sent between environments; use fewer levels") from None
    HEADER.pack_into(out, 0, len(out) - HEADER.size)
    return bytes(out)


def unframe(body: bytes) -> Any:
    """Return the value in a frame."""
    try:
        value, end = _decode(memoryview(body), 0)
    except _UNREADABLE as error:
        raise ValueError(f"the bytes are not an encoded value: {error}") from None
    if end != len(body):
        raise ValueError(f"{len(body) - end} bytes follow the value")
    return value


def differ(value: Any, copy: Any) -> bool:
    """Whether a copy of a value certainly has another content now."""
    try:
        known = pickle.dumps(value)
    except Exception:  # pickling runs code of the value's classes
        return False
    try:
        return known != pickle.dumps(copy) and frame(value) != frame(copy)
    except Exception:  # pickles may differ in the order of sets, and not all values have a frame
        with suppress(Exception):
            return bool(value != copy)
        return True


def _encode(value: Any, out: bytearray) -> None:
    kind = type(value)
    if value is None:
        out += b"N"
    elif kind is bool:
        out += b"T" if value else b"F"
    elif kind is float:
        out += b"d" + _DOUBLE.pack(value)
    elif kind is int:
        if value in _INT64:
            out += b"i" + _SIZE.pack(value)
        else:
            out += _sized(b"I", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
    elif kind is list:
        _encode_list(value, out)
    elif numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        _encode_numpy(value, out)
    elif isinstance(value, str):
        out += _sized(b"s", value.encode("utf-8", "surrogatepass"))
    elif isinstance(value, (bytes, bytearray, memoryview)):
        out += _sized(b"b", bytes(value))
    elif isinstance(value, (tuple, list)):
        out += (b"t" if isinstance(value, tuple) else b"l") + _SIZE.pack(len(value))
        for item in value:
            _encode(item, out)
    elif isinstance(value, dict):
        out += b"m" + _SIZE.pack(len(value))
        for key, item in value.items():
            _encode(key, out)
            _encode(item, out)
    else:
        _encode_foreign(value, out)


def _encode_foreign(value: Any, out: bytearray) -> None:
    """Encode a value whose type belongs neither to Python nor to numpy."""
    kind = type(value)
    if kind in _TYPES:
        out += b"v"
        _encode(kind.__name__, out)
        _encode(_TYPES[kind][0](value), out)
    elif isinstance(value, int):  # for example an IntEnum
        _encode(int(value), out)
    elif isinstance(value, float):
        _encode(float(value), out)
    elif hasattr(value, "columns") and hasattr(value, "to_dict"):  # data frames of pandas and polars
        _encode({name: value[name].to_list() for name in value.columns}, out)
    elif numpy is not None and hasattr(value, "__array__"):  # a tensor or a series
        _encode_numpy(numpy.asarray(value.detach().cpu() if hasattr(value, "detach") else value), out)
    else:
        raise Unsendable(
            f"a {kind.__module__}.{kind.__qualname__} cannot be sent between environments; use numbers, booleans, "
            "text, bytes, None, dates, numpy arrays, data frames, or lists, tuples, sets and dicts of such values"
        )


def _sized(tag: bytes, content: bytes) -> bytes:
    return tag + _SIZE.pack(len(content)) + content


def _encode_list(value: Any, out: bytearray) -> None:
    """Encode a list of one type as one block, and a repeated text once, because lists may be long."""
    kinds = set(map(type, value))
    if len(kinds) == 1:
        (kind,) = kinds
        if kind is float:
            out += _sized(b"D", array.array("d", value).tobytes())
            return
        if kind is int and min(value) in _INT64 and max(value) in _INT64:
            out += _sized(b"Q", array.array("q", value).tobytes())
            return
        if kind is str:
            known = {text: _sized(b"s", text.encode("utf-8", "surrogatepass")) for text in set(value)}
            out += b"l" + _SIZE.pack(len(value)) + b"".join([known[text] for text in value])
            return
        if numpy is not None and issubclass(kind, numpy.generic):
            together = numpy.array(value)
            if together.dtype.kind in "biufc":
                out += b"Z"
                _encode_numpy(together, out)
                return
    out += b"l" + _SIZE.pack(len(value))
    for item in value:
        _encode(item, out)


def _encode_texts(value: Any, out: bytearray) -> None:
    out += b"l" + _SIZE.pack(len(value))
    known: dict[str, bytes] = {}
    for text in set(value):
        one = bytearray()
        _encode(text, one)
        known[text] = bytes(one)
    out += b"".join([known[text] for text in value])


def _encode_numpy(value: Any, out: bytearray) -> None:
    if value.dtype.kind not in "biufcSUmM":  # objects and records are encoded as Python values
        _encode(value.tolist(), out)
        return
    if isinstance(value, numpy.generic):
        out += b"z"
        value = numpy.asarray(value)
    out += b"a"
    _encode(value.dtype.str, out)
    _encode(list(value.shape), out)
    out += _sized(b"b", value.tobytes())


def _decode(data: memoryview, at: int) -> tuple[Any, int]:
    tag, at = chr(data[at]), at + 1
    if tag in "NTF":
        return {"N": None, "T": True, "F": False}[tag], at
    if tag in "di":
        return (_DOUBLE if tag == "d" else _SIZE).unpack_from(data, at)[0], at + 8
    if tag in _FROM_BYTES:
        (size,) = _SIZE.unpack_from(data, at)
        content, end = data[at + 8 : at + 8 + size], at + 8 + size
        if size < 0 or end > len(data):
            raise ValueError("the value is cut off")
        return _FROM_BYTES[tag](content), end
    if tag in "ltm":
        (size,) = _SIZE.unpack_from(data, at)
        at += 8
        items = []
        for _ in range(2 * size if tag == "m" else size):
            item, at = _decode(data, at)
            items.append(item)
        if tag == "m":
            return dict(zip(items[::2], items[1::2])), at  # noqa: B905  (Python 3.8 has no strict=)
        return (tuple(items) if tag == "t" else items), at
    if tag == "a":
        return _decode_array(data, at)
    if tag == "v":
        name, at = _decode(data, at)
        parts, at = _decode(data, at)
        return _MAKERS[name](*parts), at
    if tag not in "zZ":
        raise ValueError(f"unknown tag {tag!r}")
    value, at = _decode(data, at)
    if numpy is None:
        return value, at
    if tag == "Z" and value.ndim != 1:
        raise ValueError("a list of numbers must have one dimension")
    return (value[()] if tag == "z" else list(value)), at


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
