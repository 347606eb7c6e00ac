"""The source of a function distinguishes parameters from numbers that may have been drawn."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import batched
from dpaudit.mechanisms.literals import drawn_perhaps
from dpaudit.mechanisms.python import PythonMechanism

_SOURCE = """
import math
import numpy as np

SCALE = 0.5
THIRD: float = -1 / 3
BOTH = (SCALE, 2 * THIRD)
ROOT = np.sqrt(2) + math.pi
GRID = np.array([0.1, 0.7])
NOISE = np.random.default_rng().normal()
SHIFTED = 1 + NOISE
LATE = 0.25
LATE += NOISE
WHOLE = 3
REBOUND = 0.5

def parameters(dataset, rng):
    return SCALE + THIRD + BOTH[0] + ROOT + GRID[0] + WHOLE
def noise(dataset, rng):
    return dataset[0] + NOISE
def shifted(dataset, rng):
    return dataset[0] + SHIFTED
def late(dataset, rng):
    return dataset[0] + LATE
def default(dataset, rng, scale=0.5, *, third=1 / 3):
    return scale + third
def drawn_default(dataset, rng, scale=0.5, noise=NOISE):
    return noise
def inner(dataset, rng):
    return noise(dataset, rng)
def rebind():
    global REBOUND
    REBOUND = np.random.default_rng().normal()
def rebound(dataset, rng):
    return REBOUND
def make(scale):
    third = 1 / 3
    drawn = np.random.default_rng().normal()
    def given(dataset, rng):
        return scale + third
    def kept(dataset, rng):
        return drawn
    return given, kept
given, kept = make(0.7)
arrow = lambda dataset, rng: NOISE
"""


@pytest.fixture
def source(tmp_path: Path) -> Any:
    (tmp_path / "literals_or_not.py").write_text(_SOURCE)
    return lambda name: PythonMechanism(f"literals_or_not.py:{name}", folder=tmp_path).loaded


@pytest.mark.parametrize(
    ("name", "drawn"),
    [
        ("parameters", []),
        ("noise", ["NOISE"]),
        ("shifted", ["SHIFTED"]),
        ("late", ["LATE"]),
        ("default", []),
        ("drawn_default", ["noise"]),
        ("inner", ["NOISE"]),
        ("rebound", ["REBOUND"]),
        ("given", []),
        ("kept", ["drawn"]),
        ("arrow", ["NOISE"]),
    ],
)
def test_numbers_are_parameters_only_if_the_source_shows_it(source: Any, name: str, drawn: list[str]) -> None:
    assert drawn_perhaps(source(name)) == drawn
    assert drawn_perhaps(batched(source(name))) == drawn


@pytest.fixture(autouse=True)
def _no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace `__main__`, which is a file of pytest without xdist, so that its functions would count as a library's."""
    monkeypatch.setitem(sys.modules, "__main__", types.ModuleType("__main__"))


def _run(cells: list[str], **names: Any) -> Any:
    """Return a function that was defined in the cells of a notebook."""
    module = types.ModuleType("__main__")
    vars(module).update(names)
    for cell in cells:
        exec(compile(cell, "<cell>", "exec"), vars(module))
    return vars(module)["release"]


def test_the_cells_of_a_notebook_are_its_source() -> None:
    cells = [
        "",
        "SCALE = 0.5\nNOISE = float(np.random.default_rng(0).normal())",
        "def release(dataset, rng): return SCALE + NOISE",
    ]
    assert drawn_perhaps(_run(cells, In=cells, np=np)) == ["NOISE"]
    assert drawn_perhaps(_run(cells, np=np)) == ["NOISE", "SCALE"]  # there is no source


_DRAWN = "generator = np.random.default_rng(0)\n"
_RELEASE = "def release(dataset, rng): return dataset[0] + KEPT[0]\n"


@pytest.mark.parametrize(
    "change",
    [
        "KEPT = []\nKEPT.append(generator.normal())",
        "KEPT = [0.5]\nKEPT[0] = generator.normal()",
        "KEPT = [0.5]\nKEPT[0] += generator.normal()",
        "KEPT = [0.1, 0.2, 0.3]\ngenerator.shuffle(KEPT)",
        "KEPT = np.zeros(3)\nKEPT[:] = generator.normal(size=3)",
        "KEPT = np.zeros(3)\ngenerator.standard_normal(out=KEPT)",
        "KEPT = {}\ndef fill():\n    KEPT[0] = generator.normal()\nfill()",
        "FIRST = []\nFIRST.append(generator.normal())\nKEPT = (FIRST,)[0]\nKEPT = FIRST",
    ],
)
def test_a_list_that_is_changed_in_place_is_not_a_literal(change: str) -> None:
    cells = [_DRAWN + change, _RELEASE]
    assert drawn_perhaps(_run(cells, In=cells, np=np)) == ["KEPT"]


def test_an_argument_that_is_changed_in_place_is_not_a_parameter() -> None:
    cells = [
        _DRAWN + "def make(kept):\n    kept[0] = generator.normal()\n"
        "    def release(dataset, rng): return dataset[0] + kept[0]\n    return release\nrelease = make([0.5])"
    ]
    assert drawn_perhaps(_run(cells, In=cells, np=np)) == ["kept"]


@pytest.mark.parametrize(
    "other",
    [
        "def mean(numbers): return [sum(numbers) + generator.normal()]",
        "mean = lambda numbers: [generator.normal()]",
        "class mean:\n    def __new__(cls, numbers): return [generator.normal()]",
        "from statistics import *",
        "from statistics import fmean as mean",
    ],
)
def test_a_function_of_the_user_s_may_draw_whatever_its_name(other: str) -> None:
    cells = [f"{_DRAWN}{other}\nKEPT = [0.25]", "KEPT = mean([0.25, 0.5])", _RELEASE]
    assert drawn_perhaps(_run(cells, In=cells, np=np)) == ["KEPT"]


@pytest.mark.parametrize(
    "imports", ["from numpy import mean", "from numpy import *", "import numpy.linalg, math\nfrom numpy import mean"]
)
def test_functions_of_numpy_draw_nothing(imports: str) -> None:
    cells = [f"{imports}\nKEPT = [mean([0.25, 0.5])]", _RELEASE]
    assert drawn_perhaps(_run(cells, In=cells, np=np)) == []


def test_chains_of_names_are_looked_up_once() -> None:
    """Without a cache this would take 30**8 look-ups."""
    lines = ["KEPT0 = 0.5"]
    lines += [f"KEPT{i} = [{', '.join([f'KEPT{i - 1}'] * 30)}]" for i in range(1, 9)]
    cells = ["\n".join(lines), "KEPT = [KEPT8]", _RELEASE.replace("dataset[0] + ", "")]
    module = types.ModuleType("__main__")
    vars(module).update(In=cells, KEPT=[0.5])
    exec(cells[2], vars(module))
    assert drawn_perhaps(vars(module)["release"]) == []
