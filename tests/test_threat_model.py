"""The threat model names existing tests, so that a test supports each of its statements."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
LINES = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| what a")]
NODES = sorted(set(re.findall(r"`(tests/[^`]*::[^`]*)`", PAGE)))


def test_each_line_of_the_table_names_a_test() -> None:
    assert len(LINES) >= 30
    assert [line for line in LINES if not re.search(r"\| `tests/[\w/]+\.py::test_\w+` \|$", line)] == []


@pytest.mark.parametrize("node", NODES)
def test_the_named_test_exists_and_is_run(node: str) -> None:
    file, _, name = node.partition("::")
    module = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found = [item for item in module.body if isinstance(item, ast.FunctionDef) and item.name == name]
    assert len(found) == 1, f"{file} has no test {name}"
    marks = "\n".join(map(ast.unparse, found[0].decorator_list))
    assert not re.search(r"mark\.(skip|xfail|slow)\b", marks), f"{node} is not run every time"


def test_every_kind_of_file_is_covered() -> None:
    kinds = ["config", "result file", "store", "baseline", "journal", "scores", "NPZ", "Parquet", "CSV", "JSON lines"]
    kinds += ["environment variables", "terminal", "worker process", "mechanism"]
    named = "\n".join(line.split("|")[1] for line in LINES)
    assert [kind for kind in kinds if kind not in named] == []


def test_the_page_can_be_found() -> None:
    assert "docs/threat-model.md" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "threat-model.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
