"""The code of docs/reports.md runs, and its section works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpaudit_reports.html_blocks import blocks_html

TEXT = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")


def test_the_code_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(code, "docs/reports.md", "exec"), space)
    made = {file.name for file in tmp_path.iterdir()}
    assert made == {"report.pdf", "report.html", "comment.md", "long.html", "comparison.pdf", "site"}
    patterns = re.findall(r"^\| `([A-Za-z.-]+)` \|", TEXT.split("## A site of many audits")[1], re.MULTILINE)
    assert len(patterns) == 5
    for pattern in patterns:
        assert list((tmp_path / "site").glob(pattern.replace("NAME-DIGEST", "*-*"))), pattern
    review, results = space["review"], space["results"]
    assert "Review" in "".join(blocks_html(review(result)) for result in results)  # type: ignore[operator,attr-defined]
