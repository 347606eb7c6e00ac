"""If streams and files cannot be written, exit codes do not change and no result is lost."""

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpaudit import AuditResult
from dpaudit.cli import one_audit as running
from dpaudit.cli import terminal

from .command_line import CONFIG, Command, Copy, broken


def dpaudit(*arguments: str | bytes, cwd: Path, **settings: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the command line in another process."""
    chosen: Any = {"capture_output": True} | settings
    done: subprocess.CompletedProcess[bytes] = subprocess.run(
        [sys.executable, "-m", "dpaudit", *arguments], cwd=cwd, timeout=120, check=False, **chosen
    )
    return done


class Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.slow
def test_streams_that_cannot_be_written_do_not_change_the_exit_code_of_a_process(folder: Path) -> None:
    with open("/dev/full", "w") as full:
        done = dpaudit("run", "c.yaml", "--no-pdf", cwd=folder, capture_output=False, stdout=full, stderr=full)
    assert done.returncode == 0
    assert AuditResult.from_json(folder / "dpaudit-results" / "noise.json").name == "noise"


def test_streams_that_cannot_be_written_do_not_change_the_exit_code(folder: Path) -> None:
    copy = Copy(
        folder, ("run", "c.yaml", "--no-pdf"), lambda: [os.dup2(os.open("/dev/full", os.O_WRONLY), n) for n in (1, 2)]
    )
    assert copy.ended()[0] == 0
    assert AuditResult.from_json(folder / "dpaudit-results" / "noise.json").name == "noise"


LOUD = """
import os, subprocess, sys
subprocess.run(["echo", "from a child"])
def release(dataset, rng):
    os.write(1, b"from C\\n")
    sys.__stdout__.write("from Python\\n")
    return dataset[0] + rng.normal()
"""


def test_stdout_holds_results_only(folder: Path) -> None:
    """Compiled code and child processes write to descriptor 1 itself.  The seed is fixed."""
    (folder / "loud.py").write_text(LOUD)
    config = CONFIG.replace("{builtin: gaussian, params: {sigma: 1.0}}", '{python: "loud.py:release"}')
    (folder / "c.yaml").write_text(config)
    code, shown, said = Copy(folder, ("run", "c.yaml", "--no-pdf", "--format", "json")).ended()
    assert (json.loads(shown)[0]["name"], code) == ("noise", 0)
    assert {"from a child", "from C", "from Python"} <= set(said.splitlines())


@pytest.mark.slow  # as on a full disk
def test_a_closed_pipe_does_not_change_the_exit_code(folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = dpaudit("run", "c.yaml", "--no-pdf", cwd=folder, capture_output=False, stdout=write)
    finally:
        os.close(write)
    assert done.returncode == 0
    assert (folder / "dpaudit-results" / "noise.json").exists()


def test_a_result_is_never_reported_in_an_output_folder_that_was_removed(
    folder: Path, temporary: Path, command: Command
) -> None:
    """The result is in a temporary folder, and the result of an earlier run is not mistaken for it."""
    (folder / "moves.py").write_text(
        "import os\n"
        "def release(d, rng):\n"
        "    os.path.isdir('out') and os.rename('out', 'moved')\n"
        "    return d[0] + rng.normal()\n"
    )
    (folder / "c.yaml").write_text(
        "name: one\nclaim: gaussian(mu=1)\nmechanism: {python: 'moves.py:release'}\ntrials: 100\nseed: 0\n"
        "pairs: [{d0: [0], d1: [1]}]\nattacks: threshold\n"
    )
    (folder / "out").mkdir()
    (folder / "out" / "one.json").write_text("{}")
    said = command("run", "c.yaml", "-o", "out", "--no-pdf").stderr
    assert "the result of one could not be written to out" in said
    assert "still holds" not in said, "the folder is gone"
    assert "results are in out" not in said
    assert len(list(temporary.glob("dpaudit-*/one.json"))) == 1


def test_a_terminal_without_unicode_gets_ascii(folder: Path) -> None:
    name = b"caf\xe9.yaml"  # also a file whose name is not UTF-8
    (folder / os.fsdecode(name)).write_text(CONFIG)
    settings = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = dpaudit("run", name, "-o", b"out\xe9", "--no-pdf", cwd=folder, env=settings)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert b"\\xa0" not in done.stdout
    assert b"o no violation" in done.stdout
    values = json.loads((folder / os.fsdecode(b"out\xe9") / "noise.json").read_text())
    assert os.fsencode(values["environment"]["config"]) == name


def test_messages_never_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (Full(), closed, None, io.TextIOWrapper(io.BytesIO(), encoding="ascii")):
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        terminal.say("○ ≥ \udce9 \x1b[2K")
        terminal.show("○")
        with terminal.waiting("loading", shown=True):
            pass
        terminal.finish()


def test_control_characters_are_spelt_out(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.say("a\x1b[2K\rb")
    assert capsys.readouterr().err == "a\\x1b[2K\\rb\n"


def test_a_log_on_a_full_disk_ends_no_audit(folder: Path, command: Command) -> None:
    done = command("run", "c.yaml", "--no-pdf", "--log-json", "/dev/full")
    assert done.exit_code == 0
    assert done.stderr.count("no more events are written") == 1
    assert (folder / "dpaudit-results" / "noise.json").exists()


@pytest.mark.parametrize("kind", ["folder", "loop", "read-only"])
def test_an_unwritable_output_folder_is_reported_before_the_first_run(
    kind: str, folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "audit", broken)
    out = folder / "out"
    out.mkdir()
    if kind == "folder":
        (out / "noise.json").mkdir()
    elif kind == "loop":
        (out / "noise.json").symlink_to("noise.json")
    else:
        monkeypatch.setattr(
            "tempfile.NamedTemporaryFile", lambda **_: (_ for _ in ()).throw(OSError(errno.EROFS, "Read-only"))
        )
    done = command("run", "c.yaml", "--no-pdf", "-o", "out")
    assert done.exit_code == 2
    assert {"folder": "is a folder", "loop": "is a symbolic link to noise.json; remove it", "read-only": "Read-only"}[
        kind
    ] in done.stderr


def test_a_result_that_cannot_be_written_stops_no_other_and_exits_with_3(
    folder: Path, temporary: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = AuditResult.to_dict

    def to_dict(self: AuditResult) -> dict[str, Any]:
        if self.name == "two":
            raise RuntimeError("a link to itself")
        return values(self)

    monkeypatch.setattr(AuditResult, "to_dict", to_dict)
    done = command("run", "many.yaml", "--no-pdf")
    assert done.exit_code == 3
    assert "the result of two could not be written to dpaudit-results: RuntimeError: a link to itself" in done.stderr
    assert {file.stem for file in (folder / "dpaudit-results").glob("*.json")} == {"one", "three"}
    assert "two" in done.stdout  # the table shows the file
    assert not list(temporary.iterdir())


def test_a_pdf_that_cannot_be_made_leaves_the_json(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpaudit_reports.to_pdf", broken)
    done = command("run", "c.yaml")
    assert done.exit_code == 0
    assert "the PDF of noise could not be written" in done.stderr
    assert (folder / "dpaudit-results" / "noise.json").exists()
