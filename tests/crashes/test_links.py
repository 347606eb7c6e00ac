"""An untrusted checkout may hold symbolic links, and dpaudit replaces no file of others behind them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dpaudit.result.atomic_write import write_placed
from dpaudit.result.model import AuditResult

from .command_line import Command


@pytest.mark.parametrize("name", ["noise.json", "noise.pdf", "noise.trials"])
def test_no_result_is_written_through_a_link(name: str, folder: Path, command: Command) -> None:
    mine = folder / "mine"
    mine.write_text("precious")
    (folder / "dpaudit-results").mkdir()
    (folder / "dpaudit-results" / name).symlink_to(mine)
    done = command("run", "c.yaml", "--resume")
    assert done.exit_code in (2, 3)
    assert f"{name} is a symbolic link to {mine}" in done.stderr
    assert mine.read_text() == "precious"
    assert (folder / "dpaudit-results" / name).is_symlink()


@pytest.mark.parametrize("output", ["dpaudit-results/today", "absolute"])
def test_results_may_be_kept_behind_a_link(output: str, folder: Path, command: Command) -> None:
    """The results of clusters lie on a large disk, and a link in the project leads there."""
    scratch = folder / "scratch"
    (folder / "dpaudit-results").symlink_to(scratch)
    given = str(folder / "dpaudit-results") if output == "absolute" else output
    for _ in range(2):  # the folder is missing, and then it holds a result
        assert command("run", "c.yaml", "-o", given, "--no-pdf").exit_code == 0
    assert [file.name for file in scratch.rglob("*.json")] == ["noise.json"]


@pytest.mark.parametrize("output", ["dpaudit-results", "dpaudit-results/today"])
def test_a_link_to_a_folder_of_other_files_is_refused(output: str, folder: Path, command: Command) -> None:
    """The checkout decides where its links lead, and it names the audits.  The file is not a result of dpaudit."""
    mine = folder / "mine" / output.partition("/")[2]
    mine.mkdir(parents=True)
    (mine / "noise.json").write_text("precious")
    (folder / "dpaudit-results").symlink_to(folder / "mine")
    done = command("run", "c.yaml", "-o", output)
    assert done.exit_code == 2
    assert f"leads through a symbolic link to {folder / 'mine'}, and the folder {mine} holds" in done.stderr
    assert [(file.name, file.read_text()) for file in mine.iterdir()] == [("noise.json", "precious")]
    (mine / "noise.json").rename(mine / "other.json")
    assert command("run", "c.yaml", "-o", str(mine), "--no-pdf").exit_code == 0


@pytest.mark.parametrize("name", ["noise.json", "noise.pdf"])
@pytest.mark.parametrize("link", ["file", "folder", "inside"])
def test_a_link_that_appears_after_the_checks_is_not_followed(
    name: str, link: str, folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link is made while the content is computed, or the new file is written under a name that dpaudit made up."""
    out, mine = folder / "dpaudit-results", folder / "mine"
    mine.mkdir()
    (mine / name).write_text("precious")

    def planting(make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*given: Any, **named: Any) -> Any:
            if link == "folder":
                out.rename(folder / "moved")
                out.symlink_to(mine)
            elif link == "inside":
                for own in out.glob(".dpaudit-*"):
                    own.rename(folder / "moved")
                    own.mkdir()
                    (own / name).symlink_to(mine / name)
            else:
                (out / name).unlink(missing_ok=True)
                (out / name).symlink_to(mine / name)
            return make(*given, **named)

        return made

    if name == "noise.json":
        monkeypatch.setattr(AuditResult, "to_dict", planting(AuditResult.to_dict))
    else:
        monkeypatch.setattr("dpaudit_reports.to_pdf", planting(lambda *given, **named: b"%PDF"))
    done = command("run", "c.yaml", *(["--no-pdf"] if name == "noise.json" else []))
    assert (mine / name).read_text() == "precious"
    assert {file.name for file in mine.iterdir()} == {name}
    assert ("could not be" in done.stderr) == (link != "inside")


def test_a_result_keeps_the_mode_of_the_file_that_it_replaces(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_placed(tmp_path / "r.json", "one")
    finally:
        os.umask(before)
    assert (tmp_path / "r.json").stat().st_mode & 0o777 == 0o640
    (tmp_path / "r.json").chmod(0o604)
    write_placed(tmp_path / "r.json", b"two")
    assert (tmp_path / "r.json").stat().st_mode & 0o777 == 0o604
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]


def test_a_link_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    write_placed(tmp_path / "r.json", "one")
    assert (tmp_path / "r.json").read_text() == "one"
    (tmp_path / "link").symlink_to(tmp_path / "r.json")
    with pytest.raises(OSError, match="is a symbolic link to"):
        write_placed(tmp_path / "link", "two")
    assert (tmp_path / "r.json").read_text() == "one"


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Make a block that waits forever fail.  SIGALRM is not used here, because dpaudit's own timeouts use it."""

    def late(*_: object) -> None:
        pytest.fail(f"still waiting after {seconds} s")

    before = signal.signal(signal.SIGUSR1, late)
    timer = threading.Timer(seconds, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("name", ["noise.json", "noise.pdf", "noise.trials"])
def test_a_pipe_in_the_place_of_a_result_does_not_block(name: str, folder: Path, command: Command) -> None:
    """Opening a pipe for writing waits for a reader; the test would be interrupted."""
    (folder / "dpaudit-results").mkdir()
    os.mkfifo(folder / "dpaudit-results" / name)
    with interrupted_after(100):
        done = command("run", "c.yaml", "--resume")
    assert done.exit_code in (2, 3)
    assert name in done.stderr
    assert "is a pipe" in done.stderr or "is not a regular file" in done.stderr
