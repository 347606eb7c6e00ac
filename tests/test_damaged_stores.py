"""A truncated, damaged or changed store is refused, or returns exactly what was written."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import Result

from dpaudit import AuditResult, Verdict, audit
from dpaudit.catalogue import Gaussian
from dpaudit.result.atomic_write import write_placed, write_whole
from dpaudit.running.store import Store, StoreError, digest_of, opened, seed_of
from dpaudit.running.wire import HEADER, frame

from .crashes.command_line import CONFIG
from .stores import PAIRS, block, refused, stored


def test_a_truncated_block_is_dropped_and_repeated(tmp_path: Path) -> None:
    """After a power cut the log of the last transactions may end anywhere."""
    store = Store(tmp_path / "s", {"part": "a"})
    lengths = []
    for start, n in ((0, 3), (3, 5), (8, 2)):
        store.put(0, start, *block(n))
        lengths.append((tmp_path / "s-wal").stat().st_size)
    main, log = (tmp_path / "s").read_bytes(), (tmp_path / "s-wal").read_bytes()
    store.close()
    for length in [*range(0, len(log), 4001), *lengths, *(cut - 1 for cut in lengths)]:
        copy = tmp_path / f"copy-{length}"
        copy.write_bytes(main)
        copy.with_name(f"{copy.name}-wal").write_bytes(log[:length])
        with Store(copy, {"part": "a"}) as again:
            whole = sum(length >= cut for cut in lengths)
            assert again.trials == ({0: (3, 8, 10)[whole - 1]} if whole else {})
            for start, n in ((0, 3), (3, 5), (8, 2)):
                again.put(0, start, *block(n))
            assert again.trials == {0: 10}


@pytest.mark.parametrize("zeros", [1, 4096, 40_000])
def test_zero_bytes_after_a_power_cut_lose_no_block_and_leave_the_store_usable(zeros: int, tmp_path: Path) -> None:
    store = Store(tmp_path / "s", {"part": "a"})
    store.put(0, 0, *block(3))
    store.put(0, 3, *block(5))
    main, log = (tmp_path / "s").read_bytes(), (tmp_path / "s-wal").read_bytes()
    store.close()
    (tmp_path / "log").write_bytes(main)
    (tmp_path / "log-wal").write_bytes(log + bytes(zeros))
    (tmp_path / "main").write_bytes((tmp_path / "s").read_bytes() + bytes(zeros))
    for name in ("log", "main"):
        with Store(tmp_path / name, {"part": "a"}) as again:
            assert again.trials == {0: 8}
            again.put(0, 8, *block(2))
        with Store(tmp_path / name, {"part": "a"}) as again:
            assert again.trials == {0: 10}


def test_no_flipped_bit_changes_an_output_or_ends_in_a_traceback(tmp_path: Path) -> None:
    """Each of 75 stores with one damaged byte is refused, or returns what was written."""
    blocks = [(start, np.arange(300.0) + start, [("x", start, 0.5 * i) for i in range(300)]) for start in (0, 300, 600)]
    with Store(tmp_path / "s", {"part": "a"}) as store:
        for start, first, second in blocks:
            store.put(0, start, first, second)
    data = (tmp_path / "s").read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    copy = tmp_path / "copy"
    for place in [*range(0, 50, 2), *rng.integers(len(data), size=50).tolist()]:
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(rng.integers(8))
        copy.write_bytes(damaged)
        try:
            with Store(copy, {"part": "a"}) as again:
                for start, first, second in blocks:
                    found = again.get(0, start, start + 300)
                    if found is None:  # this block and all later blocks are lost, and their runs are repeated
                        assert again.trials.get(0, 0) <= start
                        break
                    assert np.array_equal(found[0], first)
                    assert list(found[1]) == second
        except StoreError:
            refused += 1
    assert refused > 15


def test_a_damaged_block_ends_the_audit_without_a_verdict(tmp_path: Path) -> None:
    options: dict[str, Any] = {"attacks": "median_clipped", "trials": 200, "store": tmp_path / "s", "seed": 0}
    audit(Gaussian(1.0), "gaussian(mu=1)", PAIRS[0], **options)
    with closing(sqlite3.connect(tmp_path / "s")) as connection, connection:
        (last,) = connection.execute("SELECT max(number) FROM blocks").fetchone()
        (body,) = connection.execute("SELECT outputs FROM blocks WHERE number = ?", (last,)).fetchone()
        connection.execute("UPDATE blocks SET outputs = ? WHERE number = ?", (body[:-200] + b"!" + body[-199:], last))
    before = (tmp_path / "s").read_bytes()
    result = audit(Gaussian(1.0), "gaussian(mu=1)", PAIRS[0], **options)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("damaged" in warning for warning in result.warnings)
    assert (tmp_path / "s").read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE blocks SET pair = 1 - pair",
        "UPDATE blocks SET stop = stop + 1 WHERE number = 1",
        "DELETE FROM blocks WHERE number = 0",
        "UPDATE blocks SET outputs = (SELECT outputs FROM blocks AS other WHERE other.number = 1 - blocks.number) "
        "WHERE number < 2",
        "UPDATE about SET value = '[[[[' WHERE name = 'identity'",
        "CREATE TRIGGER t AFTER INSERT ON blocks BEGIN DELETE FROM about; END",
    ],
)
def test_a_changed_table_is_refused(change: str, tmp_path: Path) -> None:
    with Store(tmp_path / "s", {"part": "a"}) as store:
        store.put(0, 0, *block(2))
        store.put(1, 0, *block(3))
        store.put(0, 2, *block(2))
    with closing(sqlite3.connect(tmp_path / "s")) as connection, connection:
        connection.execute(change)
    before = (tmp_path / "s").read_bytes()
    with pytest.raises(StoreError, match="is damaged"), Store(tmp_path / "s", {"part": "a"}) as again:
        assert [again.get(pair, start, start + 2) for pair, start in ((0, 0), (1, 0), (0, 2))]
    assert (tmp_path / "s").read_bytes() == before


@pytest.mark.parametrize("body", [[[], []], ["text", "text"], [1, 2], "text", [{"a": 1}] * 2, [np.array(1.0)] * 2])
def test_a_body_of_another_shape_is_refused_although_its_digests_match(body: object, tmp_path: Path) -> None:
    """An audit that reads empty blocks would never end."""
    with Store(tmp_path / "s", {"part": "a"}) as store:
        store.put(0, 0, *block(2))
    content = frame(body)[HEADER.size :]
    digest = digest_of(0, 0, 0, 2, content, b"[{}, {}]")
    with closing(sqlite3.connect(tmp_path / "s")) as connection, connection:
        connection.execute("UPDATE blocks SET outputs = ?, effects = ?, digest = ?", (content, b"[{}, {}]", digest))
    with Store(tmp_path / "s", {"part": "a"}) as again, pytest.raises(StoreError, match="is damaged"):
        again.get(0, 0, 2)


def steady(dataset: Any, rng: Any) -> float:
    return float(dataset[0] + rng.normal(0, 1.5))


def loud(dataset: Any, rng: Any) -> float:
    return float(dataset[0] + rng.normal(0, 2.5))


def told(result: AuditResult) -> list[str]:
    return [str(warning) for warning in result.warnings if "resume=anyway" in str(warning)]


def test_anyway_continues_with_the_runs_of_the_store_and_lists_what_differs(tmp_path: Path) -> None:
    stored(steady, tmp_path / "s")
    refused(loud, tmp_path / "s", "mechanism", "content of the mechanism")
    mixed = stored(loud, tmp_path / "s", trials=90, resume="anyway")
    assert mixed.trials_used == 90
    assert any(str(warning).startswith("60 of the 90 runs per dataset come from a store") for warning in mixed.warnings)
    (words,) = told(mixed)
    assert "since trial 60, these parts differ: mechanism (steady before, loud now), content of the mech" in words
    assert "the guarantee does not cover the mixture" in words


def test_each_later_audit_of_a_mixed_store_repeats_the_differences(tmp_path: Path) -> None:
    stored(steady, tmp_path / "s")
    mixed = stored(loud, tmp_path / "s", trials=90, resume="anyway")
    again = stored(loud, tmp_path / "s", trials=120)  # the store now belongs to this mechanism
    assert told(again) == told(mixed)
    refused(steady, tmp_path / "s", "mechanism")
    both = stored(steady, tmp_path / "s", trials=150, resume="anyway")
    assert len(told(both)) == 2


def test_the_same_audit_has_no_warning_with_anyway(tmp_path: Path) -> None:
    stored(steady, tmp_path / "s")
    assert told(stored(steady, tmp_path / "s", trials=90, resume="anyway")) == []


def test_a_store_that_was_continued_with_another_seed_has_that_seed(tmp_path: Path) -> None:
    stored(steady, tmp_path / "s")
    stored(steady, tmp_path / "s", seed=5, resume="anyway")
    again = stored(steady, tmp_path / "s", seed=None)
    assert again.provenance.seed == 5
    assert "seed (0 before, 5 now)" in told(again)[0]


def test_outputs_with_and_without_times_are_never_mixed(tmp_path: Path) -> None:
    stored(steady, tmp_path / "s")
    with pytest.raises(ValueError, match=r"resume=anyway cannot continue the store.*observe_time"):
        stored(steady, tmp_path / "s", observe_time=True, resume="anyway")
    assert told(stored(steady, tmp_path / "s")) == []


def test_the_command_line_continues_only_with_the_value_anyway(command: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    assert command("run", "c.yaml", "-o", "out", "--resume", "--no-pdf").exit_code == 0
    (tmp_path / "c.yaml").write_text(CONFIG.replace("1.0", "1.1"))
    assert command("run", "c.yaml", "-o", "out", "--resume", "--no-pdf").exit_code == 3
    done = command("run", "c.yaml", "-o", "out", "--resume=anyway", "--no-pdf")
    assert done.exit_code == 0
    assert "these parts differ: content of the mechanism" in done.stderr
    saved = json.loads((tmp_path / "out" / "noise.json").read_text())
    assert any("these parts differ: content of the mechanism" in one["text"] for one in saved["warnings"])
    report = command("report", "out/noise.json")
    assert "these parts differ: content of the mechanism" in " ".join(report.stdout.split())


@pytest.mark.parametrize("word", ["--resume=foo", "--resume=", "--resume=Anyway", "--resume=same"])
@pytest.mark.parametrize("name", ["run", "compare"])
def test_another_value_of_resume_is_wrong_usage(
    command: Callable[..., Result], tmp_path: Path, name: str, word: str
) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    done = command(name, "c.yaml", word, "-o", "out")
    assert done.exit_code == 2
    assert "--resume=anyway, which" in " ".join(done.stderr.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


def test_resume_never_takes_the_next_word_as_its_value(command: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "anyway").mkdir()
    (tmp_path / "anyway" / "c.yaml").write_text(CONFIG)
    assert command("run", "--resume", "anyway", "-o", "out", "--no-pdf").exit_code == 0
    assert (tmp_path / "out" / "noise.trials").exists()


# --- each block is on the disk before the audit continues, so that a power cut loses at most one block


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
    (tmp_path / "c.yaml").write_text(CONFIG.replace("trials: 60", "trials: 10000"))
    out = tmp_path / "out"
    before = tmp_path / "out.before"
    before.mkdir()
    (before / "noise.json").write_text("an older result")
    run = [sys.executable, "-m", "dpaudit", "run", str(tmp_path / "c.yaml"), "-o", str(out), "-q", "--resume"]
    done = mounted("size=300k", out, *run)
    assert done.returncode == 3, done.stderr
    assert "the result of noise could not be written" in done.stderr
    assert "No space left on device; the JSON is in " in done.stderr
    assert "inconclusive" in done.stdout
    left = tmp_path / "out.left"
    assert {file.name for file in left.iterdir()} <= {"noise.json", "noise.trials", "noise.trials-wal"}
    assert (left / "noise.json").read_text() == "an older result"
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
