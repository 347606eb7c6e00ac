"""The folder of a site: only files of the site are replaced or removed, also if a call was interrupted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dpaudit_reports
from dpaudit_reports import site
from dpaudit_reports.site import MANIFEST

from . import sample
from .test_site import _short_pages as _short_pages  # used automatically
from .test_site import failing_at, named, written


def test_other_files_of_the_folder_are_not_touched(tmp_path: Path) -> None:
    mine = {"index.html": "mine", "notes.txt": "mine"}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=r"holds files that dpaudit did not write.*: index\.html; move them away"):
        dpaudit_reports.write_site([sample.violation()], tmp_path)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == mine
    (tmp_path / "index.html").unlink()
    written(tmp_path, sample.violation())
    written(tmp_path, sample.no_violation())
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_page_that_was_edited_is_neither_replaced_nor_removed(tmp_path: Path) -> None:
    page = next(name for name in written(tmp_path, named("a")) if name.startswith("a-") and name.endswith(".html"))
    (tmp_path / page).write_text("mine")
    with pytest.raises(ValueError, match="or that were changed since"):
        dpaudit_reports.write_site([named("a")], tmp_path)
    dpaudit_reports.write_site([named("b")], tmp_path)
    assert (tmp_path / page).read_text() == "mine"


def test_an_interrupted_call_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(site, "write_placed", failing_at("feed.json"))
        with pytest.raises(OSError, match="full"):
            dpaudit_reports.write_site([named("a")], tmp_path)
    assert list(tmp_path.glob("a-*"))
    assert not (tmp_path / "index.html").exists()
    assert "index.html" in written(tmp_path, named("b"))
    assert not list(tmp_path.glob("a-*"))


def test_an_interrupted_call_makes_no_file_of_the_user_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, named("a"))
    with monkeypatch.context() as broken:
        broken.setattr(site, "write_placed", failing_at("index.html"))
        with pytest.raises(OSError, match="full"):
            dpaudit_reports.write_site([named("a"), named("b")], tmp_path)
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(ValueError, match=r"did not write.*: index\.html"):
        dpaudit_reports.write_site([named("a")], tmp_path)


def test_nothing_is_written_if_a_page_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "index", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        dpaudit_reports.write_site([named("a")], tmp_path / "site")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["index.html", "feed.json", MANIFEST])
def test_nothing_is_written_through_links(name: str, tmp_path: Path) -> None:
    folder, mine = tmp_path / "site", tmp_path / "mine"
    folder.mkdir()
    mine.write_text("precious")
    (folder / name).symlink_to(mine)
    with pytest.raises(ValueError, match=name):
        dpaudit_reports.write_site([sample.violation()], folder)
    assert mine.read_text() == "precious"
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(ValueError, match="is a symbolic link to"):
        dpaudit_reports.write_site([sample.violation()], tmp_path / "link")
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("files", [{"../mine": "0" * 64}, {"mine": "0" * 64}, [1]])
def test_a_manifest_that_names_other_files_is_refused(files: object, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / MANIFEST).write_text(json.dumps({"files": files, "addresses": {}}))
    with pytest.raises(ValueError, match="is not a manifest of dpaudit; move it away, or name another folder"):
        dpaudit_reports.write_site([sample.violation()], folder)
    assert [file.name for file in folder.iterdir()] == [MANIFEST]
    assert (tmp_path / "mine").read_text() == "precious"
