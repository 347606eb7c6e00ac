"""The tests for maintainers of other libraries are short, and the one of the installed library passes."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "libraries").glob("test_*.py"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_is_short_and_named_on_the_page(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 25
    assert f"python -m pytest {file.name} --dpaudit-false-alarm 1e-4" in ast.get_docstring(ast.parse(text))
    page = (Path(__file__).parents[2] / "docs" / "regression-tests.md").read_text(encoding="utf-8")
    assert f"| `{file.name}` |" in page


@pytest.mark.slow
def test_the_example_of_opendp_passes(tmp_path: Path) -> None:
    """Fails by chance < 1 in 10**6, by the budget of the session."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--dpaudit-false-alarm", "1e-7"]
    (file,) = [one for one in EXAMPLES if one.stem == "test_opendp"]
    done = subprocess.run([*command, str(file)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
