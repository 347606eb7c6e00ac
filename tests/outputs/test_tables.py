"""Tables of any library: the same columns, whatever the type of the table, with dates, nested and missing values."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import polars
import pytest

from dpaudit import Pair, audit
from dpaudit.outputs.entries import Raised, label_of
from dpaudit.outputs.parts import parts_of
from dpaudit.outputs.tables import MAX_ROWS, Parts, frame_columns, mapping_columns, read_column
from dpaudit.values import OUTPUT, words

CITIES = ["Ulm", "Bonn", "Ulm"]
AGES = [31.0, float("nan"), 40.5]
BORN = [datetime.date(1990, 1, 2), None, datetime.date(1980, 3, 4)]
ROWS = [{"city": c, "age": a, "born": b} for c, a, b in zip(CITIES, AGES, BORN, strict=True)]
TABLES: dict[str, Any] = {
    "pandas": pandas.DataFrame({"city": CITIES, "age": AGES, "born": pandas.to_datetime(BORN)}),
    "pandas, objects": pandas.DataFrame({"city": CITIES, "age": AGES, "born": pandas.Series(BORN, dtype=object)}),
    "polars": polars.DataFrame({"city": CITIES, "age": AGES, "born": BORN}),
    "structured array": np.array(
        list(zip(CITIES, AGES, np.array(BORN, dtype="M8[D]"), strict=True)),
        dtype=[("city", "U9"), ("age", "f8"), ("born", "M8[D]")],
    ),
    "rows": ROWS,
    "columns": {"city": CITIES, "age": AGES, "born": BORN},
}


def named(features: Any) -> dict[str, Any]:
    return {words(feature): value for feature, value in features.items()}


@pytest.mark.parametrize("kind", list(TABLES))
def test_tables_of_all_kinds_hold_the_same_columns(kind: str) -> None:
    table = parts_of(TABLES[kind]).tables[OUTPUT]
    assert table.rows == 3
    assert np.array_equal(table.numbers["age"], AGES, equal_nan=True)
    assert [table.categories["city"]["'Ulm'"] == code for code in table.codes["city"]] == [True, False, True]
    assert table.times == {"born"}
    days = table.numbers["born"] / 86_400e6
    assert days[0] == datetime.date(1990, 1, 2).toordinal() - datetime.date(1970, 1, 1).toordinal()
    assert np.isnan(days[1])


@pytest.mark.parametrize("kind", list(TABLES)[:-1])
def test_marginals_and_domains_are_parts(kind: str) -> None:
    parts = parts_of(TABLES[kind])
    counts = named(parts.counts)
    assert counts["number of 'Ulm' in output['city']"] == 2
    assert counts["missing values of output['age']"] == counts["missing values of output['born']"] == 1
    assert named(parts.numbers)["least of output['age']"] == 31
    assert named(parts.numbers)["mean of output['age']"] == 35.75
    assert named(parts.numbers)["largest number of equal rows of output"] == 1


def test_the_order_of_rows_of_an_array_carries_nothing() -> None:
    array = TABLES["structured array"]
    first, second = parts_of(array), parts_of(array[::-1])
    assert (first.numbers, first.labels, first.counts) == (second.numbers, second.labels, second.counts)
    assert named(parts_of(ROWS).labels)["output[0]['city']"] == "Ulm"  # but the order of a list is part of the output


@pytest.mark.parametrize(
    ("entries", "labels"),
    [
        ([[1, 2], [3], [1, 2]], ["(1, 2)", "(3)"]),
        ([{"a": 1}, {"a": 2}, {"a": 1}], ["(('a', 1))", "(('a', 2))"]),
        (polars.Series([[1, 2], [3], [1, 2]]), ["(1, 2)", "(3)"]),
        (polars.Series([{"a": 1}, {"a": 2}, {"a": 1}]), ["(('a', 1))", "(('a', 2))"]),
        ([True, "1", True], ["True", "'1'"]),
        ([datetime.time(1), datetime.timedelta(2), datetime.time(1)], ["01:00:00", "2 days, 0:00:00"]),
    ],
)
def test_nested_and_mixed_values_are_categories(entries: Any, labels: list[str]) -> None:
    found = read_column(entries)
    assert [label_of(value) for value in found.values] == labels
    assert found.codes.tolist() == [0, 1, 0]
    assert found.counts.tolist() == [2, 1]


def test_exact_numbers_and_times_with_a_zone_are_numbers() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=1))
    for entries, first in (([datetime.datetime(1970, 1, 1, 1, tzinfo=zone), None], 0), ([Decimal("0.5"), None], 0.5)):
        found = read_column(entries).numbers
        assert found is not None
        assert np.array_equal(found, [first, np.nan], equal_nan=True)
    assert read_column([2**60, 2**60 + 1]).counts.tolist() == [1, 1]
    assert read_column([10**30, 10**30 + 1]).numbers is None


def test_columns_with_one_title_are_all_read() -> None:
    frame = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    assert [entries.values for entries in frame_columns(frame).values()] == [[1], [2]]
    assert list(frame_columns(frame)) == ["a", "a (2)"]


@pytest.mark.parametrize("mapping", [{}, {"a": [1], "b": [1, 2]}, {"a": "xy"}, {"a": [1], "b": 2}])
def test_other_dicts_are_no_tables(mapping: Any) -> None:
    assert mapping_columns(mapping) is None
    assert not parts_of(mapping).tables


@pytest.mark.parametrize("empty", [pandas.DataFrame(), pandas.DataFrame({"a": []}), polars.DataFrame({"a": []}), []])
def test_an_empty_table_is_read(empty: Any) -> None:
    assert isinstance(parts_of(empty), Parts)


def test_a_large_table_keeps_its_marginals_and_evenly_spaced_rows() -> None:
    rows = 8 * MAX_ROWS - 10
    numbers = np.repeat([0.0, 7.0], [rows - 1, 1])
    parts = parts_of(pandas.DataFrame({"n": numbers}))
    assert parts.tables[OUTPUT].rows == MAX_ROWS
    assert parts.tables[OUTPUT].numbers["n"].nbytes == MAX_ROWS
    assert parts.tables[OUTPUT].numbers["n"][-1] == 7
    half = parts_of(pandas.DataFrame({"n": np.arange(rows) < rows // 2})).tables[OUTPUT].numbers["n"]
    assert abs(half.mean() - 0.5) < 1e-4
    assert (named(parts.numbers)["rows of output"], named(parts.counts)["number of 7.0 in output['n']"]) == (rows, 1)


_RAISED = {"raised": "ValueError", "message": "need at least 5 rows"}


def test_a_dict_of_an_exception_has_the_parts_of_an_exception() -> None:
    assert parts_of(_RAISED) == parts_of(Raised("ValueError", "need at least 5 rows"))
    assert parts_of({"raised": 1, "message": "a"}).labels[("type of {}", OUTPUT)] == ("dict",)


def test_the_witness_states_the_exception_instead_of_a_query() -> None:
    """Every output shows the dataset."""

    def fitted(rows: list[int], rng: np.random.Generator) -> object:
        return pandas.DataFrame({"age": rng.normal(9, 1, 5)}) if len(rows) == 5 else _RAISED

    for pair, sides in (
        (Pair([1] * 4, [1] * 5, "add_remove"), ("raised ValueError: 'need at least 5 rows'", "a table")),
        (Pair([1] * 5, [1] * 4, "add_remove"), ("a table", "raised ValueError: 'need at least 5 rows'")),
    ):
        result = audit(fitted, "pure(epsilon=1)", pair, attacks="logistic", trials=60, seed=1, confirm="never")
        assert result.violated
        assert result.witness is not None
        assert result.witness.outcomes
        assert result.witness.query.startswith(f"{sides[0]} ")
        assert f", {sides[1]} " in result.witness.query
        assert "raised ValueError" in result.witness.region
        assert f"; output: {result.witness.query}" in str(result)
