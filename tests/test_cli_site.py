"""`dpaudit site` writes the pages of result files and folders, and reports what it removed, kept and left out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from dpaudit_reports import site

from .reports import sample

Command = Callable[..., Result]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two results.  Pages have no section, because other tests cover reports."""
    monkeypatch.setattr(site, "SECTIONS", ())
    (tmp_path / "results").mkdir()
    sample.violation().to_json(tmp_path / "results" / "bad.json")
    sample.inconclusive().to_json(tmp_path / "results" / "open.json")
    return tmp_path / "results"


def test_files_and_folders_become_a_site(results: Path, command: Command) -> None:
    shutil.copy(results / "bad.json", "copy.json")
    done = command("site", "results", "copy.json", "-o", "site", "--title", "Mine", "--url", "https://example.org/a")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "copy.json is a copy of results/bad.json, so both have one page" in done.stderr
    assert "the index is site/index.html" in done.stderr
    feed = json.loads(Path("site/feed.json").read_text("utf-8"))
    assert feed["title"] == "Mine"
    assert sorted(item["tags"][0] for item in feed["items"]) == ["inconclusive", "violation"]
    assert all(Path("site", item["url"].removeprefix("https://example.org/a/")).is_file() for item in feed["items"])


def test_the_file_name_of_a_result_begins_no_line(results: Path, command: Command) -> None:
    """A warning about a result of another version, or about a copy, began with the name of the file."""
    for name in ("FORGED.json", "FORGED 2.json"):
        shutil.copy(results / "bad.json", name)
    done = command("site", "FORGED.json", "FORGED 2.json", "-o", "site")
    assert done.exit_code == 0
    assert "warning: FORGED.json: the result names no version of dpaudit" in done.stderr
    assert "warning: FORGED 2.json is a copy of FORGED.json" in done.stderr
    assert not [line for line in done.stderr.splitlines() if line.startswith("FORGED")]


def test_a_second_call_reports_the_pages_that_it_removes_or_keeps(results: Path, command: Command) -> None:
    assert command("site", "results", "-o", "site").exit_code == 0
    done = command("site", "results/open.json", "-o", "site")
    assert "removed 1 page of audits that are not among the results" in done.stderr
    (page,) = Path("site").glob("opendp-*.html")
    page.write_text("mine")
    done = command("site", "results/bad.json", "-o", "site")
    assert f"{page} was changed since dpaudit wrote it, so it was kept" in done.stderr
    assert page.read_text() == "mine"


def test_files_that_would_be_replaced_are_named_and_nothing_is_written(results: Path, command: Command) -> None:
    Path("site").mkdir()
    Path("site/index.html").write_text("mine")
    done = command("site", "results", "-o", "site")
    assert done.exit_code == 2
    words = "error: --output: site holds files that dpaudit did not write, or that were changed since: index.html"
    assert words in " ".join(done.stderr.split())
    assert [file.read_text() for file in Path("site").iterdir()] == ["mine"]


def test_a_result_that_contradicts_its_counts_is_refused(results: Path, command: Command) -> None:
    values = json.loads((results / "open.json").read_text())
    (results / "open.json").write_text(json.dumps({**values, "verdict": "violation"}))
    done = command("site", "results", "-o", "site")
    assert done.exit_code == 2
    assert not Path("site").exists()
