"""Parts of scripts of `dpaudit reproduce`: conditions, literals, and the inequality that a script tests."""

# ruff: noqa: E501  (one row a line)

import ast
import builtins
import functools
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError
from scipy.stats import binom

from dpaudit import PureDP
from dpaudit.claims import ApproxDP, GaussianDP, TradeoffFunction
from dpaudit.engine.region import one_feature
from dpaudit.outputs import Outputs, PartsEncoding, PlainEncoding
from dpaudit.reproduce.calls import library_lines
from dpaudit.reproduce.event import TEST, Inequality, event_of, p_value, strongest
from dpaudit.reproduce.literals import Unwritable, literal
from dpaudit.result.files import plain
from dpaudit.result.values import Condition, Counts, Interval, Region, View, Witness
from dpaudit.values import OUTPUT, Feature, restored, stored


def at(*steps: int | str) -> Feature:
    return functools.reduce(lambda of, step: ("{}[{}]", of, step), steps, OUTPUT)


def above(feature: Feature, low: float, **values: Any) -> Condition:
    return Condition(feature=feature, intervals=(Interval(low=low),), **values)


def below(feature: Feature, high: float) -> Condition:
    return Condition(feature=feature, intervals=(Interval(high=high),))


def witness_of(condition: Condition | None, view: View = "natural", *, nearly: bool = False) -> Witness:
    found = Witness(
        pair="",
        attack="",
        described=Region(condition=condition, view=view, nearly=nearly),
        alpha=0.0,
        beta=0.0,
        claimed_beta=1.0,
        threshold=1.2,
        counts=Counts(false_positives=0, n0=1, false_negatives=0, n1=1),
        counted="later",
    )
    read = TypeAdapter(Witness).validate_python(json.loads(json.dumps(plain(found))))
    assert read.described == found.described
    return read


TYPE = ("type of {}", OUTPUT)


@pytest.mark.parametrize(
    ("condition", "words", "inside", "outside"),
    [
        (above(OUTPUT, 1.5), "output above 1.5", [2, 1.6], [1, float("nan"), None]),
        (
            Condition(intervals=(Interval(high=-1), Interval(1, 2)), missing=True),
            "output below -1 or between 1 and 2 or nan",
            [-2, 1.5, float("nan")],
            [0, 2],
        ),
        (Condition(listed=(0, 3)), "output in {0, 3}", [0, 3.0], [1]),
        (Condition(listed=(0.1 + 0.2,)), "output in {0.3}", [0.1 + 0.2], [0.3]),
        (Condition(listed=("a, b", "it's")), "output in {'a, b', \"it's\"}", ["a, b", "it's"], ["a"]),
        (
            Condition(listed=(("bytes {}", ("00ff",)), ("RED",))),
            "output in {bytes 00ff, RED}",
            [b"\x00\xff", SimpleNamespace(name="RED")],
            [b"", "bytes 00ff"],
        ),
        (above(at(1), 3), "output[1] above 3", [[0, 4], np.array([0, 4])], [[0, 3], [9], None]),
        (above(at(1), 3, negated=True, missing=True), "output[1] at most 3 or missing", [[0, 2], [1], None], [[0, 4]]),
        (below(at("a above 3", -1), 3), "output['a above 3'][-1] below 3", [{"a above 3": [9, 1]}], [{"a above 3": [4]}, {}]),
        (Condition(feature=("{} in {}", "a", OUTPUT)), "'a' in output", [{"a": 1}, {"a"}], [{"b"}]),
        (above(("number of {} in {}", ("{}", 0.5), OUTPUT), 1.5), "number of 0.5 in output above 1.5", [[0.5, 0.5]], [[0.5, "0.5"]]),
        (Condition(feature=("{} is above {}", at(0), at(1)), negated=True), "not: output[0] is above output[1]", [[0, 1]], [[1, 0]]),
        (below(("distance of {} and {}", at(0), at(1)), 0.5), "distance of output[0] and output[1] below 0.5", [[1, 1.2]], [[1, 2]]),
        (above(("sum of all numbers",), 3), "sum of all numbers above 3", [[2, 2], np.array([[2], [2]])], [[1, 1], {"a": 4}, [None, 4]]),
        (above(("largest number",), 3), "largest number above 3", [[4, float("nan")], (1, 4)], [[1, 2], {"a": 4}, ["4"], []]),
        (Condition(feature=("{} is {}", TYPE, ("number",)), negated=True), "not: type of output is number", [None, 3, ValueError()], [1.5]),
        (
            Condition(feature=("{} is {}", TYPE, ("raised {}", ("ValueError",)))),
            "type of output is raised ValueError",
            [ValueError("x")],
            [KeyError("x"), 1],
        ),
        (Condition(feature=("{} is {}", ("type of {}", at(0)), ("nan",))), "type of output[0] is nan", [[float("nan")]], [[1.0], []]),
        (Condition(feature=at(0), intervals=(Interval(),), negated=True), "output[0] is missing", [[float("nan")], []], [[1.0]]),
    ],
)  # fmt: skip
def test_regions_become_conditions(
    condition: Condition, words: str, inside: list[object], outside: list[object]
) -> None:
    witness = witness_of(condition)
    assert witness.region == words
    event = event_of(witness)
    lines = ["def event(output):"]
    if event.flattens:
        lines += ["    output = output.ravel() if isinstance(output, np.ndarray) else output"]
    lines += ["    try:", f"        found = bool({event.condition})"]
    lines += ["    except (AttributeError, LookupError, TypeError, ValueError):", "        found = False"]
    lines += [f"    return found != {event.negated}"]
    names: dict[str, Any] = {
        "np": np,
        "numbers": lambda output: np.nan_to_num(np.ravel(output) + 0.0, nan=0, posinf=0, neginf=0),
        "entries": lambda output: np.ravel(list(output.values()) if isinstance(output, dict) else output),
    }
    exec("\n".join(lines), names)
    assert [names["event"](one) for one in inside] == [True] * len(inside)
    assert [names["event"](one) for one in outside] == [False] * len(outside)


@pytest.mark.parametrize(
    ("condition", "view", "reason"),
    [
        (None, "natural", "a threshold on the score of the attacks"),
        (None, "bits", "low-order bits"),
        (None, "timed", "running time"),
        (above(("{} among the parts", ("sum of all numbers",)), 3), "natural", "no short expression"),
        (Condition(listed=(("#1234abcd",),)), "natural", "hash"),
        (above(("{}[{}]", OUTPUT, ("x",)), 3), "natural", "no literal in Python"),
        (above(("{}[{}]", ("bytes {}", ("00",)), 1), 3), "natural", "no short expression"),
        (above(("{}[{}]", OUTPUT, ("bytes {}", ("zz",))), 3), "natural", "no literal in Python"),
        (Condition(feature=("{} is {}", TYPE, ("a b",))), "natural", "it needs the type"),
    ],
)
def test_other_regions_are_refused_with_advice(condition: Condition | None, view: View, reason: str) -> None:
    with pytest.raises(Unwritable) as error:
        event_of(witness_of(condition, view))
    assert reason in str(error.value)
    assert "audit again with an attack whose region can be written" in str(error.value)


@pytest.mark.parametrize(
    "feature",
    [
        "output",
        [],
        [1],
        ["{} times {}", ["output"]],
        ["output", "a"],
        ["length of {}", None],
        ["length of {}", True],
        None,
    ],
)
def test_a_feature_that_is_none_is_refused_when_it_is_read(feature: object) -> None:
    with pytest.raises(ValidationError, match="a feature must be a list of a form and its arguments"):
        TypeAdapter(Condition).validate_python({"feature": feature})


@pytest.mark.parametrize(
    "value",
    [
        None,
        [0.5, float("inf"), -3],
        (1,),
        {"a": [True, None]},
        {(1, "x"): b"\x00"},
        "a\x1b\u202e'\"\n  b",
        {1, 2},
        [1.0] * 500,
        -(2**70),
        np.array([[0.123456789012, np.nan]]),
        np.array([1, -2], np.int8),
        [np.array([0.1], np.float32)],
    ],
)
def test_plain_values_are_stored_and_written_exactly(value: object) -> None:
    read = restored(json.loads(json.dumps(stored(value)))[0])
    for same in (read, eval(literal(read), {"np": np})):
        assert type(same) is type(value)
        assert repr(same) == repr(value)
    text = literal(value)
    assert text.isascii()
    assert text.isprintable()


DEEP: list[Any] = functools.reduce(lambda inner, _: [inner], range(5000), [])


@pytest.mark.parametrize("value", [object(), 1j, [np.array(["a"])], list(range(20_000)), DEEP])
def test_other_values_and_long_ones_are_not_stored(value: object) -> None:
    assert stored(value) == []


@pytest.mark.parametrize(
    "value",
    [
        {"tuple": "ab"},
        {"code": "exit()"},
        {"array": [1], "dtype": "object"},
        {"array": ["exit()"], "dtype": "int64"},
        {"bytes": [1, 999]},
        {"float": "exit()"},
        {"dict": [[[], 1]]},
        {"set": [[1]]},
        {},
    ],
)
def test_a_value_that_is_not_plain_is_not_read(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        restored(value)


def inequality(epsilon: float, delta: float) -> Inequality:
    return Inequality(epsilon=epsilon, delta=delta, flipped=False, x=10, n_first=100, y=60, n_second=100)


def test_the_script_computes_the_p_value_of_the_theorem() -> None:
    from scipy.stats import beta

    for x, y in ((0, 30), (20, 90), (100, 100), (0, 0)):
        names = {"np": np, "beta": beta, "binom": binom, "x": x, "y": y, "RUNS": 100, "EPSILON": 0.5, "DELTA": 0.01}
        exec(TEST, names)
        assert names["p"] == p_value(inequality(0.5, 0.01), x, y, 100)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate"), [pytest.param(1.0, 0.0, 0.2, marks=pytest.mark.slow), (0.5, 0.2, 0.05)]
)
def test_a_true_claim_is_refuted_at_most_as_often_as_stated(epsilon: float, delta: float, rate: float) -> None:
    """The probability of p <= t is computed exactly for 3 runs, at the limit of the claim."""
    n = 3
    law0, law1 = (binom.pmf(np.arange(n + 1), n, p) for p in (rate, np.exp(epsilon) * rate + delta))
    found = np.array([[p_value(inequality(epsilon, delta), x, y, n) for y in range(n + 1)] for x in range(n + 1)])
    for level in np.unique(found):
        assert np.outer(law0, law1)[found <= level].sum() <= level + 1e-12  # rounding of sums


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(epsilon=0.5, delta=0.1), GaussianDP(1.0)])
def test_the_claim_implies_the_inequality(claim: TradeoffFunction) -> None:
    """For both directions, no point of the claim's curve contradicts the chosen inequality."""
    alpha = np.linspace(0, 1, 2001)
    for counts in ((2, 100, 40, 100), (60, 100, 1, 100)):
        chosen = strongest(claim, Counts(false_positives=counts[0], n0=100, false_negatives=counts[2], n1=100))
        assert chosen.strength > 0
        slope = np.exp(chosen.epsilon)
        beta = np.asarray(claim.symmetrized().beta(alpha))
        assert np.all(1 - beta <= slope * alpha + chosen.delta + 1e-12)
        assert np.all(1 - alpha <= slope * beta + chosen.delta + 1e-12)


def test_numbers_of_a_dict_are_not_described_as_those_of_a_vector() -> None:
    """The parts of a dict include its sum and its extremes, so that the sum of all parts is another number."""
    rng = np.random.default_rng(1)
    inside = np.arange(200) >= 100
    drawn = (rng.normal(size=(200, 3)) + inside[:, None]).tolist()
    outputs = Outputs.read([dict(zip("abc", row, strict=True)) for row in drawn])
    score: Any = SimpleNamespace(encoding=PartsEncoding.of(outputs.parts(), inside))
    region = one_feature(score, outputs, inside)
    assert region.nearly
    assert str(region.condition).startswith("sum of products of neighbours among the parts above 1.4")
    with pytest.raises(Unwritable, match="no short expression"):
        event_of(witness_of(region.condition))


def test_conditions_on_large_integers_state_the_integers_exactly() -> None:
    """The words stated the distance from the median: "output[0] above 20" for numbers near 10**17."""
    rng = np.random.default_rng(1)
    inside = np.arange(200) >= 100
    for gap in (40, 1):
        drawn = [10**17 + gap * int(side) + np.array([0, int(rng.integers(9))]) for side in inside]
        for read in (lambda row: row, lambda row: row.tolist(), lambda row: {"a": int(row[0]), "b": int(row[1])}):
            raw = [read(row) for row in drawn]
            outputs = Outputs.read(raw)
            plain = outputs.array is not None
            score: Any = SimpleNamespace(encoding=PartsEncoding.of(outputs.parts(), inside))
            if outputs.array is not None:
                score.encoding = PlainEncoding.of(outputs.array, outputs.kind)
            for region, opposite in ((inside, 1), (~inside, 0)):
                found = one_feature(score, outputs, region)
                cut = 10**17 + gap // 2
                place = "output[0]" if plain else "output['a']"
                assert found.words(0.0) == f"{place} {'above' if opposite else 'at most'} {cut}"
                event = event_of(witness_of(found.condition))
                held = [eval(event.condition, {"output": output}) != event.negated for output in raw]
                assert np.array_equal(held, region)


@pytest.mark.parametrize(
    ("library", "call"), [("diffprivlib", "sum"), ("diffprivlib", "Sum"), ("pydp", "sum"), ("pydp", "print")]
)
def test_an_import_of_a_library_hides_no_function_of_python(library: str, call: str) -> None:
    """The script counts with `sum`, which `from diffprivlib.tools import sum` replaced."""
    bound = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse("\n".join(library_lines(library, call, {"epsilon": 1.0}))))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert "audited" in bound
    assert not bound & {*dir(builtins), "np", "beta", "binom", "deepcopy", "rng"}


def test_a_script_of_a_slow_mechanism_makes_fewer_runs() -> None:
    """The runs on both datasets take 15 seconds at most, unless the claim could not be refuted by so few."""
    clear = strongest(PureDP(1.0), Counts(false_positives=0, n0=100, false_negatives=0, n1=100))
    assert [clear.runs(seconds) for seconds in (0.0, 0.001, 0.0075, 0.015, 0.1, 9.0)] == [
        1000,
        1000,
        1000,
        500,
        200,
        200,
    ]
    small = strongest(PureDP(1.0), Counts(false_positives=30, n0=1000, false_negatives=880, n1=1000))
    assert small.needed is not None
    assert small.runs(9.0) == max(200, 2 * small.needed)
