"""Counting queries of tables: conditions, their choice by past outputs, near copies, and the rows of a pair."""

import datetime
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from scipy.special import gammaln

from dpaudit import Pair
from dpaudit.engine.region import CHANCE, agreement_by_chance, describe_region, query_words
from dpaudit.learning import Learner
from dpaudit.learning.attack import resolve_attacks
from dpaudit.outputs import Outputs, PartsEncoding
from dpaudit.outputs.parts import parts_of
from dpaudit.outputs.queries import Condition, Nearness, Queries, Targets, chosen_queries, proposed
from dpaudit.outputs.tables import Table
from dpaudit.pairs.pair import target_rows
from dpaudit.result.values import Counts, Witness
from dpaudit.values import OUTPUT
from dpaudit_attacks.histogram import TableQueries

ROWS = [{"city": "Ulm", "age": 30.0}, {"city": "Bonn", "age": 40.0}, {"city": "Ulm", "age": None}]
TABLE = parts_of(ROWS).tables[OUTPUT]
NONE: Targets = (None, None)
HALVES = np.repeat([False, True], 20)


def table(rows: Any) -> Table:
    return parts_of(rows).tables[OUTPUT]


@pytest.mark.parametrize(
    ("condition", "words", "holds"),
    [
        (Condition("city", "=", "'Ulm'"), "city = Ulm", [True, False, True]),
        (Condition("age", "above", 35.5), "age above 35.5", [False, True, False]),
        (Condition("age", "at most", 30.0), "age at most 30", [True, False, False]),
        (Condition("age", "=", 40.0), "age = 40", [False, True, False]),
        (Condition("city", "=", "'and 1 = 1'"), "city = 'and 1 = 1'", [False] * 3),
        (Condition("city", "=", "None"), "city = None", [False] * 3),
        (Condition("height", "above", 1.0), "height above 1", [False] * 3),
        (Condition("day", "above", 86_400e6, time=True), "day above 1970-01-02", [False] * 3),
    ],
)
def test_conditions_hold_and_are_readable(condition: Condition, words: str, holds: list[bool]) -> None:
    assert str(condition) == words
    assert condition.holds(TABLE).tolist() == holds


def test_the_query_of_three_columns_that_differs_is_chosen() -> None:
    """Single columns and pairs of columns have one law; fails by chance < 1 in 10**6, since the count is 0 or 3."""
    rng = np.random.default_rng(1)

    def rows(leak: bool) -> list[dict[str, str]]:
        bits = rng.integers(0, 2, (40, 2))
        parity = (bits.sum(axis=1) + leak) % 2
        return [{"a": "pq"[x], "b": "pq"[y], "c": "pq"[z], "d": "r"} for (x, y), z in zip(bits, parity, strict=True)]

    tables = [table(rows(leak)) for leak in HALVES]
    first, *_ = chosen_queries(tables, HALVES, proposed(tables), [])
    assert len({condition.column for condition in first}) == 3


def test_a_chosen_query_counts_as_pandas_does() -> None:
    rng = np.random.default_rng(2)
    frames = [
        pandas.DataFrame({"c": rng.choice(list("xyz"[: 2 + leak]), 30), "n": rng.normal(leak, 1, 30)})
        for leak in HALVES
    ]
    parts = [parts_of(frame) for frame in frames]
    queries = Queries.of(parts, HALVES, ({"c": "x", "n": 0.0}, {"c": "z", "n": 1.0}))
    found = dict(zip(queries.names, queries.features(parts).T, strict=True))
    assert len(found) == len(queries.names)
    assert found["rows with c = z"].tolist() == [(frame.c == "z").sum() for frame in frames]
    name, *_ = [name for name in found if "c = " in name and "n above " in name]
    label, cut = name.split("c = ")[1][0], float(name.split("n above ")[1].split()[0])
    near = [((frame.c == label) & (frame.n > cut)).sum() for frame in frames]
    assert np.abs(found[name] - near).max() <= 1  # the name has six digits of the cut
    assert found["rows equal to the record of d1"].tolist() == [0] * len(frames)


def test_queries_depend_on_one_output_and_on_the_past_only() -> None:
    parts = [parts_of([{"c": "ab"[i % 2], "n": i}]) for i in range(40)]
    encoding = PartsEncoding.of(parts, HALVES)
    strangers = [parts_of(None), parts_of([{"q": [1]}]), parts_of({"c": ["a"] * 100, "n": [2] * 100})]
    together = encoding.queries([*strangers, parts[5]])
    assert np.array_equal(together[-1], encoding.queries([parts[5]])[0], equal_nan=True)
    assert not np.nan_to_num(together[:2]).any()
    assert encoding.queries([]).shape == (0, together.shape[1])


def test_rare_tables_and_tables_that_never_vary_are_no_evidence() -> None:
    rare = [parts_of([{"c": "a"}] if i == 0 else None) for i in range(40)]
    assert PartsEncoding.of(rare, HALVES).queries(rare).shape == (40, 0)
    same = [parts_of(ROWS) for _ in range(40)]
    assert PartsEncoding.of(same, HALVES).queries(same).shape == (40, 0)


def test_tables_of_one_dataset_have_queries_although_the_other_never_gives_any() -> None:
    """A generator that always fails on d0, and in every third run on d1; a table in fewer outputs has no queries."""
    some = [
        parts_of({"city": ["a", "b"][: 1 + i % 2]}) if side and i % 3 else parts_of(None)
        for i, side in enumerate(HALVES)
    ]
    assert PartsEncoding.of(some, HALVES).queries(some).shape[1]
    none = TableQueries().fit(np.zeros((5, 0)), np.zeros((5, 0)), np.random.default_rng(0))
    assert not none(np.zeros((3, 0))).any()


def test_the_distance_to_a_record_is_that_of_gower() -> None:
    near = Nearness.of({"city": "Ulm", "age": 40}, [TABLE], "the record")
    assert np.allclose(near.of_table(TABLE), [0.5, 0.5, 0.5])  # ages of the range 10: 1, 0, missing; cities 0, 1, 0
    assert near.near(table([{"city": "Ulm", "age": 40}, {"city": "Ulm", "age": 38}, {"age": 40}])) == [1, 2, 2, 0]
    assert near.names("rows")[0] == "rows equal to the record"
    assert np.isnan(near.near(None)[-1])


BORN = datetime.date(2000, 1, 1)
OLD, NEW = {"a": 1, "b": "x"}, {"a": 2, "b": BORN}
AS: list[Any] = [
    lambda rows: rows,
    lambda rows: pandas.DataFrame(rows, columns=["a", "b"]),
    lambda rows: {"a": [row["a"] for row in rows], "b": [row["b"] for row in rows]},
]


@pytest.mark.parametrize("of", AS)
def test_the_rows_of_a_pair_are_found(of: Any) -> None:
    both = [OLD, NEW]
    assert target_rows(Pair(of([OLD, OLD]), of([OLD, *both]))) == (None, NEW)
    assert target_rows(Pair(of(both), of([OLD]))) == (NEW, None)
    assert target_rows(Pair(of(both), of([NEW, NEW]))) == (OLD, NEW)
    assert target_rows(Pair(of(both), of(both[::-1]))) == NONE


def test_other_datasets_have_no_rows() -> None:
    frame = polars.DataFrame({"a": [1, 2]})
    assert target_rows(Pair(frame, frame[:1])) == ({"a": 2}, None)
    for d0, d1 in (([0], [1]), ([], [{"a": 1}] * 2), (3, [{"a": 1}]), ({"a": 1}, {"a": 2}), ({"a": [1]}, {"a": 2})):
        assert target_rows(Pair(d0, d1)) == NONE
    array = np.array([(1, "x"), (2, "y")], dtype=[("a", int), ("b", "U1")])
    assert target_rows(Pair(array, array[:1])) == ({"a": 2, "b": "y"}, None)


def test_a_witness_names_the_query_and_its_answers() -> None:
    """All outputs show the dataset; 100 numbers of copies omit 1 or 4 by chance < 1 in 10**6."""
    rng = np.random.default_rng(1)

    def release(copies: int) -> pandas.DataFrame:
        return pandas.DataFrame({"city": [*rng.choice(["Bonn", "Jena"], 20 - copies), *["Ulm"] * copies]})

    sides = [[release(0) for _ in range(100)], [release(int(rng.integers(1, 5))) for _ in range(100)]]
    learner = Learner(resolve_attacks(["table_queries"]), seed=0, pair=0, targets=(None, {"city": "Ulm"}))
    learner.learn(*learner.read(*sides))
    examples = Outputs.join(list(learner.latest(100)))
    words, outcomes = query_words(learner.current(), 0.0, examples)
    assert not outcomes
    assert words == "rows with city = Ulm: 0 without the record, 1 to 4 with it"
    region = describe_region(learner.current(), 0.0, examples)
    assert str(region.condition) == "number of 'Ulm' in output['city'] above 0.5"
    found = Witness(
        pair="",
        attack="",
        query=words,
        alpha=0,
        beta=0,
        claimed_beta=1,
        counts=Counts(false_positives=0, n0=1, false_negatives=0, n1=1),
        counted="moving",
    )
    assert found.describe().endswith(f"; {words}")


@pytest.mark.parametrize("n", [14, 28, 400])
def test_chance_rarely_gives_the_agreement_of_a_stated_query(n: int) -> None:
    """The exact tail of the Kolmogorov-Smirnov distance of two samples of size n."""
    tried = 10_000
    distance = 2 * agreement_by_chance(n, tried) - 1
    steps = int(np.ceil(distance * n - 1e-9))  # the distance is a multiple of 1 / n
    below = np.zeros(2 * n + 1)  # paths of n steps up and n steps down that stay inside (-steps, steps)
    below[n] = 1.0
    for _ in range(2 * n):
        below = 0.5 * (np.append(below[1:], 0.0) + np.append(0.0, below[:-1]))
        below[np.abs(np.arange(-n, n + 1)) >= steps] = 0.0
    all_paths = np.exp(gammaln(2 * n + 1) - 2 * gammaln(n + 1) - 2 * n * np.log(2))
    assert steps <= n
    assert tried * (1 - below[n] / all_paths) <= CHANCE


def test_the_categories_that_are_tried_are_those_in_most_tables() -> None:
    """30 categories, of which `often` is in every table and is named first, so that its code is 0."""
    tables = [table([{"city": "often"}, *({"city": f"rare {n + k}"} for k in range(5))]) for n in range(0, 30, 5)]
    assert str(proposed(tables)[0]) == "city = often"
