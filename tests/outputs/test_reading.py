"""Reading outputs loses no information, and features do not depend on other outputs of the block."""

import datetime
import re
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas
import polars
import pytest

from dpaudit import MechanismError, Pair, PureDP, audit, batched
from dpaudit.learning import Learner
from dpaudit.learning.attack import resolve_attacks
from dpaudit.outputs import OutputError, Outputs, PartsEncoding, PlainEncoding, Raised
from dpaudit.outputs.entries import label_of
from dpaudit.outputs.parts import parts_of
from dpaudit.outputs.tables import MAX_ROWS, Parts, frame_columns, mapping_columns, read_column
from dpaudit.values import OUTPUT, words

from .leaks import LEAKS, Leaking

PAIR = Pair([0], [1])


def draw(kind: str, n: int, seed: int) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(seed)
    mechanism = Leaking(kind)
    return [mechanism([0], rng) for _ in range(n)], [mechanism([1], rng) for _ in range(n)]


@pytest.mark.parametrize("kind", list(LEAKS)[::8])
def test_scores_and_features_of_an_output_do_not_depend_on_other_outputs(kind: str) -> None:
    learner = Learner(resolve_attacks(["logistic", "plug_in_ratio", "low_bits", "spline"]), seed=0, pair=0)
    learner.learn(*learner.read(*draw(kind, 150, 1)))
    _, fresh = draw(kind, 12, 2)
    strangers = [*fresh[:6], None, "unheard of", *fresh[6:], {"never": 1}, 2**70, [1, [2]]]
    together, mixed = learner.score(Outputs.read(fresh)), learner.score(Outputs.read(strangers))
    alone = np.array([learner.score(Outputs.read([output]))[0] for output in fresh])
    assert np.allclose(together, alone, rtol=0, atol=1e-8)
    assert np.allclose(together, np.delete(mixed, [6, 7, 14, 15, 16]), rtol=0, atol=1e-8)


def test_integers_keep_all_their_bits() -> None:
    for values in (2**60 + np.arange(5), np.array([2**63 + k for k in range(5)], dtype=np.uint64)):
        encoding = PlainEncoding.of(values, "integer")
        assert np.array_equal(np.diff(encoding.features(values)[:, 0]), np.ones(4))
        assert np.array_equal(encoding.bits(values)[:, 2], np.arange(5))
    huge = [2**90 + k for k in range(6)]
    of_parts = PartsEncoding.of([parts_of(value) for value in huge], np.arange(6) % 2 == 1)
    assert np.array_equal(np.diff(of_parts.features([parts_of(value) for value in huge])[:, 0]), np.ones(5))
    assert of_parts.features([parts_of(10**400)])[0, 0] == np.inf


def test_every_kind_has_parts_and_equal_outputs_have_equal_ones() -> None:
    for output in (1, "x" * 10_000, b"ab", None, 1j, Decimal("NaN"), Fraction(1, 3), {1, 2}, np.zeros((2, 3)), object):
        if output is object:
            continue
        assert parts_of(output) == parts_of(output) or output != output or isinstance(output, Decimal)
        assert parts_of(output).labels[("type of {}", OUTPUT)]
    assert parts_of(Raised("ValueError", "no 7")).numbers[("number {} in {}", 1, ("message of {}", OUTPUT))] == 7
    assert parts_of({"b": 1, "a": 2}).labels[("first key of {}", OUTPUT)] == "b"


def test_large_outputs_have_few_parts() -> None:
    big = np.random.default_rng(0).normal(size=300_000)
    for output in (
        big,
        big.tolist(),
        "x" * 10**6,
        bytes(10**6),
        {str(i): i for i in range(30_000)},
        [["a"] * 9] * 30_000,
    ):
        parts = parts_of(output)
        assert len(parts.numbers) + len(parts.labels) + len(parts.counts) < 12_000


def test_an_encoding_is_frozen_and_has_a_place_for_what_is_new() -> None:
    past = [parts_of(label) for label in ["a", "b", "a", "b", "a", "c"]]
    encoding = PartsEncoding.of(past, np.arange(6) % 2 == 1)
    new = encoding.features([parts_of("zebra"), parts_of("a"), parts_of({"k": 1})])
    assert new.shape == (3, encoding.columns)
    assert encoding.names[-1] == ("number of parts seen at most once before",)
    assert new[0, -1] > 0
    assert new[1, -1] == 0
    assert new[2, -1] > new[0, -1]


class Unknown:
    pass


def test_an_unknown_object_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(OutputError, match=r"output\['x'\] is of type .*Unknown.*register_encoder\(Unknown, function\)"):
        Outputs.read([{"x": Unknown()}])
    with pytest.raises(MechanismError, match="return numbers or a dict"):
        audit(lambda dataset, rng: Unknown(), PureDP(1.0), PAIR, seed=0, confidence=0.95)


class Reads:
    """An attack of a user that records its training outputs."""

    name = "reads"
    seen: Any = None

    def fit(self, outputs0: Any, outputs1: Any, rng: np.random.Generator) -> Any:
        type(self).seen = outputs0
        return lambda outputs: np.zeros(len(outputs))


@pytest.mark.parametrize(
    ("mechanism", "shape"),
    [
        (lambda dataset, rng: float(rng.normal()), (7,)),
        (lambda dataset, rng: (1, 2), (7, 2)),
        (lambda dataset, rng: {"a": 1}, None),
        (lambda dataset, rng: rng.choice(["x", "y"]), None),
    ],
)
def test_an_attack_that_declares_nothing_sees_outputs_as_they_came(
    mechanism: Any, shape: tuple[int, ...] | None
) -> None:
    audit(mechanism, PureDP(1.0), PAIR, trials=12, attacks=Reads(), seed=0, confidence=0.95)
    if shape is None:
        assert isinstance(Reads.seen, list)
        assert len(Reads.seen) == 7  # of ten; three are held out for calibration
    else:
        assert Reads.seen.shape == shape


def test_kinds_that_change_in_the_middle_are_learned() -> None:
    """The first 200 runs return numbers; later, half of the runs on d1 return None.  Fails by chance < 1 in 10**6."""
    calls = {"n": 0}

    def mechanism(dataset: list[int], rng: np.random.Generator) -> Any:
        calls["n"] += 1
        late = calls["n"] > 200 and rng.random() < 0.5
        return None if late and dataset == [1] else float(rng.normal())

    result = audit(mechanism, PureDP(0.1), PAIR, trials=3000, seed=0, confidence=0.95, confirm="never")
    assert result.e_value >= 20
    assert not [warning for warning in result.warnings if "dropped" in warning]


def test_an_integer_beyond_all_floats_may_come_beside_a_float() -> None:
    outputs = [{"a": 10**400 + i} for i in range(5)] + [{"a": 0.5}, {}]
    parts = [parts_of(output) for output in outputs]
    encoding = PartsEncoding.of(parts, np.arange(len(parts)) % 2 == 0)
    column = encoding.features(parts)[:, encoding.names.index(("{}[{}]", OUTPUT, "a"))]
    assert column[:5].tolist() == [float(i) - 2 for i in range(5)]
    assert column[5] == -np.inf
    assert np.isnan(column[6])


NESTINGS: dict[str, Callable[[Any], Any]] = {
    "list": lambda inner: [inner],
    "pair": lambda inner: (0.5, inner),
    "dict": lambda inner: {"a": inner},
    "rows": lambda inner: [{"a": inner}],
}


def nested(kind: str, levels: int) -> Any:
    output: Any = 0.25
    for _ in range(levels // 2 if kind == "rows" else levels):
        output = NESTINGS[kind](output)
    return output


@pytest.mark.parametrize("kind", NESTINGS)
def test_a_number_in_a_hundred_nested_containers_is_read(kind: str) -> None:
    """The number of parts grows with the number of levels, and not by a factor at each level."""
    parts = parts_of(nested(kind, 100))
    assert 0.25 in parts.numbers.values()
    assert len(parts.numbers) + len(parts.labels) + len(parts.counts) < 5_000
    with pytest.raises(OutputError, match="nested deeper than 100 levels; let the mechanism return"):
        parts_of(nested(kind, 110))


@pytest.mark.parametrize("levels", [150, 5_000])
def test_an_output_nested_too_deeply_is_refused(levels: int) -> None:
    with pytest.raises(MechanismError, match=r"nested (deeper|too deeply).*return"):
        audit(lambda dataset, rng: nested("list", levels), PureDP(1.0), PAIR, trials=20, seed=0)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: (i for i in [1]), "builtins.generator"),
        (lambda: [1, {"a": threading.Lock()}], "_thread.lock"),
        (lambda: [object()], "builtins.object"),
    ],
)
@pytest.mark.parametrize("many", [False, True])
def test_an_output_without_content_is_refused_with_its_type(make: Callable[[], Any], kind: str, many: bool) -> None:
    mechanism = batched(lambda dataset, n, rng: [make() for _ in range(n)]) if many else lambda dataset, rng: make()
    with pytest.raises(MechanismError, match=rf"{re.escape(kind)}.*return numbers"):
        audit(mechanism, PureDP(1.0), PAIR, trials=20, seed=0)


MISSING: dict[str, Callable[[float], Any]] = {
    "NaT": lambda x: (
        pytest.importorskip("pandas").NaT if x > 1.5 else pytest.importorskip("pandas").Timestamp(2020, 1, 1)
    ),
    "NaT of numpy": lambda x: np.datetime64("NaT" if x > 1.5 else "2020-01-01"),
    "masked array": lambda x: np.ma.array([1.0, 2.0], mask=[x > 1.5, False]),
    "masked integers": lambda x: np.ma.array([1, 2], mask=[False, x > 1.5]),
    "matrix": lambda x: np.asmatrix([[1.0], [x]]),
    "array of times": lambda x: np.array(["NaT" if x > 1.5 else "2020-01-01"], dtype="datetime64[s]"),
}


@pytest.mark.parametrize(("kind", "many"), [*((kind, False) for kind in MISSING), ("masked array", True)])
def test_missing_times_masked_entries_and_matrices_are_read(kind: str, many: bool) -> None:
    """Fails by chance < 1 in 10**6: outputs show whether a normal variable exceeds 1.5, at odds of 14 to 1."""

    def one(dataset: list[int], rng: np.random.Generator) -> Any:
        return MISSING[kind](3 * dataset[0] + rng.normal())

    mechanism = batched(lambda dataset, n, rng: [one(dataset, rng) for _ in range(n)]) if many else one
    assert audit(mechanism, PureDP(1.0), PAIR, attacks="logistic", trials=1000, seed=0, confirm="never").violated


def test_a_batch_in_a_masked_array_hides_what_is_masked() -> None:
    """Fails by chance < 1 in 10**6: the values below the mask differ, but nobody sees them."""

    def hidden(dataset: list[int], n: int, rng: np.random.Generator) -> Any:
        return np.ma.array(6 * dataset[0] + rng.normal(size=n), mask=rng.random(n) < 2)

    assert not audit(batched(hidden), PureDP(1.0), PAIR, attacks="logistic", trials=100, seed=0).violated


# --- tables of any library: the same columns, whatever the type of the table, with dates, nested and missing values


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
        assert result.witness.outcomes
        assert result.witness.query.startswith(f"{sides[0]} ")
        assert f", {sides[1]} " in result.witness.query
        assert "raised ValueError" in result.witness.region
        assert f"; output: {result.witness.query}" in str(result)
