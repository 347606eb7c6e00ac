"""Lint and types are part of the tests, so that there is one command for all.

One call of mypy reads the packages, the tests (`tests/typed/` among them) and the benchmarks, and keeps its cache in
`.mypy_cache`.  It runs without garbage collection, which takes a tenth of its time and frees 0.3 GB.  `conftest.py`
starts these tests first.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
UNCOLLECTED = (
    "import gc, runpy, sys; gc.disable(); gc.enable = gc.disable; runpy.run_module(sys.argv.pop(), run_name='__main__')"
)


@pytest.mark.parametrize(
    "command",
    [("-c", UNCOLLECTED, "mypy"), ("-m", "ruff", "check", "."), ("-m", "ruff", "format", "--check", ".")],
    ids=["types", "lint", "format"],
)
def test_the_code_is_clean(command: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
