"""Each block is on the disk before the audit continues, so that a power cut loses at most one block."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from dpaudit.result.atomic_write import write_placed, write_whole
from dpaudit.sampling.store import Store, opened, seed_of

from .stores import block


def test_a_file_and_its_folder_are_flushed_around_the_replacement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    flush, replace = os.fsync, os.replace

    def fsync(handle: int) -> None:
        done.append("flush folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "flush file")
        flush(handle)

    def renamed(old: str, new: Path) -> None:
        done.append("replace")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", renamed)
    write_whole(tmp_path / "r.json", "{}")
    assert done == ["flush file", "replace", "flush folder"]


def test_a_store_flushes_each_block(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "s")) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_store_whose_creation_was_interrupted_can_be_used(tmp_path: Path) -> None:
    """The store is an empty file, or has tables without rows.  Once such a store refused every audit."""
    (tmp_path / "empty").touch()
    opened(tmp_path / "tables").close()
    for name in ("empty", "tables"):
        seed_of(tmp_path / name)
        with Store(tmp_path / name, {"part": "a"}) as store:
            store.put(0, 0, *block(2))
        with Store(tmp_path / name, {"part": "a"}) as again:
            assert again.trials == {0: 2}


def aged(path: Path) -> None:
    """Make a file or folder as old as one that a process left yesterday."""
    os.utime(path, (1.0, 1.0), follow_symlinks=False)


@pytest.mark.parametrize("write", [write_whole, write_placed])
def test_the_next_write_removes_part_files_of_killed_processes(write: Callable[..., None], tmp_path: Path) -> None:
    names = [".dpaudit-left.part", ".dpaudit-young.part", ".other-left.part", "mine.part"]
    for name in names:
        (tmp_path / name).write_text("incomplete")
        if "young" not in name:
            aged(tmp_path / name)
    write(tmp_path / "r.json", "{}")
    assert {file.name for file in tmp_path.iterdir()} == {*names[1:], "r.json"}


def test_only_its_owner_can_read_a_new_store(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with closing(opened(tmp_path / "s")) as connection:
            connection.execute("INSERT INTO about VALUES ('seed', '1')")
            modes = {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {0o600}
