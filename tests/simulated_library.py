"""A library with the interface of PyDP whose algorithms are simulated, and a catalogue of them.

The outputs are those of geometric noise on the number of records.  The generators have seeds.
"""

import itertools
import sys
import time
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from dpaudit.libraries import configured

CATALOGUE = """\
library: pydp
package: python-dp
versions: ["1.1.4", "1.1.5"]
entries:
  - call: Right
    grid: {epsilon: [0.5, 1.0]}
    arguments: {epsilon: $epsilon}
  - call: Wrong
    grid: {epsilon: [0.5, 1.0]}
    arguments: {epsilon: $epsilon}
  - call: Missing
    arguments: {epsilon: 1.0}
"""


class Right:
    """A count with geometric noise that keeps its claim exactly."""

    delta, factor = 0.0, 1.0
    _seeds = itertools.count()

    def __init__(self, epsilon: float, dtype: str = "int") -> None:
        self.epsilon = epsilon
        self._rng = np.random.default_rng(next(self._seeds))

    def quick_result(self, data: list[float]) -> float:
        p = 1 - np.exp(-self.epsilon * self.factor)
        return len(data) + float(self._rng.geometric(p) - self._rng.geometric(p))


class Wrong(Right):
    """A count with eight times the stated privacy loss."""

    factor = 8.0


class Hangs(Right):
    """A count that never ends."""

    def quick_result(self, data: list[float]) -> float:
        while True:
            time.sleep(0.01)


class Raises(Right):
    """A count that fails in every run."""

    def quick_result(self, data: list[float]) -> float:
        raise RuntimeError("no memory left on the device")


class Exits(Right):
    """A count whose construction ends the process."""

    def __init__(self, epsilon: float) -> None:
        raise SystemExit(3)


def simulated_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, catalogue: str = CATALOGUE) -> Path:
    """Replace PyDP by the simulated library in this process, and return the file of its catalogue."""
    for name in ("pydp", "pydp.algorithms", "pydp.algorithms.laplacian"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        for kind in (Right, Wrong, Hangs, Raises, Exits):
            setattr(module, kind.__name__, kind)
        monkeypatch.setitem(sys.modules, name, module)
    configured._read.cache_clear()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    file = tmp_path / "counts.yaml"
    file.write_text(catalogue)
    return file
