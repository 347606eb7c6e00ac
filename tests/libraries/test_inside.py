"""What runs in private environments needs neither dpaudit nor a new Python."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dpaudit.libraries.inside as package

FILES = sorted(Path(package.__path__[0]).glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_module_is_valid_python_3_8_and_imports_the_standard_library_only(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 8))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in top if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in top if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names
    newer = {"cache", "removeprefix", "removesuffix", "bit_count", "pairwise"}  # Python 3.9 or later
    assert newer.isdisjoint(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))


STUB = '''
class Count:
    """An algorithm with the interface of PyDP."""
    delta = 0.0

    def __init__(self, epsilon, dtype="int"):
        self.epsilon = epsilon

    def quick_result(self, data):
        return len(data)
'''


def test_a_bare_interpreter_makes_and_runs_an_object(tmp_path: Path) -> None:
    """The stub stands for a library in an environment without numpy; -I and -S hide all installed packages."""
    home = tmp_path / "pydp" / "algorithms"
    home.mkdir(parents=True)
    (home / "laplacian.py").write_text(STUB)
    (tmp_path / "python_dp-1.0.dist-info").mkdir()
    (tmp_path / "python_dp-1.0.dist-info" / "METADATA").write_text("Name: python-dp\nVersion: 1.0\n")
    code = (
        "import importlib.util, sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        f"spec = importlib.util.spec_from_file_location('_start', {str(FILES[0].parent / 'start.py')!r})\n"
        "start = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(start)\n"
        "given = dict(library='pydp', call='Count', arguments={'epsilon': 0.5})\n"
        "print(start.Called(**given).sample([1, 2, 3], 2, None))\n"
        "print(start.Called(**given).sample(start.FACTS, 1, None))\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    outputs, facts = map(ast.literal_eval, done.stdout.splitlines())
    assert outputs == [3, 3]
    assert facts == [
        {"epsilon": 0.5, "delta": 0.0, "name": "Count", "version": "1.0", "dtype": "int"},
    ]
