"""docs/command-line.md lists the commands, options and keys that the program has."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from dpaudit.cli.app import COMMANDS
from dpaudit.config import read_configs
from dpaudit_reports.formats import FORMATS
from dpaudit_reports.formats.facts import Audited, facts

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
