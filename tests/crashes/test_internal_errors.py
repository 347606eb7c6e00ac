"""An error of dpaudit itself never looks like a verdict."""

from __future__ import annotations

import functools
import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaudit import AuditResult
from dpaudit.cli import app as cli
from dpaudit.cli import one_audit as running
from dpaudit.cli import terminal
from dpaudit.cli.terminal import INCONCLUSIVE, INTERNAL_ERROR, report_internal_error
from dpaudit.result.values import Verdict

from .command_line import CONFIG, Command, Copy, broken


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("dpaudit.config.read_configs", ("run", "c.yaml")),
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


def test_debug_shows_the_traceback_of_an_internal_error(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        broken()
    except ZeroDivisionError as error:
        line = report_internal_error(error, folder, debug=True)
    assert "in broken" in capsys.readouterr().err
    assert str(folder) in line


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
    monkeypatch.setattr(terminal, "prepare", lambda: None)
    terminal.chosen_codes[:] = []
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == INCONCLUSIVE
    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == INTERNAL_ERROR
