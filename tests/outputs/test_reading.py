"""Reading outputs loses no information, and features do not depend on other outputs of the block."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpaudit import MechanismError, Pair, PureDP, audit, batched
from dpaudit.learning import Learner
from dpaudit.learning.attack import resolve_attacks
from dpaudit.outputs import (
    OutputError,
    Outputs,
    PartsEncoding,
    PlainEncoding,
    Raised,
)
from dpaudit.outputs.parts import parts_of
from dpaudit.values import OUTPUT

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
