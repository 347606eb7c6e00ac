"""Generators in the fit-and-sample habit: claim from the constructor, tiny tables, failures as outcomes, configs."""

import datetime
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from dpaudit import ApproxDP, MechanismError, Pair, PureDP, SearchPairs, audit
from dpaudit.config.files import read_configs
from dpaudit.config.planned import ConfigError, PlannedAudit
from dpaudit.libraries import synthesizer
from dpaudit.libraries.inside import synthesizer as inside
from dpaudit.libraries.subject import UnknownSubject
from dpaudit.running.identity import mechanism_name
from dpaudit.running.sources import file_fingerprint, source_of

SCHEMA: dict[str, Any] = {"city": ["Bonn", "Jena", "Ulm"], "age": (0, 100)}


class Copies:
    """A generator that draws rows of the data, without any privacy."""

    def __init__(self, epsilon: float = 1.0, delta: float = 0.0, least: int = 0) -> None:
        self.epsilon, self.delta, self.least = epsilon, delta, least

    def fit(self, table: Any, doubled: bool = False) -> None:
        if len(table) < self.least:
            raise ValueError("too few rows")
        self.rows = pandas.DataFrame(table)

    def generate(self, n_records: int) -> Any:
        return self.rows.iloc[np.arange(n_records) % len(self.rows)]


class Fitted:
    """A generator that only remembers its table."""

    def fit(self, table: Any) -> None:
        self.rows = table

    def sample(self, n_records: int) -> int:
        return n_records


class Hidden(Fitted):
    """A generator whose delta is a default, but no attribute."""

    def __init__(self, epsilon: Any, delta: Any = 1e-5) -> None:
        self._given = epsilon, delta


class ChosenDelta(Fitted):
    """A generator that chooses a delta if none is given."""

    def __init__(self, epsilon: float, delta: float | None = None) -> None:
        self.epsilon, self.delta = epsilon, 1e-6 if delta is None else delta


class NoDelta(Fitted):
    """A generator that states no value of its delta."""

    def __init__(self, epsilon: float, delta: float | None = None) -> None:
        self.epsilon = epsilon


class TargetDelta(Fitted):
    """A generator with another name of delta."""

    def __init__(self, epsilon: float, target_delta: float = 1e-5) -> None:
        self.epsilon = epsilon


class Exits(Fitted):
    """A generator that ends the process."""

    def __init__(self, epsilon: float, least: int = 5) -> None:
        self.epsilon, self.least = epsilon, least

    def fit(self, table: Any) -> None:
        if len(table) < self.least:
            raise SystemExit("too few rows")


def subject(**settings: Any) -> Any:
    return synthesizer.subject(Copies, SCHEMA, **{"sample": "generate", "rows": 20, **settings})


def test_the_claim_is_that_of_the_constructor_and_the_pairs_are_tiny_tables() -> None:
    found = subject(epsilon=0.5)
    assert found.claim == PureDP(0.5)
    assert subject(delta=1e-5).claim == ApproxDP(epsilon=1.0, delta=1e-5)
    assert subject(claim=PureDP(3.0)).claim == PureDP(3.0)
    assert 2 <= len(found.pairs) <= 6
    assert {row["age"] for pair in found.pairs for row in pair.d1} >= {0, 100}
    assert found.name == "Copies"
    assert found.mechanism.libraries == (Copies.__module__.partition(".")[0],)
    assert {pair.relation for pair in subject(relation="replace_one").pairs} == {"replace_one"}


@pytest.mark.parametrize("table", ["frame", "rows", "columns"])
def test_tables_are_passed_in_the_form_that_fit_takes(table: str) -> None:
    rows = subject(table=table).mechanism.sample([{"city": "Ulm", "age": 3}], 2, np.random.default_rng(0))
    assert [frame.to_dict("records")[0] for frame in rows] == [{"city": "Ulm", "age": 3}] * 2


def test_a_fit_that_fails_on_few_rows_is_an_outcome() -> None:
    found = subject(least=5)
    small, large = ([{"city": "Ulm", "age": 3}] * n for n in (4, 5))
    assert found.mechanism.sample(small, 1, np.random.default_rng(0)) == [
        {"raised": "ValueError", "message": "too few rows"}
    ]
    assert len(found.mechanism.sample(large, 1, np.random.default_rng(0))[0]) == 20
    with pytest.raises(UnknownSubject, match=r"Copies raised ValueError for both tables.*too few rows; check schema"):
        subject(least=99)


def test_a_cause_that_is_the_machine_is_no_outcome() -> None:
    """What memory and disk are left depends on earlier runs, so such outcomes would tell runs apart, not datasets."""

    def fit(made: Any, table: Any) -> None:
        made.fit(table)
        if 77 in set(table["age"]):
            raise ValueError("the fit failed") from MemoryError()

    found = subject(fit=fit)
    fails, succeeds = [{"city": "Ulm", "age": 77}], [{"city": "Ulm", "age": 3}]
    assert len(found.mechanism.sample(succeeds, 1, np.random.default_rng(0))[0]) == 20
    with pytest.raises(MechanismError, match="the fit failed"):
        audit(found.mechanism, found.claim, Pair(fails, succeeds), trials=60, seed=1)


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises(UnknownSubject, match="takes a class or a function"):
        synthesizer.subject(Copies(), SCHEMA)
    with pytest.raises(UnknownSubject, match="schema must have at least one column"):
        synthesizer.subject(Copies, {})
    with pytest.raises(UnknownSubject, match="no finite epsilon"):
        synthesizer.subject(lambda: Copies(epsilon=float("inf")), SCHEMA, sample="generate")
    with pytest.raises(UnknownSubject, match="schema: age must be"):
        synthesizer.subject(Copies, {"age": (2, 1)}, sample="generate")
    with pytest.raises(ValueError, match="table must be frame, rows or columns, got 'csv'"):
        subject(table="csv")


CONFIG = """\
name: copies
mechanism:
  library: synthesizer
  call: {module}:Copies
  arguments: {{make: {{epsilon: 2.0}}, schema: {{city: [Bonn, Ulm], age: [0, 100]}}, sample: generate, rows: 5}}
"""


def test_a_config_names_the_class(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG.format(module=__name__))
    (audit,) = read_configs([tmp_path / "c.yaml"])
    mechanism, claim = audit.load()
    assert claim == PureDP(2.0)
    assert {row["age"] for pair in audit.pairs for row in pair.d1} >= {0, 100}
    assert len(mechanism.loaded.sample(audit.pairs[0].d1, 1, np.random.default_rng(0))[0]) == 5


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("Copies", {"schema": {"a": [0, 1]}}, "call must be MODULE:CLASS"),
        (f"{__name__}:Nobody", {"schema": {"a": [0, 1]}}, "has no Nobody"),
        (f"{__name__}:Copies", {}, "arguments must have schema"),
    ],
)
def test_wrong_calls_are_refused(call: str, arguments: Any, message: str) -> None:
    with pytest.raises(LookupError, match=message):
        inside.called(call, arguments)


def test_a_default_delta_is_read() -> None:
    assert synthesizer.subject(Hidden, SCHEMA, epsilon=1.0).claim == ApproxDP(epsilon=1.0, delta=1e-5)
    settings: list[dict[str, Any]] = [{}, {"delta": None}]
    for given in settings:
        found = synthesizer.subject(ChosenDelta, SCHEMA, epsilon=1.0, **given)
        assert found.claim == ApproxDP(epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (Hidden, {"delta": "1e-5"}, "the argument delta is '1e-5' of type str, which is no number; pass the claim"),
        (
            NoDelta,
            {},
            "the default of the argument delta is 'None', which is no number; pass the claim, such as claim=",
        ),
        (TargetDelta, {}, "the argument target_delta may be the delta of the claim; pass the claim"),
    ],
)
def test_a_delta_that_cannot_be_read_is_no_pure_claim(make: Any, given: Any, message: str) -> None:
    with pytest.raises(UnknownSubject, match=message):
        synthesizer.subject(make, SCHEMA, epsilon=1.0, **given)
    assert synthesizer.subject(make, SCHEMA, epsilon=1.0, claim="pure(epsilon=2)", **given).claim == PureDP(2.0)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"age": int}, "schema: age must be .* got <class 'int'>"),
        ({"c": "abc"}, r"schema: c must be .* got 'abc'; one category is \['abc'\]"),
        (pandas.DataFrame({"a": [1, 2]}), "schema must be a dict that maps each column .* got DataFrame"),
        ({"d": (datetime.date(2020, 1, 1), datetime.date(2021, 1, 1))}, "d has two dates, 2020-01-01 and 2021-01-01"),
    ],
)
def test_a_schema_that_is_not_valid_is_refused_in_one_sentence(schema: Any, message: str) -> None:
    with pytest.raises(UnknownSubject, match=message):
        synthesizer.subject(Hidden, schema, epsilon=1.0)
    with pytest.raises(ValueError, match=message):
        SearchPairs(relation="add_remove", schema=schema, tiny=True)


def test_a_fit_that_exits_is_an_outcome() -> None:
    found = synthesizer.subject(Exits, SCHEMA, epsilon=1.0)
    assert found.mechanism.sample([{"city": "Ulm", "age": 3}], 1, np.random.default_rng(0)) == [
        {"raised": "SystemExit", "message": "too few rows"}
    ]
    with pytest.raises(UnknownSubject, match="Exits raised SystemExit for both tables"):
        synthesizer.subject(Exits, SCHEMA, epsilon=1.0, least=99)


GENERATOR = """\
import os


class Generator:
    def __init__(self, privacy_budget, least=0):
        self.least = least

    def fit(self, table):
        os.chdir("/")
        if len(table) < self.least:
            raise ValueError("too few rows")

    def sample(self, rows):
        return rows
"""


def planned(folder: Path, arguments: str, more: str = "", call: str = "my_generator.py:Generator") -> PlannedAudit:
    (folder / "my_generator.py").write_text(GENERATOR)
    (folder / "c.yaml").write_text(
        "name: one\nclaim: pure(epsilon=1)\nmechanism:\n  library: synthesizer\n"
        f"  call: {call}\n  arguments: {arguments}\n{more}"
    )
    (audit,) = read_configs([folder / "c.yaml"])
    return audit


MADE = "make: {privacy_budget: 1.0}, schema: {age: [0, 9]}, rows: 3"


def test_a_file_beside_the_config_is_audited_under_its_name(tmp_path: Path) -> None:
    audit = planned(tmp_path, f"{{{MADE}}}")
    mechanism, claim = audit.load()
    assert claim == PureDP(1.0)  # a given claim needs no epsilon of the constructor
    assert mechanism_name(mechanism) == "my_generator.py:Generator(privacy_budget=1.0), 3 rows"
    file = tmp_path / "my_generator.py"
    assert (source_of(mechanism).file, source_of(mechanism).sha256) == (file, file_fingerprint(file))
    assert str(tmp_path) in audit.code
    assert audit.claim_stated_by == "the config"
    assert len(audit.pairs) > 1


def test_relation_and_number_of_pairs_are_arguments(tmp_path: Path) -> None:
    audit = planned(tmp_path, f"{{{MADE}, relation: replace_one, most: 2, out_of_domain: true}}")
    assert [pair.relation for pair in audit.pairs] == ["replace_one"] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("{schema: {age: [0, 9]}, relation: replace}", "relation must be add_remove or replace_one, got 'replace'"),
        ("{schema: {age: [0, 9]}, most: 0}", "most must be at least 1"),
        ("{schema: {age: [0, 9]}, epsilon: 1}", "arguments must have schema, and may have make"),
        ("{schema: {age: 9}}", "schema: age must be"),
        ("{schema: {d: [2020-01-01, 2021-01-01]}}", "d has two dates, 2020-01-01 and 2021-01-01"),
        ("{schema: {age: [0, 9]}, table: csv}", "table must be frame, rows or columns"),
    ],
)
def test_a_config_refuses_wrong_arguments_before_any_code_runs(tmp_path: Path, arguments: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        planned(tmp_path, arguments)


def test_a_config_names_no_module_of_the_standard_library(tmp_path: Path) -> None:
    (tmp_path / "others.py").write_text("from subprocess import Popen")
    for call in ("others.py:Popen", f"{subprocess.__file__}:Popen"):
        with pytest.raises(LookupError, match="Python's standard library"):
            inside.called(call, {"schema": {"age": [0, 9]}}, str(tmp_path))
    with pytest.raises(ConfigError, match="standard library, got subprocess"):
        planned(tmp_path, f"{{{MADE}}}", call="subprocess:Popen")


@pytest.mark.parametrize("failures", ["", "failures: stop"])
def test_a_config_is_refused_if_the_fit_fails_on_both_tables(tmp_path: Path, failures: str) -> None:
    arguments = "{make: {privacy_budget: 1.0, least: 99}, schema: {age: [0, 9]}}"
    with pytest.raises((UnknownSubject, MechanismError), match="too few rows"):
        planned(tmp_path, arguments, failures).load()


def test_failures_of_a_config_are_respected(tmp_path: Path) -> None:
    arguments, rows = "{make: {privacy_budget: 1.0, least: 2}, schema: {age: [0, 9]}}", [{"age": 1}]
    for failures in ("", "failures: outcome"):
        audit = planned(tmp_path, arguments, failures)
        assert audit.load()[0].loaded.sample(rows, 1, None) == [{"raised": "ValueError", "message": "too few rows"}]
        assert audit.settings.failures == "stop"  # the generator itself returns the exception
    with pytest.raises(ValueError, match="too few rows"):
        planned(tmp_path, arguments, "failures: stop").load()[0].loaded.sample(rows, 1, None)
