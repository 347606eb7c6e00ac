"""Untrusted files are read with limits: no pipe, device, giant file or endless number blocks the reader."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .command_line import CONFIG, Command


@pytest.fixture(params=["pipe", "device", "large"])
def odd(request: pytest.FixtureRequest, folder: Path) -> Path:
    path = folder / "odd"
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(2**40)  # a sparse file: it needs no space on the disk
    return path


def test_an_odd_result_is_refused_at_once(odd: Path, command: Command) -> None:
    for words in (("report", odd.name), ("replay", odd.name, "--no-code")):
        done = command(*words)
        assert done.exit_code == 2
        assert "is not a regular file" in done.stderr or "the maximum size of a file to read" in done.stderr
        assert done.stderr.count("odd") == 1


def test_an_odd_config_is_refused_at_once(odd: Path, folder: Path, command: Command) -> None:
    odd.rename(folder / "odd.yaml")
    done = command("run", "odd.yaml")
    assert done.exit_code == 2
    assert "odd.yaml" in done.stderr


def test_changes_of_direction_in_a_label_do_not_reach_the_terminal(folder: Path, command: Command) -> None:
    (folder / "c.yaml").write_text(CONFIG.replace("d1: [1]", 'd1: [1], label: "a\\u202eb\\e[8m"'), encoding="utf-8")
    done = command("run", "c.yaml", "--no-pdf")
    assert "\u202e" not in done.output
    assert "\x1b[8m" not in done.output
