"""Untrusted files are read with limits: no pipe, device, giant file or endless number blocks the reader."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from dpaudit.result.files import read

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


INNER = ("witness.scores", "training.edges", "training.out", "training.into")


@pytest.mark.parametrize("entry", [[], {}])
@pytest.mark.parametrize("key", ["warnings", "pairs", "attacks", "history.trials", "curve.beta", *INNER])
def test_very_many_wrong_entries_are_read_up_to_the_first_ones(key: str, entry: object) -> None:
    """pydantic takes 2 kB for each wrong entry; it once took 600 MB for each MB of a file."""
    values = json.loads((Path(__file__).parent.parent / "formats" / "result-1-sequential.json").read_text())
    *above, last = key.split(".")
    values["training"] = {"design": "sequential"}
    place = values[above[0]] if above else values
    place[last] = [entry] * 20_000
    with pytest.raises(ValueError, match=rf"{above[0] if above else key}.*(should be|required|at most)") as caught:
        read(values)
    wrong = caught.value.__context__
    assert isinstance(wrong, ValidationError)
    assert wrong.error_count() <= 4000


def test_long_lists_are_read_completely() -> None:
    values = json.loads((Path(__file__).parent.parent / "formats" / "result-1-sequential.json").read_text())
    values["warnings"] = [str(i) for i in range(1234)]
    values["history"] = {"trials": list(range(1001)), "log_e": [0.5] * 1001}
    found = read(values)
    assert found["warnings"] == tuple(values["warnings"])
    assert found["history"].trials.tolist() == list(range(1001))
