"""Generators in the fit-and-sample habit: claim from the constructor, tiny tables, failures as outcomes, configs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from dpaudit import ApproxDP, PureDP
from dpaudit.config import read_configs
from dpaudit.libraries import synthesizer
from dpaudit.libraries.inside import synthesizer as inside
from dpaudit.libraries.subject import UnknownSubject

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


def subject(**settings: Any) -> Any:
    return synthesizer.subject(Copies, SCHEMA, **{"sample": "generate", "rows": 20, **settings})


def test_the_claim_is_that_of_the_constructor_and_the_pairs_are_tiny_tables() -> None:
    found = subject(epsilon=0.5)
    assert found.claim == PureDP(0.5)
    assert subject(delta=1e-5).claim == ApproxDP(epsilon=1.0, delta=1e-5)
    assert subject(claim=PureDP(3.0)).claim == PureDP(3.0)
    assert 2 <= len(found.pairs) <= synthesizer.MAX_PAIRS
    assert {row["age"] for pair in found.pairs for row in pair.d1} >= {0, 100}
    assert found.name == "Copies"
    assert found.mechanism.libraries == (Copies.__module__.partition(".")[0],)
    assert {pair.relation for pair in subject(relation="replace_one").pairs} == {"replace_one"}


@pytest.mark.parametrize("table", ["frame", "rows", "columns"])
def test_tables_are_passed_in_the_form_that_fit_takes(table: str) -> None:
    rows = subject(table=table).mechanism.sample([{"city": "Ulm", "age": 3}], 2, np.random.default_rng(0))
    assert [frame.to_dict("records")[0] for frame in rows] == [{"city": "Ulm", "age": 3}] * 2


def test_fit_and_sample_may_be_functions() -> None:
    def fit(made: Any, table: Any) -> None:
        made.rows = table

    found = subject(fit=fit, sample=lambda made, rows: made.rows.head(rows), fit_arguments={})
    assert len(found.mechanism.sample([{"city": "Ulm", "age": 3}], 1, np.random.default_rng(0))[0]) == 1


def test_a_fit_that_fails_on_few_rows_is_an_outcome() -> None:
    found = subject(least=5)
    small, large = ([{"city": "Ulm", "age": 3}] * n for n in (4, 5))
    assert found.mechanism.sample(small, 1, np.random.default_rng(0)) == [
        {"raised": "ValueError", "message": "too few rows"}
    ]
    assert len(found.mechanism.sample(large, 1, np.random.default_rng(0))[0]) == 20
    with pytest.raises(UnknownSubject, match=r"Copies raised ValueError for both tables.*too few rows; check schema"):
        subject(least=99)


def test_a_missing_package_is_no_outcome() -> None:
    def fit(made: Any, table: Any) -> None:
        raise ImportError("no module named torch")

    with pytest.raises(ImportError, match="torch"):
        subject(fit=fit)


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises(UnknownSubject, match="takes a class or a function"):
        synthesizer.subject(Copies(), SCHEMA)
    with pytest.raises(UnknownSubject, match="schema must map each column"):
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
        (
            f"{__name__}:Copies",
            {"schema": {"a": [0, 1]}, "epsilon": 1},
            "arguments must have schema, and may have make",
        ),
    ],
)
def test_wrong_calls_are_refused(call: str, arguments: Any, message: str) -> None:
    with pytest.raises(LookupError, match=message):
        inside.called(call, arguments)
