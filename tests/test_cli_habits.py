"""Habits of other command lines, such as completion and `help COMMAND`, and the page with all options."""

from __future__ import annotations

import io
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from dpaudit.cli.app import COMMANDS, app
from dpaudit.cli.start import CASES
from dpaudit.cli.terminal import complain
from dpaudit.config import read_configs
from dpaudit_reports import FORMATS
from dpaudit_reports.formats import Audited, facts

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


def test_verbose_shows_evidence_and_bounds_of_each_audit(tmp_path: Path, command: Command) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    bounds = "60 runs per dataset in"
    assert bounds not in command("run", "c.yaml", "--no-pdf").stderr
    done = command("run", "c.yaml", "--no-pdf", "-v")
    assert bounds in done.stderr
    assert "mu >= 0, epsilon >= 0 at delta = 0 proven" in done.stderr
    assert bounds not in done.stdout


@pytest.mark.parametrize(("written", "trials"), [("4e1", 40), ("2**5", 32), ("9007199254740993", 0)])
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


@pytest.mark.parametrize("case", CASES)
def test_the_starting_config_of_each_case_is_complete(
    case: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each mechanism runs once on each dataset.  Its claim is true, so no audit is needed."""
    monkeypatch.chdir(tmp_path)
    wrote = command("init", "new.yaml", "--for", case)
    assert wrote.exit_code == 0
    assert wrote.stderr.endswith("; run it with: dpaudit run new.yaml\n")
    (planned,) = read_configs([tmp_path / "new.yaml"])
    assert {path.name for path in tmp_path.iterdir()} >= {"new.yaml", *CASES[case].files}
    assert "{file}" not in (tmp_path / "new.yaml").read_text()
    mechanism, claim = planned.load()
    found: Any = getattr(mechanism, "loaded", mechanism)
    try:
        assert claim.beta(0.1) > 0
        for dataset in (dataset for pair in planned.pairs[:2] for dataset in (pair.d0, pair.d1)):
            rng = np.random.default_rng(1)
            outputs = found.sample(dataset, 1, rng) if hasattr(found, "sample") else [found(dataset, rng)]
            assert len(outputs) == 1
    finally:
        getattr(mechanism, "close", lambda: None)()


def test_starting_files_replace_nothing(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_mechanism.py").write_text("mine")
    done = command("init", "--for", "python")
    assert done.exit_code == 2
    assert "my_mechanism.py already exists; choose another file name or another folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["my_mechanism.py"]
    done = command("init", "--for", "pyhton")
    assert done.exit_code == 2
    assert "did you mean python?" in done.stderr


DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "command-line.md").read_text(encoding="utf-8")
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def section(name: str) -> str:
    """Return the part of the page about a command."""
    return PAGE.split(f"\n### dpaudit {name}\n")[1].split("\n### ")[0]


def test_the_page_has_the_texts_of_the_program() -> None:
    """If this fails, run `python docs/options.py`."""
    script = runpy.run_path(str(DOCS / "options.py"))
    assert script["page_with"](script["sections"](), PAGE) == PAGE


def test_the_page_has_all_commands_in_order() -> None:
    assert re.findall(r"^### dpaudit (\w+)$", PAGE, flags=re.M) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_has_the_options_that_help_prints(
    name: str, command: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test reads the printed `--help`, not the texts of the script that writes the page."""
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setenv("TERM", "dumb")
    rows = [line for line in command(name, "--help").output.splitlines() if re.match(r"│ +\*? *-", line)]
    printed = {option for row in rows for option in OPTION.findall(row[:30])}  # before the columns of value and help
    cells = re.findall(r"^\| (`-.*?) \| ", section(name), flags=re.M)
    shown = {option for cell in cells for option in OPTION.findall(cell)}
    assert printed - {"--help", "-h"} == shown
    assert printed, "help prints at least its own option"


def test_the_page_has_the_keys_of_json() -> None:
    (listed,) = re.findall(r"The objects of `json` have these keys: (.*?)\.\n", PAGE, flags=re.S)
    assert re.findall(r"`(\w+)`", listed) == list(facts(Audited(name="")))


def test_the_page_has_the_formats() -> None:
    (table,) = re.findall(r"^\| `--format` \| for .*?\n\n", PAGE, flags=re.M | re.S)
    assert re.findall(r"^\| `(\w+)` \|", table, flags=re.M) == list(FORMATS)


def test_the_page_lists_the_keys_of_the_schema() -> None:
    """If this fails, run `python docs/keys.py`."""
    keys = runpy.run_path(str(DOCS / "keys.py"))
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert keys["page_with"](keys["sections"](), page) == page
    for key in ("failures", "out_of_domain", "python_version", "from_library", "expect"):
        assert f"| `{key}` | " in page


def test_the_example_is_read(tmp_path: Path) -> None:
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "c.yaml").write_text(example)
    assert read_configs([tmp_path / "c.yaml"])[0].config.name == "my-audit"
