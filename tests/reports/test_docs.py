"""The code of docs/reports.md runs, and its section works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpaudit_reports.html import blocks_html

TEXT = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")


def test_the_code_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(code, "docs/reports.md", "exec"), space)
    assert {file.name for file in tmp_path.iterdir()} == {
        *("report.pdf", "report.html", "comment.md", "long.html", "comparison.pdf")
    }
    review, results = space["review"], space["results"]
    assert "Review" in "".join(blocks_html(review(result)) for result in results)  # type: ignore[operator,attr-defined]
