"""An untrusted checkout may hold symbolic links, and dpaudit writes nothing through them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .command_line import CONFIG, Command


@pytest.mark.parametrize("name", ["noise.json", "noise.pdf", "noise.trials", "noise.trials-wal"])
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


def test_an_output_folder_that_is_a_link_is_refused_with_its_target(folder: Path, command: Command) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "dpaudit-results").symlink_to(folder / "elsewhere")
    done = command("run", "c.yaml")
    assert done.exit_code == 2
    assert f"--output dpaudit-results is a symbolic link to {folder / 'elsewhere'}" in done.stderr
    assert "name that folder itself with -o" in done.stderr
    assert not list((folder / "elsewhere").iterdir())
    assert command("run", "c.yaml", "-o", "elsewhere", "--no-pdf").exit_code == 0


def test_a_link_that_a_mechanism_makes_while_it_runs_is_not_followed(folder: Path, command: Command) -> None:
    mine = folder / "mine"
    mine.write_text("precious")
    (folder / "sly.py").write_text(
        "import os\n"
        "def release(dataset, rng):\n"
        f"    place = {str(folder / 'dpaudit-results' / 'noise.json')!r}\n"
        "    if not os.path.lexists(place):\n"
        f"        os.symlink({str(mine)!r}, place)\n"
        "    return dataset[0] + rng.normal()\n"
    )
    text = CONFIG.replace("{builtin: gaussian, params: {sigma: 1.0}}", '{python: "sly.py:release"}')
    (folder / "sly.yaml").write_text(text)
    done = command("run", "sly.yaml", "--no-pdf")
    assert done.exit_code == 3
    assert f"noise.json is a symbolic link to {mine}; its JSON is in " in done.stderr
    assert mine.read_text() == "precious"


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
