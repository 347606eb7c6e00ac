"""Labels, errors and reports state the difference between long datasets in words.  The tests use no randomness."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit import AuditResult, Pair, audit
from dpaudit.pairs.difference import difference

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


class Hostile:
    def __repr__(self) -> str:
        return "?" * 99

    def __reduce_ex__(self, _: Any) -> Any:
        raise RuntimeError

    def __eq__(self, _: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.chance
def test_a_difference_is_limited_in_length_and_time() -> None:
    """The limit of 5 s of processor time is more than ten times the time that is needed."""
    assert str(Pair(Hostile(), Hostile())) == f"{'?' * 39}… | {'?' * 39}…"
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
    data = found.split("On what data")[1]
    assert change in data.split("What could not be seen")[0]
    table = found.split("Pairs of neighbouring datasets")[1:]
    assert bool(table) is (d0 is RECORDS)  # the first page shows the short text of the array in full
    assert all(f"d0 with a difference: “{change}”" in words for words in table)


def test_errors_name_the_difference() -> None:
    with pytest.raises(ValueError, match=r"of pair .* \| record 91 added: Generator.* contains a random generator"):
        audited(Pair([0] * 90, [*[0] * 90, np.random.default_rng(0)]))
