"""dpaudit works under numpy's default error state, and foreign code under the state that it has set."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from dpaudit import AuditResult, GaussianDP, Pair, Verdict, audit
from dpaudit.mechanisms.python import PythonMechanism

CONFIG = """\
name: noise
claim: gaussian(mu=1)
mechanism: {python: "mine.py:f"}
pairs: [{d0: [0.0], d1: [1.0]}]
trials: 600
seed: 1
"""
STRICT = "np.seterr(all='raise')\n"
RUN = """
def f(dataset, rng):
    {line}
    return dataset[0] + rng.normal()
"""


@pytest.mark.parametrize(
    "code", ["import numpy as np\n" + STRICT + RUN.format(line=""), "import numpy as np\n" + RUN.format(line=STRICT)]
)
def test_an_error_state_that_a_module_sets_does_not_reach_dpaudit(
    code: str, tmp_path: Path, command: Callable[..., Result]
) -> None:
    (tmp_path / "mine.py").write_text(code)
    (tmp_path / "c.yaml").write_text(CONFIG)
    done = command("run", "c.yaml")
    assert "internal error" not in done.stderr
    result = AuditResult.from_json(tmp_path / "dpaudit-results" / "noise.json")
    assert result.verdict is not Verdict.INCONCLUSIVE


def test_a_module_that_is_loaded_during_an_audit_sets_the_state_of_runs_only(tmp_path: Path) -> None:
    strict = RUN.format(line="assert np.geterr()['under'] == 'raise'")
    (tmp_path / "mine.py").write_text("import numpy as np\n" + STRICT + strict)
    with np.errstate():
        mechanism = PythonMechanism("mine.py:f", folder=tmp_path)
        result = audit(mechanism, GaussianDP(1.0), Pair([0.0], [1.0]), trials=600, seed=1)
    assert result.verdict is not Verdict.INCONCLUSIVE


def test_a_mechanism_runs_under_the_error_state_of_its_caller() -> None:
    seen: set[str] = set()

    def mechanism(dataset: Any, rng: np.random.Generator) -> float:
        seen.add(np.geterr()["under"])
        return float(dataset[0] + rng.normal())

    with np.errstate(all="raise"):
        strict = audit(mechanism, GaussianDP(1.0), Pair([0.0], [1.0]), trials=600, seed=1)
        assert np.geterr()["under"] == "raise"
    assert seen == {"raise"}
    usual = audit(mechanism, GaussianDP(1.0), Pair([0.0], [1.0]), trials=600, seed=1)
    assert strict.to_dict()["evidence"] == usual.to_dict()["evidence"]
    assert seen == {"raise", "ignore"}


def test_a_mechanism_that_lowers_the_recursion_limit_gets_its_result(tmp_path: Path) -> None:
    def mechanism(dataset: Any, rng: np.random.Generator) -> float:
        sys.setrecursionlimit(len(inspect.stack(0)) + 30)
        return float(dataset[0] + rng.normal())

    before = sys.getrecursionlimit()
    try:
        audit(mechanism, GaussianDP(1.0), Pair([0.0], [1.0]), trials=60, seed=1).to_json(tmp_path / "r.json")
        assert sys.getrecursionlimit() == before
    finally:
        sys.setrecursionlimit(before)
