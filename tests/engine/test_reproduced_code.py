"""New processes run the audited code of a program, a script or a module.

The mechanisms draw noise once.  The allowed processes are too few to test the claim, so nothing is left to chance.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from dpaudit.engine import reproduced
from dpaudit.mechanisms import CommandMechanism

from .reproducing import audited, is_in_doubt


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a slow machine from reducing the number of processes."""
    monkeypatch.setattr(reproduced, "MAX_SECONDS", 3600.0)


def test_a_program_with_a_pool_is_started_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The state of a program cannot be read, but its outputs show the pool."""
    monkeypatch.setattr(reproduced, "_MAX_CONFIRMING", 2)
    (tmp_path / "pool.py").write_text(
        "import json, random, sys\n"
        "pool = [random.gauss(0, 1) for _ in range(5)]\n"
        "for line in sys.stdin:\n"
        "    q = json.loads(line)\n"
        "    out = [q['dataset'][0] + random.choice(pool) for _ in range(q['n'])]\n"
        "    print(json.dumps({'outputs': out}), flush=True)\n"
    )
    with CommandMechanism([sys.executable, "pool.py"], cwd=tmp_path) as mechanism:
        is_in_doubt(audited(mechanism), "only 5 different values")


_SCRIPT = """
import json
import numpy as np
from dpaudit import Pair, audit

DRAWN = float(np.random.default_rng(5).laplace())
SHIFT = 1 / 3
scale = 0.25
def drawn(dataset, rng):
    return dataset[0] + DRAWN
def shifted(dataset, rng):
    return dataset[0] * scale + SHIFT
def noisy(dataset, rng):
    return dataset[0] + DRAWN + 0.3 * rng.laplace()
if __name__ == "__main__":
    from dpaudit.engine import constant_outputs, reproduced

    constant_outputs.MAX_SECONDS = reproduced.MAX_SECONDS = 3600.0  # a slow machine reduces no number of processes
    found = {}
    for mechanism in (drawn, shifted, noisy):
        result = audit(
            mechanism, "pure(epsilon=1)", Pair([0], [1]), attacks="median_clipped", trials=300, seed=0, confidence=0.95
        )
        found[mechanism.__name__] = result.verdict.name, " ".join(result.warnings)
    print(json.dumps(found))
"""


def test_a_number_drawn_in_a_script_is_told_from_a_parameter(tmp_path: Path) -> None:
    """New processes cannot run the script again.  Its source shows which numbers are literals.  The seed decides."""
    (tmp_path / "script.py").write_text(_SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    verdict, words = found["drawn"]
    assert verdict == "INCONCLUSIVE"
    assert "the source does not define DRAWN as a literal" in words
    verdict, words = found["shifted"]
    assert verdict == "VIOLATION"
    assert "the mechanism has no noise or a fixed seed" in words
    verdict, words = found["noisy"]
    assert verdict == "VIOLATION"
    assert "runs in this process were assumed to be independent" in words
    assert "DRAWN" in words


@pytest.mark.parametrize("first", [False, True])
def test_a_module_of_the_same_name_does_not_stand_for_the_audited_one(
    first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New processes do not import another module from the working folder, or one that is found first on the path.

    With the other module, which keeps no noise, the violation would stand.  The allowed processes are too few to test
    the claim, so nothing is left to chance.
    """
    monkeypatch.setattr(reproduced, "_MAX_CONFIRMING", 2)
    pool = "return float(dataset[0] + POOL[rng.integers(3)] + 1e-6 * rng.normal())"
    for folder, body in (("own", pool), ("other", "return float(dataset[0] + rng.normal())")):
        (tmp_path / folder).mkdir()
        text = f"import numpy as np\nPOOL = np.random.default_rng().laplace(size=3)\ndef release(dataset, rng): {body}"
        (tmp_path / folder / "of_one_name.py").write_text(text)
    monkeypatch.chdir(tmp_path / "other")
    monkeypatch.syspath_prepend(tmp_path / "own")
    mechanism = importlib.import_module("of_one_name").release
    if first:
        monkeypatch.syspath_prepend(tmp_path / "other")
    try:
        is_in_doubt(audited(mechanism, confidence=0.999999), "holds different numbers")
    finally:
        del sys.modules["of_one_name"]
