"""How the file of a mechanism is imported: copies made by forks end, and each process uses the same name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dpaudit import Pair, audit
from dpaudit.mechanisms import wire, worker
from dpaudit.mechanisms.python import PythonMechanism

from ..other_hashes import output_with_other_hashes

FORKS = """
import os

def fork():
    if child := os.fork():
        os.waitpid(child, 0)

fork()

class Mechanism:
    @property
    def claim(self):
        fork()
        return "gaussian(mu=1)"

    def __call__(self, dataset, rng):
        return 0.0

def make():
    fork()
    return Mechanism()
"""
CONFIG = "{name: n, claim: from mechanism, mechanism: {python: 'm.py:make', params: {}}, pairs: [{d0: 0, d1: 1}]}"
LOADS = """
from dpaudit.config import read_configs
(audit,) = read_configs(["c.yaml"])
audit.load()
print("loaded")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.py").write_text(FORKS)
    (tmp_path / "c.yaml").write_text(CONFIG)
    return tmp_path


def output_of(*words: str, folder: Path, given: bytes = b"") -> bytes:
    return subprocess.run([sys.executable, *words], cwd=folder, input=given, capture_output=True, timeout=100).stdout


def test_a_copy_made_on_import_by_a_factory_or_by_a_claim_ends(folder: Path) -> None:
    assert output_of("-c", LOADS, folder=folder) == b"loaded\n"


def test_a_copy_of_an_isolated_mechanism_does_not_answer(folder: Path) -> None:
    about = {"address": "m.py:make", "folder": str(folder), "params": {}, "batched": False, "memory": None}
    given = wire.frame({"do": "load", **about}) + wire.frame({"do": "about"})
    expected = wire.frame({}) + wire.frame({"claim": "gaussian(mu=1)", "batched": False})
    assert output_of("-I", worker.__file__, folder=folder, given=given) == expected


OWN_CLASS = """
import time
from dataclasses import dataclass
@dataclass
class Answer:
    value: float
def release(dataset, rng):
    time.sleep(0.002)
    return Answer(dataset[0] + rng.normal())
"""


def test_a_file_has_the_same_module_name_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN_CLASS)
    code = (
        "from pathlib import Path; from dpaudit.mechanisms.python import PythonMechanism; "
        f"print(PythonMechanism('mine.py:release', folder=Path({str(tmp_path)!r})).loaded.__module__)"
    )
    elsewhere = output_with_other_hashes(code)
    mechanism = PythonMechanism("mine.py:release", folder=tmp_path)
    assert elsewhere == f"{mechanism.loaded.__module__}\n"
    result = audit(mechanism, "gaussian(mu=1)", Pair([0], [1]), trials=60, seed=0, jobs=2)
    assert (result.trials_used, result.warnings) == (60, ())
