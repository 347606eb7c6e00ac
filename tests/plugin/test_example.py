"""The example project's suite finds nothing in its code, and finds a planted bug.

The first test fails by chance with one of 1,000 seeds, the second with fewer.  The seeds are fixed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["pytester"]

EXAMPLE = Path(__file__).parent / "example"
RIGHT, WRONG = "(self.mu * len(dataset))", "(self.mu * (len(dataset) + 5))"


@pytest.mark.usefixtures("two")
def test_the_example_finds_a_planted_bug(run: Callable[..., Any], pytester: pytest.Pytester) -> None:
    """Noise that is 20 % too small."""
    shutil.copytree(EXAMPLE, pytester.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    done = run(None)
    assert done.counts == {"passed": 5}, done.out
    assert "4 audits: ○ 4 no violation found" in done.out
    code = (pytester.path / "noise.py").read_text()
    assert RIGHT in code
    (pytester.path / "noise.py").write_text(code.replace(RIGHT, WRONG))
    done = run(None, "-k", "test_mean or test_without")
    assert done.counts == {"passed": 1, "failed": 1, "deselected": 3}, done.out
    assert "VIOLATION of gaussian(mu=1)" in done.out
