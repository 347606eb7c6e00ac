"""Configs with `library: synthesizer`: names of generators, claims, arguments, and fits that fail."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dpaudit import PureDP
from dpaudit.config import ConfigError, PlannedAudit, read_configs
from dpaudit.libraries.inside import synthesizer as inside
from dpaudit.libraries.subject import UnknownSubject
from dpaudit.running import MechanismError
from dpaudit.running.identity import mechanism_name
from dpaudit.running.modules import file_fingerprint
from dpaudit.running.sources import source_of

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
    """Return the audit of a config beside a generator."""
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
