"""Outputs have equal keys if and only if their contents are equal, however long they are."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import polars
import pytest

from dpaudit.engine.independence import pool_words
from dpaudit.running.fingerprint import fingerprint
from dpaudit.values import key


@dataclasses.dataclass
class Release:
    """An object whose `repr` shows its numbers, but omits numbers of a long array."""

    numbers: Any


class Plain:
    """An object whose `repr` shows only an address."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers


class Unpicklable:
    """An object with a lambda, which cannot be pickled, so that the key is computed from the `repr`."""

    def __init__(self, numbers: Any) -> None:
        self.text, self.cannot = str(numbers[1000]), lambda: None

    def __repr__(self) -> str:
        return self.text


def frame(x: Any) -> Any:
    return pandas.DataFrame(
        {"n": x, "name": [f"row {round(n)}" for n in x], "kind": pandas.Categorical(np.where(x < 9, "low", "high"))}
    )


MAKERS: dict[str, Callable[[Any], Any]] = {
    "array": lambda x: x,
    "array of objects": lambda x: np.array([str(n) for n in x], dtype=object),
    "number": lambda x: x[1000],
    "dict of arrays": lambda x: {"sums": x, "kind": "x"},
    "list": lambda x: x.tolist(),
    "set": lambda x: {f"{n}" for n in x},
    "dataclass": Release,
    "object": Plain,
    "not to be pickled": Unpicklable,
    "frame of pandas": frame,
    "frame of pandas with row names": lambda x: frame(x).set_index("name"),
    "series of pandas": pandas.Series,
    "frame of polars": lambda x: polars.DataFrame({"n": x, "name": ["a"] * len(x)}),
}


@pytest.mark.parametrize("name", MAKERS)
def test_keys_are_equal_if_and_only_if_contents_are(name: str) -> None:
    numbers = np.arange(2000.0)
    other = numbers.copy()
    other[1000] = 7.5
    make = MAKERS[name]
    output = make(numbers)
    found = key(output)
    assert found == key(make(numbers.copy()))
    assert found != key(make(other))
    if name != "not to be pickled":
        assert found == key(pickle.loads(pickle.dumps(output)))  # as in another process


def test_shapes_and_types_of_arrays_count() -> None:
    arrays = [np.zeros((2, 3)), np.zeros((3, 2)), np.zeros((2, 3), dtype=np.int64)]
    assert len(set(map(key, arrays))) == 3
    assert len({key({"x": array}) for array in arrays}) == 3


def test_short_arrays_of_other_types_or_shapes_with_equal_bytes_differ() -> None:
    assert key(np.zeros(4, dtype=np.float64)) != key(np.zeros(4, dtype=np.int64))
    assert key(np.zeros(4, dtype=np.float64)) != key(np.zeros(8, dtype=np.float32))
    assert key(np.zeros(4000, dtype=np.float64)) != key(np.zeros(4000, dtype=np.int64))
    assert key(np.float64(0)) != key(np.zeros(1))


def test_equal_numbers_and_nans_have_one_key_and_the_order_of_a_dict_counts() -> None:
    assert len({key(value) for value in (True, 1, 1.0, np.float32(1), "1", 0.0, -0.0)}) == 7
    assert key(1.0) == key(np.float64(1)) == key(1.0 + 0)
    assert key(float("nan")) == key(float("-nan")) != key("nan")
    assert key({"a": 1, "b": {2: 3}}) == key({"a": 1, "b": {2: 3}}) != key({"b": {2: 3}, "a": 1})
    assert key(Plain({"a": 1, "b": 2})) == key(Plain({"a": 1, "b": 2})) != key(Plain({"b": 1, "a": 2}))


def test_what_lies_elsewhere_in_memory_or_was_looked_at_has_the_same_key() -> None:
    square = np.arange(100.0).reshape(10, 10)
    assert key({"x": square[:, 0]}) == key({"x": square[:, 0].copy()})
    assert key({"x": square.T}) == key({"x": square.T.copy()})
    word = "".join(["a", "b"])
    assert key([word, word]) == key([word, "".join(["a", "b"])])
    table = frame(square.ravel())
    before = key(table)
    assert table.loc[3, "name"] == "row 3"
    assert table.index.is_unique
    assert key(table) == before == key(table.copy())


def test_long_frames_that_differ_in_the_middle_are_no_pool() -> None:
    """The first row has one of 20 values, and noise is in the middle only, which `repr` leaves out."""
    rng = np.random.default_rng(0)

    def release() -> Any:
        column = np.zeros(200)
        column[0] = rng.integers(20) / 7
        column[100] = rng.normal()
        return pandas.DataFrame({"n": column})

    sides = [[release() for _ in range(60)] for _ in range(2)]
    assert not pool_words(sides, ([0], [1]))
    repeated = [[frame for frame in side[:5] for _ in range(4)] for side in sides]
    assert pool_words(repeated, ([0], [1]))


@pytest.mark.parametrize("other", [["a"] * 299 + ["b"], ["aa"] + ["a"] * 298, ["a"] * 301, ["a"] * 299 + [None]])
def test_long_lists_of_texts_differ_if_one_text_differs(other: list[Any]) -> None:
    texts: list[Any] = ["a"] * 300
    assert fingerprint(texts) == fingerprint(list(texts))
    assert fingerprint(texts) != fingerprint(other)
    assert key(np.array(texts, dtype=object)) == key(np.array(list(texts), dtype=object))
    assert key(np.array(texts, dtype=object)) != key(np.array(other, dtype=object))
