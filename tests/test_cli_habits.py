"""Habits of other command lines: completion, `help COMMAND`, -V, -v, groups of options, and a red `error:`."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from dpaudit.cli.app import app
from dpaudit.cli.terminal import complain

from .test_config_mistakes import CONFIG

Command = Callable[..., Result]


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("dpaudit ru", {"run"}),
        ("dpaudit list c", {"claims", "configs"}),
        ("dpaudit run --tri", {"--trials"}),
        ("dpaudit run --format s", {"sarif"}),
        ("dpaudit run --backend ", {"loky", "dask", "ray"}),
        ("dpaudit scores s.csv --independence r", {"runs"}),
        ("dpaudit scores s.csv --included-at-random f", {"fixed_number"}),
    ],
)
def test_commands_options_and_values_are_completed(words: str, completed: set[str]) -> None:
    """The environment is the one with which bash asks for completions."""
    asked = {"_DPAUDIT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = CliRunner().invoke(app, [], env=asked, prog_name="dpaudit")
    assert set(done.stdout.split()) == completed


def test_help_command_shows_the_help_of_a_command(command: Command) -> None:
    assert command("help", "run").stdout == command("run", "--help").stdout
    assert command("help").stdout == command("--help").stdout


def test_short_option_for_the_version(command: Command) -> None:
    assert command("-V").stdout == command("--version").stdout != ""


@pytest.mark.parametrize("name", ["run", "compare", "bisect", "replay"])
def test_options_are_grouped_and_flags_have_no_type(name: str, command: Command) -> None:
    shown = command(name, "--help").stdout
    places = [shown.index(f"─ {title} ─") for title in ("Arguments", "What is run", "What is shown")]
    assert places == sorted(places)
    assert "─ Machines and files ─" in shown
    assert "bool" not in shown
    assert "bool" not in command("--help").stdout


def test_verbose_shows_evidence_and_bounds_of_each_audit(tmp_path: Path, command: Command) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    bounds = "60 runs per dataset in"
    assert bounds not in command("run", "c.yaml", "--no-pdf").stderr
    done = command("run", "c.yaml", "--no-pdf", "-v")
    assert bounds in done.stderr
    assert "certified: mu >= 0" in done.stderr
    assert bounds not in done.stdout


@pytest.mark.parametrize(
    ("written", "trials"), [("4e1", 40), ("2**5", 32), ("100/2", 50), ("30", 30), ("9007199254740993", 0)]
)
def test_numbers_on_the_command_line_may_be_expressions(
    written: str, trials: int, tmp_path: Path, command: Command
) -> None:
    """The last number is above the maximum, and no float equals it."""
    (tmp_path / "c.yaml").write_text(CONFIG)
    done = command("run", "c.yaml", "--no-pdf", "--trials", written, "--confidence", "9/10")
    if trials:
        assert f"{trials} runs" in done.stderr
    else:
        assert done.exit_code != 0
        assert "9007199254740993" in done.stderr


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_word_error_is_red_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def written(stream: io.StringIO) -> str:
        monkeypatch.setattr("sys.stderr", stream)
        complain("no\x1b[32m such\nfile")
        return stream.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    plain = "error: no\\x1b[32m such\n  file\n"
    assert written(_Terminal()) == plain.replace("error:", "\x1b[1;31merror:\x1b[0m")
    assert written(io.StringIO()) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert written(_Terminal()) == plain
