"""Each process imports the file of a mechanism by the same name."""

from __future__ import annotations

from pathlib import Path

from dpaudit import Pair, audit
from dpaudit.running.python import PythonMechanism

from ..other_hashes import output_with_other_hashes

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
        "from pathlib import Path; from dpaudit.running.python import PythonMechanism; "
        f"print(PythonMechanism('mine.py:release', folder=Path({str(tmp_path)!r})).loaded.__module__)"
    )
    elsewhere = output_with_other_hashes(code)
    mechanism = PythonMechanism("mine.py:release", folder=tmp_path)
    assert elsewhere == f"{mechanism.loaded.__module__}\n"
    result = audit(mechanism, "gaussian(mu=1)", Pair([0], [1]), trials=60, seed=0, jobs=2)
    assert (result.trials_used, result.warnings) == (60, ())
