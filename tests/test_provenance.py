"""The provenance of a result: typed fields in the program, and the same JSON in files.  No audit runs here."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from dpaudit.engine.provenance import provenance_of
from dpaudit.result.provenance import Provenance, SourceFile, key
from dpaudit.running.sources import Source

FULL: dict[str, Any] = {
    "date": "2026-03-01T12:30:00+00:00",
    "seed": 2**70,
    "mechanism": "m",
    "python": "3.11.9",
    "platform": "Linux",
    "packages": {"dpaudit": "0.1.0"},
    "packages of the mechanism": {"numpy": "2.0"},
    "hashes of the mechanism's packages": {"numpy": "sha256:ab"},
    "file of the mechanism": {"path": "/a/b.py", "sha256": "ab"},
    "modules of the mechanism": {"c.py": "cd"},
    "identity": {"mechanism": "12"},
    "outputs": "blake2b:ef",
    "first outputs": ["1", "2"],
    "seconds of attacks": {"threshold": 0.5, "events": 1},
    "runs after the evidence": 3,
    "running times": "the worker",
    "trials of the second stage": 4,
    "config": "c.yaml",
    "folder": "/a",
    "source": "",
    "claim stated by": "the config",
    "command": "dpaudit run c.yaml",
    "audit": "name: x\n",
    "files of datasets": {"people.csv": "0" * 64},
    "number of the command": "1a",
    "audits of the command": 2,
    "confidence of the command": 0.99,
    "test": "t.py::test_x",
    "call": 1,
    "suite_seed": 0,
}


def test_a_file_that_states_everything_is_read_and_written_as_it_is() -> None:
    provenance = Provenance.read(FULL)
    assert provenance.other == {}
    assert dict(provenance.environment) == FULL
    assert list(provenance.environment) == list(FULL)
    assert {key(field.name) for field in dataclasses.fields(Provenance)} >= set(FULL)
    assert provenance.mechanism_file == SourceFile(path="/a/b.py", sha256="ab")
    assert all(getattr(provenance, field.name) is not None for field in dataclasses.fields(Provenance))


def test_the_order_of_a_file_stays_and_what_is_added_comes_last() -> None:
    backwards = dict(reversed(FULL.items()))
    provenance = Provenance.read(backwards)
    assert list(provenance.environment) == list(backwards)
    assert provenance == Provenance.read(FULL)
    reported = dataclasses.replace(Provenance.read({"seed": 1, "mine": 2, "date": "d"}), command="c", audit="a")
    assert list(reported.environment) == ["seed", "mine", "date", "command", "audit"]


@pytest.mark.parametrize("place", sorted(FULL))
@pytest.mark.parametrize("wrong", [None, True, object, [1], {"a": []}, {"path": None}])
def test_what_has_another_type_is_kept_and_decides_nothing(place: str, wrong: Any) -> None:
    stated = {**FULL, place: wrong}
    provenance = Provenance.read(stated)
    assert dict(provenance.environment) == stated
    (name,) = (field.name for field in dataclasses.fields(Provenance)[:-2] if key(field.name) == place)
    assert getattr(provenance, name) is None
    assert provenance.other == {place: wrong}


def test_the_environment_is_read_only_and_shares_nothing() -> None:
    provenance = Provenance.read(FULL)
    with pytest.raises(TypeError):
        provenance.environment["seed"] = 1  # type: ignore[index]
    provenance.environment["packages"]["dpaudit"] = "another"
    assert provenance == Provenance.read(FULL)


def test_audited_packages_precede_packages_for_data_and_dependencies() -> None:
    packages = {"cffi": "1", "numpy": "2", "opendp": "3", "python-dp": "4"}
    source = Source(packages=packages, used=frozenset({"numpy", "opendp", "python-dp"}))
    found = provenance_of(seed=1, mechanism="m", source=source).mechanism_packages
    assert found is not None
    assert list(found) == ["opendp", "python-dp", "numpy", "cffi"]
