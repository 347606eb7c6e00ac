"""Each output has one value and one score, whatever stands beside it.  The guarantee relies on this."""

import io
import math
from collections import OrderedDict
from contextlib import redirect_stdout
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from dpaudit import PureDP
from dpaudit.inference.grid import bin_of
from dpaudit.learning import FewValues, Learner
from dpaudit.learning.attack import attack_classes, resolve_attacks
from dpaudit.outputs import OutputError, Outputs, as_alone, refuse_mixed_types, types_of
from dpaudit.outputs.derived import bits
from dpaudit.outputs.plain import plain_array

from ..other_hashes import output_with_other_hashes


class Named(NamedTuple):
    first: Any
    second: Any


@dataclass(frozen=True)
class Record:
    first: Any
    second: Any


class Level(IntEnum):
    LOW = 1


rng = np.random.default_rng(0)
FLOATS = rng.normal(size=300)
WORDS = np.array(["yes", "no", "maybe", "never", "always"])
PAST: dict[str, tuple[Any, Any]] = {  # outputs of calls on d0 and on d1
    "integers": (rng.integers(-(2**20), 2**20, 300), rng.integers(-(2**20), 2**20, 300) + 2**17),
    "large integers": (2**60 + 2 * rng.integers(0, 2**20, 300), 2**60 + 2 * rng.integers(0, 2**20, 300) + 1),
    "floats": (FLOATS, FLOATS[::-1] + 0.5),
    "few values": (rng.integers(0, 5, 1200), rng.integers(0, 6, 1200)),
    "vectors": (rng.normal(size=(300, 3)), rng.normal((0, 0, 0.5), size=(300, 3))),
    "bits": ((rng.random((300, 12)) < 0.2).astype(int), (rng.random((300, 12)) < 0.3).astype(int)),
    "words": (rng.choice(WORDS, 1200), rng.choice(WORDS, 1200, p=[0.1, 0.1, 0.2, 0.3, 0.3])),
    "records": (
        [{"a": int(x), "b": [x, 1.0]} for x in rng.integers(0, 5, 300)],
        [{"a": int(x), "b": [x, 2.0]} for x in rng.integers(0, 6, 300)],
    ),
}
STRANGERS: list[Any] = [0.5, math.nan, None, True, "x", b"x", Decimal(3), -0.0, (1, 2), [3.5], {"a": 1}, 10**30]


def learned(names: Any, past: str, *, shared: bool) -> tuple[Learner, list[Any]]:
    """Return a learner of past outputs, and fresh outputs of shared calls or of runs one at a time."""
    learner = Learner(resolve_attacks(names), 0, 0)
    if names == "auto":
        learner.few_values = FewValues(PureDP(0.1))
    calls = [as_alone(side) if shared else list(side) for side in PAST[past]]
    learner.learn(*learner.read(*calls))
    fresh = [calls[side][i] for side in (0, 1) for i in range(10)]
    return learner, [output.tolist() if shared and isinstance(output, np.ndarray) else output for output in fresh]


@pytest.mark.parametrize(
    ("names", "past", "shared"),
    [
        *(("auto", past, True) for past in PAST),
        *(("auto", past, False) for past in ("integers", "words", "records")),
        *((name, past, past != "floats") for name in attack_classes() for past in ("floats", "bits")),
        *(pytest.param(name, past, False, marks=pytest.mark.slow) for name in attack_classes() for past in PAST),
    ],
)
def test_a_score_is_that_of_the_output_alone(names: Any, past: str, shared: bool) -> None:
    learner, fresh = learned(names, past, shared=shared)
    if not learner.ready:
        pytest.skip("the attack is not applicable to these outputs")

    def scores(outputs: Any) -> Any:
        return learner.score(learner.read(as_alone(outputs) if shared else outputs, [])[0])

    alone = np.concatenate([scores([output]) for output in fresh])
    categories, order = bin_of(alone), rng.permutation(len(fresh))
    found = {
        "in one block": scores(fresh),
        "in another order": scores([fresh[i] for i in order])[np.argsort(order)],
        "split": np.concatenate([scores(fresh[:7]), scores(fresh[7:])]),
        "merged": scores([*fresh, *fresh, *fresh])[20:40],
        "as an array": scores(np.array(fresh)) if shared and past != "records" else alone,
    }
    for stranger in STRANGERS if names == "auto" else STRANGERS[:4]:
        found[f"after {stranger!r}"] = scores([stranger, *fresh])[1:]
        found[f"before {stranger!r}"] = scores([*fresh, stranger])[:-1]
        if shared and past in ("integers", "few values", "floats") and isinstance(stranger, float | bool):
            found[f"in an array with {stranger!r}"] = scores(np.array([*fresh, stranger]))[:-1]
            found[f"in a list of an array with {stranger!r}"] = scores(np.array([stranger, *fresh]).tolist())[1:]
    for company, values in found.items():
        assert values.tolist() == alone.tolist(), company
        assert bin_of(values).tolist() == categories.tolist(), company


def test_a_shared_call_merges_what_an_array_can_turn_into_each_other() -> None:
    whole = [[1, 2], [3, 4]]
    calls: list[Any] = [
        np.array(whole),
        np.array(whole, dtype=np.int8),
        np.array(whole, dtype=float),
        [(1, 2), (3.0, 4)],
    ]
    for call in calls:
        found = as_alone(call)
        assert isinstance(found, np.ndarray)
        assert found.dtype == np.float64
        assert found.tolist() == whole
    assert as_alone([1, True, 2.5]).tolist() == [1.0, 1.0, 2.5]  # type: ignore[union-attr]
    assert as_alone(np.array([1, "a", 2.5], dtype=object)) == [1.0, "a", 2.5]
    assert str(as_alone([None, "a", np.nan, pd.NaT, pd.NA, np.datetime64("NaT")])) == "[nan, 'a', nan, nan, nan, nan]"
    assert as_alone([[1, 2], [3]]) == [[1.0, 2.0], [3.0]]
    assert as_alone(np.array([np.array([1, 2]), (3,)], dtype=object)) == [[1.0, 2.0], [3.0]]
    assert as_alone([{"a": 1, "b": (1, True)}]) == [{"a": 1.0, "b": [1.0, 1.0]}]
    assert as_alone([Named(1, True), Record(2, None), Level.LOW, 1 + 0j, frozenset([1, (2, 3)])])[:2] == [
        Named(1.0, 1.0),
        as_alone([Record(2.0, np.nan)])[0],
    ]
    assert str(as_alone([Level.LOW, 1 + 0j, 2j, "a"])) == "[1.0, 1.0, 2j, 'a']"
    assert as_alone([frozenset([1, (2, True)])]) == [frozenset([1.0, (2.0, 1.0)])]
    assert as_alone([OrderedDict(a=1)]) == [OrderedDict(a=1.0)]
    assert list(map(type, as_alone(np.array([2**60 + 1, 5])))) == [int, float]
    assert as_alone(np.array([2**63 + 1, 5], dtype=np.uint64)) == [2**63 + 1, 5]
    for call in (np.array([1.5, 2.0]), [1.5, "a"], np.array(["a", "b"])):
        assert list(as_alone(as_alone(call))) == list(as_alone(call))


def test_what_differs_alone_stays_apart() -> None:
    signs: Any = as_alone(np.array([0.0, -0.0, np.nan, -np.nan]))
    assert [str(value) for value in signs] == ["0.0", "-0.0", "nan", "nan"]
    assert len(Outputs.read(signs).distinct().index) == 3
    one_by_one = [1, 1.0, True, np.float32(1), Decimal(1), "1", None, math.nan, (1,), [1], {"a": 1, "b": 2}]
    one_by_one += [{"b": 2, "a": 1}, -0.0, 0.0, Level.LOW, Named(1, 2), Record(1, 2), {1}, frozenset([1]), 1j, b"1"]
    assert len(Outputs.read(one_by_one).distinct().index) == len(one_by_one)
    assert len(set(Outputs.read(one_by_one).value_keys())) == len(one_by_one)


def test_equal_values_have_equal_keys_in_every_block() -> None:
    for outputs in ([1.5, 2.0, 1.5], [[1.0, 2.0], [1.0, 3.0], [1.0, 2.0]], [1, 2, 1], ["a", "b", "a"]):
        keys = Outputs.read(outputs).value_keys()
        assert Outputs.read([*outputs, None]).value_keys()[:3] == keys
        distinct = Outputs.read(outputs).distinct()
        assert [distinct.value_keys()[place] for place in distinct.places] == keys
        assert len(distinct.index) == len(set(keys)) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.array([1, 2]), np.array([1, "a"])),
        ([1, 2] * 16, np.array([1, "a"] * 16).tolist()),
        (np.array([[1, 2]] * 32).tolist(), np.array([[1, "a"]] * 32).tolist()),
        (np.array([2**60, 1]), np.array([2**60, 0.5])),
        (pd.Series([2**60 + 1, 1]), pd.Series([2**60 + 1, None])),
        ([2**60, 1] * 16, np.array([2**60, 0.5] * 16).tolist()),
        (np.array(["2020-01-01"], dtype="M8[D]"), np.array(["2020-01-01T01"], dtype="M8[s]")),
    ],
)
def test_types_that_numpy_cannot_undo_are_refused(first: Any, second: Any) -> None:
    with pytest.raises(OutputError, match="Return a list or an object array"):
        refuse_mixed_types(types_of(first) | types_of(second))


@pytest.mark.parametrize(
    "calls",
    [
        ([1, 2], ["a", "b"]),  # a list keeps the type of each output
        ([1, 2.5, "a"], [0.5, 1.5]),
        ([2**60] * 40, [0.5, math.nan] * 20),
        ([0, 1, 0], ["2", "3"]),  # so few outputs of a list may have one type by chance
        (np.array([b"yes", b"no"]), np.array([b"always"])),
        (np.array([1.0]), np.array([1j])),
        (np.array([1, None], dtype=object), np.array([1, 2])),
        (np.array([1, 2]), np.array([0.5, 2])),
        (np.array([2**60, 1]), np.array([3, 1])),
        (np.array([]), np.array(["a"])),
    ],
)
def test_types_that_numpy_did_not_change_are_accepted(calls: tuple[Any, Any]) -> None:
    refuse_mixed_types(types_of(calls[0]) | types_of(calls[1]))


def test_plain_outputs_become_one_array_without_loss() -> None:
    for outputs in ([1, 2], [1.0, 2.5], [True, False], [(1, 2), (3, 4)], [np.float64(1), np.float64(2)], [[[1, 2]]]):
        kind, array = plain_array(outputs)
        assert kind
        assert array.tolist() == [np.ravel(x).tolist() if isinstance(x, tuple | list) else x for x in outputs]
    for mixed in ([1, 1.0], [True, 1], [1, None], [(1,), [1]], [(1, 2), (1,)], ["a"], [2**64], [], [(1, 1.0)]):
        assert plain_array(mixed)[0] == ""


def test_bits_are_those_of_the_value() -> None:
    values = [0, 1, -1, 3, -5, 255, 256, -256, 257, -1000, 2**31 + 1, -(2**40) - 3, 2**52 + 5, 2**53]
    values += [-(2**53), 2**60, 2**62]
    whole = bits(np.array(values))
    assert bits(np.array(values, dtype=np.float64)).tolist() == whole.tolist()
    assert bits(values).tolist() == whole.tolist()
    assert bits([float(value) for value in values]).tolist() == whole.tolist()


def test_features_of_a_large_set_do_not_depend_on_the_order_of_hashes() -> None:
    code = (
        "from dpaudit.outputs.parts import parts_of; import hashlib;"
        "found = parts_of({f'name {i}' for i in range(6000)});"
        "print(hashlib.sha256(repr(sorted(found.counts)).encode()).hexdigest())"
    )
    elsewhere = output_with_other_hashes(code)
    with redirect_stdout(io.StringIO()) as here:
        exec(code)
    assert here.getvalue() == elsewhere != ""
