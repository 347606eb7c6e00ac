"""Labels, errors and reports state the difference between long datasets in words.  The tests use no randomness."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit import AuditResult, Pair, SearchPairs, audit
from dpaudit.config.files import read_configs
from dpaudit.config.planned import ConfigError
from dpaudit.pairs.difference import difference
from dpaudit.pairs.pair import contradiction

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
    polars = pytest.importorskip("polars")
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
    assert all(f"d0 with a difference: “{change}”" in words for words in table)


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
