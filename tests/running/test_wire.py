"""Values survive encoding and decoding unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.running import wire

from .programs import FLOATS, OTHERS, bits


@pytest.mark.parametrize("value", OTHERS, ids=[str(i) for i in range(len(OTHERS))])
def test_values_arrive_unchanged(value: Any) -> None:
    arrived = wire.unframe(wire.frame(value)[8:])
    assert arrived == value
    assert type(arrived) is type(value)
    assert [type(item) for item in arrived] == [type(item) for item in value] if isinstance(value, list) else True


@pytest.mark.parametrize("form", [list, tuple, np.array], ids=["list", "tuple", "array"])
def test_every_bit_of_a_float_arrives(form: Any) -> None:
    arrived = wire.unframe(wire.frame(form(FLOATS))[8:])
    assert list(map(bits, arrived)) == list(map(bits, FLOATS))
    assert list(map(bits, wire.unframe(wire.frame([[x] for x in FLOATS])[8:])[8])) == [bits(FLOATS[8])]


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "f8", "c16", "S3", "U2", ">f8", "M8[ns]", "m8[s]"])
def test_arrays_and_scalars_keep_their_type(dtype: str) -> None:
    array = np.array([[0, 1], [1, 0]]).astype(dtype)
    whole = wire.unframe(wire.frame(array)[8:])
    assert whole.dtype == array.dtype
    assert (whole == array).all()
    scalar = wire.unframe(wire.frame(array[0, 1])[8:])
    assert type(scalar) is type(array[0, 1])
    rows = wire.unframe(wire.frame(list(array[0]))[8:])
    assert [type(item) for item in rows] == [type(item) for item in array[0]]


def test_a_value_without_encoding_is_refused() -> None:
    with pytest.raises(wire.Unsendable, match=r"a builtins\.object cannot be sent"):
        wire.frame([1, {object()}])


@pytest.mark.parametrize("body", [b"", b"?", b"d123", b"s" + b"\xff" * 8, b"l" + b"\x02" + b"\0" * 7 + b"N", b"NN"])
def test_invalid_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        wire.unframe(body)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Decimal", ["x"]),
        ("Fraction", [1, 0]),
        ("timedelta", [10**12]),
        ("date", ["x"]),
        ("set", [[]]),
        ("eval", ["1"]),
    ],
)
def test_impossible_values_of_the_standard_library_are_refused(name: str, parts: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        wire.unframe(b"v" + wire.frame(name)[8:] + wire.frame(parts)[8:])


def test_equal_sets_have_equal_bytes() -> None:
    """The order of a set depends on its history, and the order of texts differs from process to process."""
    first, second = set(range(0, 16, 8)), set(range(8, -1, -8))
    assert list(first) != list(second)
    assert wire.frame(first) == wire.frame(second)


@pytest.mark.parametrize(
    ("tag", "dtype", "shape", "content"),
    [
        (b"z", "f8,(", [1], bytes(8)),  # numpy raises SyntaxError
        (b"Z", "<U1", [1], b"\x00\x00\x11\x00"),  # no such character; numpy raises SystemError
        (b"Z", "<f8", [10**12, 0], b""),  # would become a list of 10**12 empty arrays
    ],
)
def test_arrays_that_numpy_cannot_hold_are_refused(tag: bytes, dtype: str, shape: list[int], content: bytes) -> None:
    array = b"a" + b"".join(wire.frame(part)[8:] for part in (dtype, tuple(shape), content))
    with pytest.raises(ValueError, match=r"not an encoded value|one dimension"):
        wire.unframe(tag + array)
