"""A full disk, and a disk that cannot be written: a small tmpfs in a separate namespace."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from dpaudit import AuditResult, Verdict
from dpaudit.result.atomic_write import write_whole

Command = Callable[..., Result]

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


needs_mount = pytest.mark.skipif(not can_mount(), reason="no namespace in which a tmpfs can be mounted")


@needs_mount
def test_a_full_disk_ends_the_audit_without_a_verdict_and_overwrites_nothing(tmp_path: Path, command: Command) -> None:
    """300 kB hold some of the 10,000 trials, but no second result."""
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
    # The store is complete: with more space, the resumed audit ends like an uninterrupted audit.
    for folder in (left, tmp_path / "undisturbed"):
        assert command("run", "c.yaml", "-o", folder.name, "-q", "--resume", "--no-pdf").exit_code == 0
    found, expected = (json.loads((folder / "sum.json").read_text()) for folder in (left, tmp_path / "undisturbed"))
    for key in ("trials_used", "evidence", "verdict", "e_value"):
        assert found[key] == expected[key]


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
