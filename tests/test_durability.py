"""Each block is on the disk before the audit continues, so that a power cut loses at most one block."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from dpaudit import AuditResult, Verdict
from dpaudit.result.atomic_write import write_placed, write_whole
from dpaudit.running.store import Store, opened, seed_of

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


CONFIG = """
name: sum
seed: 0
confidence: 0.95
claim: gaussian(mu=1)
mechanism: {builtin: gaussian, params: {sigma: 1.0}}
pairs: [{d0: [0], d1: [1]}]
trials: 10000
attacks: threshold
"""


def mounted(options: str, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run `command` with a tmpfs mounted on `folder`.

    The files of "FOLDER.before" are copied to the tmpfs first, and all files of the tmpfs to "FOLDER.left" at the end.
    """
    script = """
        mount -t tmpfs -o "$0" tmpfs "$1"; folder=$1; shift; cp -a "$folder.before/." "$folder"
        "$@"; code=$?; cp -a "$folder" "$folder.left"; exit $code
    """
    for name in (folder, folder.with_name(f"{folder.name}.before")):
        name.mkdir(exist_ok=True)
    inside = ["unshare", "-rm", "sh", "-c", script, options, str(folder), *command]
    return subprocess.run(inside, capture_output=True, text=True, check=False, timeout=1200)


def can_mount() -> bool:
    unshare = shutil.which("unshare")
    return (
        unshare is not None
        and not subprocess.run(
            [unshare, "-rm", "sh", "-c", "mount -t tmpfs tmpfs /mnt"], capture_output=True, check=False
        ).returncode
    )


def test_a_full_disk_ends_the_audit_without_a_verdict_and_overwrites_nothing(tmp_path: Path) -> None:
    """300 kB hold some of the 10,000 trials, but no second result."""
    if not can_mount():
        pytest.skip("no namespace in which a tmpfs can be mounted")
    (tmp_path / "c.yaml").write_text(CONFIG)
    out = tmp_path / "out"
    before = tmp_path / "out.before"
    before.mkdir()
    (before / "sum.json").write_text("an older result")
    run = [sys.executable, "-m", "dpaudit", "run", str(tmp_path / "c.yaml"), "-o", str(out), "-q", "--resume"]
    done = mounted("size=300k", out, *run)
    assert done.returncode == 3, done.stderr
    assert "the result of sum could not be written" in done.stderr
    assert "No space left on device; the JSON is in " in done.stderr
    assert "inconclusive" in done.stdout
    left = tmp_path / "out.left"
    assert {file.name for file in left.iterdir()} <= {"sum.json", "sum.trials", "sum.trials-wal"}
    assert (left / "sum.json").read_text() == "an older result"
    elsewhere = Path(done.stderr.split("the JSON is in ")[1].splitlines()[0].strip())
    result = AuditResult.from_json(elsewhere)
    shutil.rmtree(elsewhere.parent)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("No space left on device" in warning for warning in result.warnings)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    write_whole(tmp_path / "f", "one")
    (tmp_path / "link").symlink_to(tmp_path / "f")
    write_whole(tmp_path / "link", b"two")
    assert (tmp_path / "f").read_text() == "two"
    assert (tmp_path / "link").is_symlink()
    write_whole(tmp_path / "f", json.dumps("\ud800", ensure_ascii=False))
    assert json.loads((tmp_path / "f").read_text()) == "\ud800"
    with pytest.raises(OSError, match="No such file"):
        write_whole(tmp_path / "no folder" / "f", "x")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["f", "link"]
    write_whole("/dev/null", "x")
    assert Path("/dev/null").is_char_device()
