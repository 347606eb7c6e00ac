"""Data frames and series of pandas and polars: rows and their names count, and their order does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import polars
import pytest

from dpaudit.outputs.parts import parts_of
from dpaudit.outputs.tables import Parts
from dpaudit.values import Feature

OUT: Feature = ("output",)


def at(step: str) -> Feature:
    return ("{}[{}]", OUT, step)


def same(first: Parts, second: Parts) -> bool:
    return (first.numbers, first.labels, first.counts) == (second.numbers, second.labels, second.counts)


def test_the_order_of_rows_carries_nothing_but_their_names_do() -> None:
    totals = pandas.DataFrame({"people": [3, 5], "age": [1.5, 2.5]}, index=["Ulm", "Bonn"])
    assert same(parts_of(totals), parts_of(totals.iloc[::-1]))
    assert not same(parts_of(totals), parts_of(totals.rename({"Ulm": "Jena"})))
    assert not same(parts_of(totals), parts_of(totals.set_index(totals.index[::-1])))
    parts = parts_of(totals)
    assert parts.numbers[("{}[{}]", at("people"), "Ulm")] == 3
    assert parts.counts[("number of rows named {} in {}", "Bonn", OUT)] == 1


def test_row_numbers_are_not_row_names() -> None:
    plain = pandas.DataFrame({"people": [3, 5]})
    assert not [name for name in parts_of(plain).counts if "named" in name[0]]
    assert [
        name for name in parts_of(plain[plain.people > 3]).counts if name[:2] == ("number of rows named {} in {}", 1)
    ]
    assert same(parts_of(pandas.Series([1.0, 2.0])), parts_of(np.array([1.0, 2.0])))


def test_a_series_with_names_is_read_as_a_dict() -> None:
    parts = parts_of(pandas.Series({"a": 1.5, "b": 2.5}))
    assert parts.labels[("type of {}", OUT)] == ("series",)
    assert (parts.numbers[at("b")], parts.counts[("{} in {}", "a", OUT)]) == (2.5, 1)
    named = parts_of(pandas.Series([1.0, 2.0], index=["a", "a"]))
    assert named.counts[("number of rows named {} in {}", "a", OUT)] == 2


@pytest.mark.parametrize("library", [pandas, polars])
def test_missing_numbers_are_counted(library: Any) -> None:
    frame = library.DataFrame({"n": [1.5, None, 2.5]})
    nullable = frame.convert_dtypes() if library is pandas else frame
    for each in (frame, nullable, pandas.DataFrame({"n": [1.5, None, 2.5]}, dtype=object)):
        parts = parts_of(each)
        assert parts.counts[("missing values of {}", at("n"))] == 1
        assert parts.numbers[("sum of {}", at("n"))] == 4.0
    assert parts_of(pandas.NA).labels == {("type of {}", OUT): ("missing",)}


def test_integers_of_any_size_keep_their_bits() -> None:
    frames = [pandas.DataFrame({"n": [10**400, 2**60 + k]}, dtype=object) for k in (0, 1)]
    assert not same(*map(parts_of, frames))


class Tensor:
    """An array of another library, of any shape."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values


@pytest.mark.parametrize("values", [2.5, [1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]], []])
def test_arrays_of_other_libraries_are_read_whole(values: Any) -> None:
    assert same(parts_of(Tensor(values)), parts_of(np.asarray(values)))


def test_a_frame_of_any_size_has_a_bounded_number_of_parts() -> None:
    rows = 20_000
    frame = pandas.DataFrame({"n": np.arange(rows)}, index=[f"row {i}" for i in range(rows)])
    for large in (frame, frame["n"]):
        parts = parts_of(large)
        assert len(parts.numbers) + len(parts.labels) + len(parts.counts) < 5000
