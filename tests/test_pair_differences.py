"""Labels, errors and reports state the difference between long datasets in words.  The tests use no randomness."""

import dataclasses
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pandas as pd
import polars
import pytest

from dpaudit import AuditResult, Pair, SearchPairs, audit
from dpaudit.config.files import read_configs
from dpaudit.config.planned import ConfigError
from dpaudit.engine.independence import pool_words
from dpaudit.pairs.difference import difference
from dpaudit.pairs.pair import contradiction
from dpaudit.running.fingerprint import fingerprint
from dpaudit.values import key

from .reports.audits import text_of

RECORDS = [{"sex": "f", "age": age} for age in range(30)]
MORE = [*RECORDS, {"sex": "m", "age": 31}]
ADDED = "record 31 added: {'sex': 'm', 'age': 31}"
ZEROS, ONE = np.zeros(5_000), np.zeros(5_000)
ONE[2_500] = 1
WIDE = np.zeros((5_000, 3))
TWO = WIDE.copy()
TWO[3, 1], TWO[6, 0] = 1, 2
PIXELS = np.zeros((9, 800))
PIXEL = PIXELS.copy()
PIXEL[3, 7] = 1
FRAME = pd.DataFrame(RECORDS)
OLDER = FRAME.copy()
OLDER.loc[3, "age"] = 99
GAPS = pd.DataFrame({"a": [1, pd.NA, np.nan] * 30})
FILLED = pd.DataFrame({"a": [1, pd.NA, 2] + [1, pd.NA, np.nan] * 29})
TEXT = "x" * 50

DIFFERENCES: dict[str, tuple[Any, Any, str]] = {
    "record removed": (tuple(MORE), tuple(RECORDS), "record 31 removed: {'sex': 'm', 'age': 31}"),
    "record inserted": ([0] * 90, [0] * 40 + [7] + [0] * 50, "record 41 added: 7"),
    "records added": ([0] * 90, [0] * 90 + [7, 8], "records 91 to 92 added; the first: 7"),
    "record replaced": ([0] * 90, [0] * 40 + [7] + [0] * 49, "record 41: 0 -> 7"),
    "many records": ([0] * 90, [0] * 40 + [7] * 50, "50 of 90 records differ; the first, record 41: 0 -> 7"),
    "part of a record": ([RECORDS], [RECORDS[:-1]], "record 1, record 30 removed: {'sex': 'f', 'age': 29}"),
    "NaN": ([float("nan")] * 90, [float("nan")] * 89 + [1.0], "record 90: nan -> 1.0"),
    "element": (ZEROS, ONE, "element [2500]: 0.0 -> 1.0"),
    "rows": (WIDE, TWO, "rows 4 and 7 differ (2 of 5,000); the first: [0.0, 0.0, 0.0] -> [0.0, 1.0, 0.0]"),
    "row": (PIXELS, PIXEL, "row 4, element [7]: 0.0 -> 1.0"),
    "row removed": (TWO, np.delete(TWO, 3, axis=0), "row 4 removed: [0.0, 1.0, 0.0]"),
    "type of the elements": (ZEROS, ZEROS.astype(np.float32), "type of the elements: float64 -> float32"),
    "row of a frame": (FRAME, pd.DataFrame(MORE), "row 31 added: {'sex': 'm', 'age': 31}"),
    "cell of a frame": (FRAME, OLDER, "row 4: {'sex': 'f', 'age': 3} -> {'sex': 'f', 'age': 99}"),
    "missing cells": (GAPS, FILLED, "row 3: {'a': nan} -> {'a': 2}"),
    "index": (FRAME, FRAME.set_index(FRAME.index + 1), "the values are equal, but the index differs"),
    "series": (FRAME["age"], OLDER["age"], "record 4: 3 -> 99"),
    "key": (dict.fromkeys(range(50), 0), dict.fromkeys(range(51), 0), "key 50 added: 0"),
    "value": ({"a": RECORDS, "b": ZEROS}, {"a": RECORDS, "b": ONE}, "key 'b', element [2500]: 0.0 -> 1.0"),
    "order": ({"a": TEXT, "b": 0}, {"b": 0, "a": TEXT}, "the order of the keys differs"),
    "text": (TEXT + "a" + TEXT, TEXT + "b" + TEXT, "from character 51: 'a' -> 'b'"),
    "set": (set(range(90)), set(range(91)), "90 added"),
}  # fmt: skip


@pytest.mark.parametrize("what", DIFFERENCES)
def test_the_difference_of_long_datasets_is_stated(what: str) -> None:
    d0, d1, words = DIFFERENCES[what]
    assert difference(d0, d1) == words
    assert str(Pair(d0, d1)).endswith(f" | {words}")
    assert difference(d0, d0) == ""


def test_frames_of_polars_are_compared() -> None:
    d0, d1 = polars.DataFrame(RECORDS), polars.DataFrame(MORE)
    assert str(Pair(d0, d1)).endswith(" | row 31 added: {'sex': 'm', 'age': 31}")
    assert difference(d1["age"], d0["age"]) == "record 31 removed: 31"
    assert difference(d0, d0.clone()) == ""


def test_short_datasets_are_shown_in_full() -> None:
    assert str(Pair([0], [1])) == "[0] | [1]"
    assert str(Pair(RECORDS, MORE, label="mine")) == "mine"


@pytest.mark.chance
def test_a_difference_is_limited_in_length_and_time() -> None:
    """The limit of 5 s of processor time is more than ten times the time that is needed."""
    assert len(difference([TEXT * 99] * 99, [*[TEXT * 99] * 98, 0])) <= 160
    began = time.process_time()
    assert difference([0] * 2 * 10**6, [1] * 2 * 10**6) == ""
    assert difference([0] * 2 * 10**6, [1] * (2 * 10**6 + 1)) == "2,000,000 -> 2,000,001 records"
    assert difference(np.zeros((2 * 10**7, 1), np.int8), np.ones((2 * 10**7, 1), np.int8)) == ""
    deep: list[Any] = [0] * 99
    other: list[Any] = [1] + [0] * 98
    for _ in range(50):
        deep, other = [deep], [other]
    assert difference(deep, other).startswith("record 1, record 1, ")
    assert time.process_time() - began < 5


def total(dataset: Any, rng: np.random.Generator) -> float:
    return float(len(dataset) + np.sum(dataset == 1) + rng.normal() / 10)


def audited(pair: Pair) -> AuditResult:
    return audit(total, "gaussian(mu=0.1)", pair, attacks="median_clipped", trials=300, seed=0, confirm="never")


@pytest.mark.parametrize("label", ["", "mine"])
@pytest.mark.parametrize(("d0", "d1", "change"), [(RECORDS, MORE, ADDED), (ZEROS, ONE, DIFFERENCES["element"][2])])
def test_a_report_names_the_difference_in_the_answers_and_in_the_table(
    d0: Any, d1: Any, change: str, label: str
) -> None:
    result = audited(Pair(d0, d1, label=label))
    (row,) = result.pairs
    assert row.difference == change
    assert row.label.endswith(label or change)
    assert AuditResult.from_dict(result.to_dict()).pairs == result.pairs
    found = text_of(result)
    data = found.split("Data ")[1]
    assert change in data.split("Not covered")[0]
    table = found.split(" Pairs Pair ")[1:]
    assert bool(table) is (d0 is RECORDS)  # the first page shows the short text of the array in full
    assert all(f"with a difference: “{change}”" in words for words in table)


def test_errors_name_the_difference() -> None:
    with pytest.raises(ValueError, match=r"of pair .* \| record 91 added: Generator.* contains a random generator"):
        audited(Pair([0] * 90, [*[0] * 90, np.random.default_rng(0)]))


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (
            Pair([0], [1], relation="add_remove"),
            "d0 has 1 record and d1 has 1 (rows or items count as records): no record was added or removed",
        ),
        (Pair([0, 1], [0], relation="replace_one"), "replace_one, but d0 has 2 records and d1 has 1"),
        (Pair(np.zeros((3, 2)), np.zeros((5, 2)), relation="add_remove"), "neighbours differ by one record"),
        (Pair([0, 1], [0], relation="add_remove"), ""),
        (Pair((0, 1), (0, 2), relation="replace_one"), ""),
        (Pair(100, 101, relation="add_remove"), ""),
        (Pair({"a": 1}, {"a": 1, "b": 2}, relation="replace_one"), ""),
        (Pair([0], [1, 2, 3]), ""),
        (
            Pair([0, 0, 0], [0, 0, 1, 1], relation="add_remove"),
            "d1 lacks 1 of d0's records and d0 lacks 2 of d1's records",
        ),
        (Pair([0, 0, 0], [0, 1, 1], relation="replace_one"), "d0 and d1 differ in 2 records"),
        (Pair([0, 1, 2], [2, 1, 0], relation="replace_one"), ""),
        (Pair([1, float("nan")], [float("nan"), 2], relation="replace_one"), ""),
        (Pair([{"a": 1}, {"a": 2}], [{"a": 1}], relation="add_remove"), ""),
        (Pair([object(), 1], [object(), 2], relation="replace_one"), ""),
    ],
)
def test_a_relation_that_contradicts_the_pair_is_doubted(pair: Pair, words: str) -> None:
    assert words in contradiction(pair)
    assert bool(words) == bool(contradiction(pair))


def test_a_pair_that_contradicts_its_relation_is_refused_before_any_run() -> None:
    calls: list[object] = []
    wrong, right = Pair([0, 1], [0], relation="replace_one"), Pair([0], [1])
    for pairs, name in ((wrong, "pairs"), ([right, wrong], r"pairs\[1\]")):
        with pytest.raises(
            ValueError, match=f"^{name}: the relation is replace_one, but d0 has 2 records and d1 has 1"
        ):
            audit(lambda d, rng: calls.append(d), "gaussian(mu=1)", pairs, trials=40, seed=0)
    assert not calls


def test_in_a_config_the_error_names_the_pair(tmp_path: Path) -> None:
    file = tmp_path / "audit.yaml"
    file.write_text(
        "name: noise\nclaim: gaussian(mu=1)\nmechanism: {builtin: gaussian, params: {sigma: 1.0}}\n"
        "pairs:\n  - {d0: [0], d1: [1]}\n  - {d0: [0], d1: [0, 1, 1], relation: add_remove}\n"
    )
    with pytest.raises(ConfigError, match=r"audit.yaml:6: pairs\[1\]: the relation is add_remove, .*is unspecified"):
        read_configs([file])


@pytest.mark.parametrize("relation", ["add_remove", "replace_one", "one_value", "all_values"])
def test_pairs_of_a_search_are_not_doubted(relation: Any) -> None:
    assert not any(contradiction(pair) for pair in SearchPairs(relation=relation, size=4, bounds=(0, 1)))


def test_records_that_are_shared_at_the_ends_do_not_hide_a_contradiction() -> None:
    """The records are the same objects in both lists, as in neighbours that were made from one file."""
    rows = [{"a": 1}, {"a": 1}, {"a": 2}, {"a": 3}]
    assert contradiction(Pair(rows, [rows[0], rows[2], rows[3]], "add_remove")) == ""
    assert contradiction(Pair(rows, [*rows, rows[0]], "add_remove")) == ""
    assert contradiction(Pair(rows, [rows[0], {"a": 9}, *rows[2:]], "replace_one")) == ""
    assert "differ in 2 records" in contradiction(Pair(rows, [rows[0], {"a": 9}, {"a": 9}, rows[3]], "replace_one"))
    assert "d0 lacks 1" in contradiction(Pair(rows, [rows[0], {"a": 9}, rows[3]], "add_remove"))


# --- outputs have equal keys if and only if their contents are equal, however long they are


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
