"""An error of dpaudit itself never looks like a verdict."""

import contextlib
import functools
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaudit import AuditResult
from dpaudit.cli import app as cli
from dpaudit.cli import one_audit as running
from dpaudit.cli import prepare_run, terminal
from dpaudit.cli import runner as runner
from dpaudit.cli.options import RunOptions
from dpaudit.cli.terminal import INCONCLUSIVE, INTERNAL_ERROR, report_internal_error
from dpaudit.config.files import read_configs
from dpaudit.result.values import Verdict

from .command_line import CONFIG, Command, Copy, broken


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("dpaudit.config.files.read_configs", ("run", "c.yaml")),
        ("dpaudit.cli.runner.Runner.run", ("run", "c.yaml")),
        ("dpaudit.engine.plan.plan", ("plan", "pure(epsilon=1)", "pure(epsilon=2)")),
        ("dpaudit.claims.parse_claim", ("convert", "pure(epsilon=1)")),
        ("dpaudit.learning.attack.attack_classes", ("list", "attacks")),
    ],
)
def test_an_internal_error_exits_with_4_and_names_a_file_to_attach(
    name: str,
    arguments: tuple[str, ...],
    folder: Path,
    temporary: Path,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(name, broken)
    done = command(*arguments)
    assert done.exit_code == 4
    assert "internal error, please report, and attach" in done.stderr
    assert "Traceback" not in done.stderr
    (file,) = temporary.glob("dpaudit-error-*.txt")
    assert str(file) in done.stderr
    reported = file.read_text()
    assert "ZeroDivisionError: a mistake of dpaudit" in reported
    assert "Traceback" in reported
    assert "numpy " in reported


def test_an_internal_error_of_one_audit_does_not_stop_the_others(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest: Callable[..., AuditResult] = vars(running)["audit"]

    def audit(*values: Any, **named: Any) -> AuditResult:
        return broken() if named["name"] == "two" else honest(*values, **named)

    monkeypatch.setattr(running, "audit", audit)
    done = command("run", "many.yaml", "--no-pdf")
    assert done.exit_code == 4
    assert {file.stem for file in (folder / "dpaudit-results").glob("*.json")} == {"one", "three"}
    assert len(list((folder / "dpaudit-results").glob("dpaudit-error-*.txt"))) == 1
    assert "audit two could not be run: internal error, please report" in done.stderr


def test_the_file_of_an_internal_error_holds_no_password(folder: Path) -> None:
    try:
        raise ValueError("cannot reach https://me:hunter2@host with\nAPI_KEY=hunter2")
    except ValueError as error:
        report_internal_error(error, folder)
    (file,) = folder.glob("dpaudit-error-*.txt")
    assert "hunter2" not in file.read_text()
    assert "ValueError: cannot reach https://***@host with" in file.read_text()


def test_reporting_an_internal_error_never_raises(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Rude(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert "internal error" in report_internal_error(Rude(), folder)
    monkeypatch.setattr("tempfile.NamedTemporaryFile", lambda **_: (_ for _ in ()).throw(OSError("full")))
    assert report_internal_error(Rude(), folder) == "internal error, please report: Rude"
    monkeypatch.setattr("importlib.metadata.distributions", lambda: os.stat("missing"))
    assert report_internal_error(Rude(), folder) == "internal error, please report: Rude"


@pytest.mark.parametrize(
    "line",
    [
        "kept.append(open('/dev/null'))",
        "len(kept) == 25 and resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8)); kept.append(open('/dev/null'))",
    ],
)
def test_a_mechanism_that_uses_up_all_file_handles_leaves_a_result_and_never_the_code_of_a_violation(
    line: str, folder: Path
) -> None:
    """Exit code 1, which Python gives after an exception, means a violation."""
    (folder / "mine.py").write_text(
        f"import resource\nkept = []\ndef f(d, rng):\n  {line}\n  return d[0] + rng.normal()\n"
    )
    config = CONFIG.replace("{builtin: gaussian, params: {sigma: 1.0}}", "{python: 'mine.py:f'}").replace("60", "150")
    (folder / "c.yaml").write_text(config)
    limited = functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (48, 48))
    code, shown, said = Copy(folder, ("run", "c.yaml", "--format", "json"), limited).ended()
    assert code == INCONCLUSIVE, said
    assert not shown or json.loads(shown)[0]["reason"]
    assert "Too many open files" in said
    assert "internal error" not in said
    assert AuditResult.from_json(folder / "dpaudit-results" / "noise.json").verdict is Verdict.INCONCLUSIVE


def test_an_exception_that_nothing_handles_exits_with_4(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python itself exits with 1, the code of a violation."""
    monkeypatch.setitem(sys.modules, "dpaudit.cli.app", None)
    code, _, said = Copy(folder, ("run", "c.yaml")).ended()
    assert code == INTERNAL_ERROR
    assert "Traceback" in said


def test_an_exit_code_of_1_that_no_command_chose_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """typer exits with 1 if it cannot write its own output."""

    def closed() -> None:
        sys.exit(1)

    monkeypatch.setattr(cli, "app", closed)
    monkeypatch.setattr(cli, "prepare", lambda: None)
    terminal.chosen_codes[:] = []
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == INCONCLUSIVE
    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == INTERNAL_ERROR


# --- ctrl-C keeps the finished audits and leaves no process, and progress is shown from the start


@pytest.mark.parametrize("when", ["between audits", "while a result is written"])
def test_ctrl_c_shows_and_keeps_finished_audits(
    when: str, folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "make" if when == "between audits" else "write_result"
    honest = getattr(runner, name)

    def interrupted(*values: Any, **named: Any) -> Any:
        kept = honest(*values, **named)
        if interrupted.calls:  # type: ignore[attr-defined]
            signal.raise_signal(signal.SIGINT)
        interrupted.calls += 1  # type: ignore[attr-defined]
        return kept

    interrupted.calls = 0  # type: ignore[attr-defined]
    monkeypatch.setattr(runner, name, interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # is ignored where tests run in the background
    try:
        done = command("run", "many.yaml", "--no-pdf")
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.exit_code == 3
    assert "interrupted; the later audits were not run" in done.stderr
    assert "one" in done.stdout
    assert "claims shown refuted" in done.stdout
    assert (folder / "dpaudit-results" / "one.json").exists()
    assert not (folder / "dpaudit-results" / "three.json").exists()


_FIRST = """\
import io, os, sys, time
class Watch(io.StringIO):
    seen = False
    def isatty(self): return {terminal}
    def write(self, text):
        if text.strip() and not Watch.seen:
            Watch.seen = True
            heavy = [name for name in ("numpy", "scipy", "sklearn", "yaml") if name in sys.modules]
            print(repr((text, time.process_time(), heavy)), file=sys.__stdout__, flush=True)
            os._exit(0)  # the later output is not checked
        return len(text)
sys.stderr = Watch()
sys.argv = ["dpaudit", *{arguments!r}]
from dpaudit.cli.app import main
main()
"""


@pytest.mark.parametrize("terminal_", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["terminal", "pipe"])
def test_something_is_shown_before_anything_heavy_is_loaded(terminal_: bool, folder: Path) -> None:
    """The promise is 0.3 s of processor time, and 0.2 s are used; the test allows slower machines."""
    code = _FIRST.format(terminal=terminal_, arguments=["run", "c.yaml", "--no-pdf"])
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    text, seconds, heavy = eval(done.stdout.splitlines()[0])  # the output of the child process
    assert "loading" in text
    assert heavy == []
    assert seconds < 1.0


def test_a_slow_import_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The module waits until the message has been printed, so nothing depends on a clock."""
    monkeypatch.setattr(prepare_run, "_PATIENCE", 0.01)
    (tmp_path / "mine.py").write_text(
        "import threading\n"
        "for thread in threading.enumerate():\n"
        "    if isinstance(thread, threading.Timer):\n"
        "        thread.join()\n"
        "def release(dataset, rng):\n"
        "    return 0.0\n"
    )
    (tmp_path / "c.yaml").write_text(
        "name: slow\nclaim: pure(epsilon=1)\nmechanism: {python: mine.py:release}\npairs: [{d0: [0], d1: [1]}]\n"
    )
    (planned,) = read_configs([tmp_path / "c.yaml"])
    prepare_run.load(planned, RunOptions(output=tmp_path))
    said = capsys.readouterr().err
    where = f"mine.py:release (from {tmp_path}), in this process, which may run its params and datasets as code"
    assert f"audit slow: still loading {where}, after 0.01 s" in " ".join(said.split())
    assert "`timeout:` in the config limits this time" in " ".join(said.split())


_PATIENCE = 60.0  # seconds; far longer than any of these tests takes on a busy machine
_STUCK = """
import os, sys, time
sys.stdin.readline()
open("started", "w").write(str(os.getpid()))
while True: pass
"""


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"


def awaited(path: Path) -> int:
    """Wait for the number that another process writes to a file, and return it."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        if path.exists() and (text := path.read_text()):
            return int(text)
        time.sleep(0.02)
    raise AssertionError(f"{path} was not written")


def ends(process: int) -> bool:
    end = time.monotonic() + _PATIENCE
    while alive(process):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def children(process: int) -> list[int]:
    """Return all processes that a process started, and those that they started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == process:
                found.append(int(stat.parent.name))
    return [*found, *(child for one in found for child in children(one))]


def started(folder: Path, *options: str) -> Copy:
    return Copy(folder, ("run", "stuck.yaml", "--no-pdf", *options))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.chance
def test_a_stuck_program_ends_with_dpaudit_and_the_measurement_is_written(folder: Path) -> None:
    (folder / "stuck.py").write_text(_STUCK)
    program = f"command: [{sys.executable}, stuck.py]"
    (folder / "stuck.yaml").write_text(CONFIG.replace("builtin: gaussian, params: {sigma: 1.0}", program))
    dpaudit = started(folder)
    program_id = awaited(folder / "started")
    os.kill(dpaudit.process, signal.SIGTERM)
    code, _, said = dpaudit.ended()
    assert ends(program_id)
    assert code == 3, said
    assert "interrupted" in said
    assert "Traceback" not in said
    found = json.loads((folder / "dpaudit-results" / "noise.json").read_text())
    assert found["verdict"] == "inconclusive"
