"""Claims, pairs and runs of Tumult Core, with stubs in place of the library, which needs an old numpy and Spark."""

import math
import shutil
import sys
from fractions import Fraction
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpaudit import ApproxDP, Pair, PureDP, ZeroConcentratedDP, audit
from dpaudit.config.files import read_text
from dpaudit.libraries import Subject, tumult
from dpaudit.libraries.inside import tumult as inside
from dpaudit.libraries.subject import UnknownSubject

FLAGS = {"nan": False, "inf": False, "null": False}
INTEGER = {"kind": "integer", "text": "NumpyIntegerDomain()", **FLAGS}
FLOAT = {"kind": "float", "text": "NumpyFloatDomain()", **FLAGS}
TEXT = {"kind": "string", "text": "SparkStringColumnDescriptor()", **FLAGS}
USERS = {"kind": "frame", "text": "SparkDataFrameDomain", "columns": {"id": TEXT, "g": TEXT, "x": INTEGER}}


def facts(domain: Any = INTEGER, metric: Any = "AbsoluteDifference", **more: Any) -> dict[str, Any]:
    metric = {"kind": metric, "text": f"{metric}()"} if isinstance(metric, str) else metric
    found = {"name": "AddNoise", "measure": "PureDP", "d_out": 0.5, "d_in": 1, "hints": [], "version": "0.20.0"}
    return {**found, "domain": domain, "metric": metric, **more}


def grouped(inner: str, *columns: str) -> dict[str, Any]:
    return {"kind": "IfGroupedBy", "text": "IfGroupedBy", "columns": list(columns), "inner": inner}


@pytest.mark.parametrize(
    ("measure", "d_out", "claim"),
    [
        ("PureDP", 0.5, PureDP(0.5)),
        ("RhoZCDP", 0.125, ZeroConcentratedDP(0.125)),
        ("ApproxDP", [0.5, 1e-6], ApproxDP(epsilon=0.5, delta=1e-6)),
        ("ApproxDP", [0.5, 0.0], PureDP(0.5)),
    ],
)
def test_the_privacy_function_states_the_claim(measure: str, d_out: Any, claim: Any) -> None:
    assert tumult.claim_of(facts(measure=measure, d_out=d_out)) == claim


@pytest.mark.parametrize(
    ("measure", "d_out", "words"),
    [
        ("Renyi", 1.0, "the output measure Renyi is unknown.*Pass the claim"),
        ("PureDP", math.inf, "no claim that could be refuted"),
        ("ApproxDP", [1.0, 1.0], "no claim that could be refuted"),
    ],
)
def test_a_loss_that_is_no_claim_is_refused(measure: str, d_out: Any, words: str) -> None:
    with pytest.raises(UnknownSubject, match=words):
        tumult.claim_of(facts(measure=measure, d_out=d_out))


def test_numbers_differ_by_the_distance_at_most() -> None:
    for domain, d_in in ((INTEGER, 2), (FLOAT, "1/3"), (FLOAT, 0.1)):
        pairs = tumult.pairs_of(facts(domain, d_in=d_in))
        assert len(pairs) >= 2
        for pair in pairs:
            assert 0 < abs(Fraction(pair.d0) - Fraction(pair.d1)) <= Fraction(str(d_in))


def test_records_respect_the_flags_of_the_domain() -> None:
    def reached(**flags: bool) -> set[str]:
        element = {**FLOAT, **flags}
        pairs = tumult.pairs_of(facts({"kind": "series", "text": "s", "element": element}, "SymmetricDifference"))
        return {repr(record) for pair in pairs for record in pair.d1}

    assert {"nan", "inf", "None"}.isdisjoint(reached())
    assert {"nan", "inf"} <= reached(nan=True, inf=True)
    assert "None" in reached(null=True)
    bounded = facts({"kind": "series", "text": "s", "element": INTEGER}, "HammingDistance", hints=[3.0, 7.0])
    for pair in tumult.pairs_of(bounded):
        assert len(pair.d0) == len(pair.d1)
        assert sum(a != b for a, b in zip(pair.d0, pair.d1, strict=True)) == 1
        assert pair.relation == "replace_one"
    assert {3, 7} <= {record for pair in tumult.pairs_of(bounded) for record in pair.d1}


def test_a_user_of_a_data_frame_has_many_rows() -> None:
    pairs = tumult.pairs_of(facts(USERS, grouped("SymmetricDifference", "id")), groups=30)
    assert 1 <= len(pairs) <= 4
    for pair in pairs:
        assert len(set(pair.d1["id"]) - set(pair.d0["id"])) == 1
    assert len(pairs[0].d1["id"]) - len(pairs[0].d0["id"]) == 30
    assert len(set(pairs[0].d1["g"])) == 30


@pytest.mark.parametrize("metric", ["SymmetricDifference", "HammingDistance", grouped("SumOf", "g")])
def test_one_row_of_a_data_frame_differs(metric: Any) -> None:
    for pair in tumult.pairs_of(facts(USERS, metric)):
        before, after = (list(zip(*(side[name] for name in side), strict=True)) for side in (pair.d0, pair.d1))
        if metric == "HammingDistance":
            assert len(before) == len(after)
            assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
        else:
            assert after[:-1] == before


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (facts(INTEGER, "SumOf"), "It knows NumpyIntegerDomain.*pass the pairs"),
        (facts({**USERS, "columns": {"day": {"kind": "", "text": "date"}}}, "SymmetricDifference"), "does not know"),
        (facts(USERS, "SymmetricDifference", d_in=0), "pass a larger d_in"),
        (facts(INTEGER, d_in="sqrt(2)"), r"d_in must be a number or a text such as '1/2', got 'sqrt\(2\)'"),
    ],
)
def test_pairs_that_dpaudit_cannot_make_are_refused(found: Any, words: str) -> None:
    with pytest.raises(UnknownSubject, match=words):
        tumult.pairs_of(found)


def stub(name: str, **fields: Any) -> Any:
    return type(name, (), fields)()


class Exact:
    def to_float(self, round_up: bool) -> float:
        return math.nextafter(0.5, 1.0) if round_up else 0.5


class AddNoise:
    """A measurement with the interface of Tumult Core: rounded Laplace noise on an integer."""

    input_domain = stub("NumpyIntegerDomain", carrier_type=np.int64, __repr__=lambda _: "NumpyIntegerDomain()")
    input_metric = stub("AbsoluteDifference")
    output_measure = stub("PureDP")
    is_interactive = False

    def __init__(self) -> None:
        self._lower, self._threshold = 3, "sqrt(2)"
        self._rng = np.random.default_rng(0)

    def privacy_function(self, d_in: int) -> Exact:
        return Exact()

    def __call__(self, value: np.int64) -> np.int64:
        assert isinstance(value, np.int64)
        return value + np.int64(round(self._rng.laplace(scale=2.0)))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.20.0")
    for name in ("tmlt", "tmlt.core", *(f"tmlt.core.{home}" for home in inside._HOMES)):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module)
    noise: Any = sys.modules["tmlt.core.measurements.noise_mechanisms"]
    noise.AddNoise = AddNoise


def test_a_measurement_is_read_and_audited(library: None) -> None:
    subject: Subject = tumult.subject(AddNoise())
    assert subject.claim == PureDP(math.nextafter(0.5, 1.0)), "the loss is rounded up"
    assert subject.source == "tmlt.core 0.20.0, AddNoise: privacy_function(1) under PureDP"
    assert inside.facts(AddNoise())["hints"] == [3.0]
    result = audit(subject.mechanism, subject.claim, subject.pairs[:1], attacks="median_clipped", trials=20, seed=1)
    assert result.trials_used == 20
    assert all(type(output) is int for output in subject.mechanism.sample(3, 5, np.random.default_rng(0)))


def test_only_a_measurement_of_one_query_is_a_subject(library: None) -> None:
    with pytest.raises(UnknownSubject, match=r"takes a measurement of Tumult Core, such as .*, got int"):
        tumult.subject(3)
    interactive = AddNoise()
    interactive.is_interactive = True
    with pytest.raises(UnknownSubject, match="pass the measurement of one query"):
        tumult.subject(interactive)
    assert tumult.subject(AddNoise(), pairs=[Pair(0, 1)]).pairs == [Pair(0, 1)]


def test_a_config_names_constructors_only(library: None) -> None:
    assert isinstance(inside.called("AddNoise", {}), AddNoise)
    for name in ("Called", "os", "__import__", "create_x", "AddStrangeNoise"):
        with pytest.raises(LookupError, match=f"tmlt.core 0.20.0 has no constructor {name}"):
            inside.called(name, {})


@pytest.mark.parametrize("text", ["__import__('os').system('true')", "9**9**9", "1e9999", "x" * 101])
def test_a_text_of_a_config_is_no_expression(text: str, library: None) -> None:
    """Tumult Core passes texts in place of numbers to sympy, which evaluates them."""
    for arguments in ({"scale": text}, [text], {"scale": {"AddNoise": {"a": text}}}, {"scale": [text]}):
        with pytest.raises(ValueError, match="is not allowed, because Tumult Core may evaluate it"):
            inside.called("AddNoise", arguments)
    with pytest.raises(ValueError, match="must be a name, or a number"):
        inside.facts(AddNoise(), text)
    assert all(map(inside._checked, ("1/3", "0.5", "-2e-05", "user id", "GEOMETRIC")))


def test_rows_of_a_released_data_frame_are_sorted() -> None:
    rows = [("b", 2), ("a", 3), (None, 1)]
    frame = SimpleNamespace(columns=["g", "n"], collect=lambda: rows, toPandas=None)
    assert inside._output(frame) == {"g": ["a", "b", None], "n": [3, 2, 1]}


CONFIG = """
name: sum
mechanism:
  library: tumult
  call: create_sum_measurement
  arguments:
    input_domain: {SparkDataFrameDomain: {schema: {amount: {SparkIntegerColumnDescriptor: {}}}}}
    input_metric: {SymmetricDifference: {}}
    output_measure: {PureDP: {}}
    d_out: 1
    noise_mechanism: GEOMETRIC
    measure_column: amount
    lower: 0
    upper: 10
  requires: [tmlt.core==0.20.0]
  python_version: "3.11"
"""


@pytest.mark.slow
@pytest.mark.chance
@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")
def test_a_sum_of_a_data_frame_runs_in_a_private_environment() -> None:
    """The outputs are integers with noise; nothing is compared with a probability."""
    planned = read_text(CONFIG, Path("sum.yaml"))
    mechanism, claim = planned.load()
    assert claim == PureDP(1.0)
    outputs = mechanism.sample(planned.pairs[0].d0, 2, np.random.default_rng(0))
    assert all(isinstance(output, int) for output in outputs)
