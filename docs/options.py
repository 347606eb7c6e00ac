"""Write the commands and their options into docs/command-line.md: python docs/options.py

The script takes the texts of `dpaudit COMMAND --help`.  `tests/test_cli_habits.py` compares the page with these
texts.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from dpaudit.cli.app import app

PAGE = Path(__file__).parent / "command-line.md"
BEGIN, END = "<!-- options: begin -->", "<!-- options: end -->"


def sections() -> str:
    """Return a section for each command: its help, and a table of its arguments and options."""
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    of_run = {_row(parameter) for parameter in commands["run"].params if parameter.param_type_name == "option"}
    return "\n".join(
        line
        for name, command in commands.items()
        for line in _section(name, command, set() if name == "run" else of_run)
    )


def page_with(found: str, page: str) -> str:
    """Return the page with the given sections between its two marks.

    Args:
        found: The sections that `sections` returns.
        page: The text of the page.

    Raises:
        ValueError: If the page lacks a mark.
    """
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"{PAGE.name} must contain {BEGIN!r} and {END!r} once each")
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{found}\n{END}{rest.partition(END)[2]}"


def _section(name: str, command: Any, known: set[str]) -> Iterator[str]:
    """Yield the lines about a command; options whose row is known share one row."""
    yield f"### dpaudit {name}"
    yield ""
    for paragraph in command.help.split("\n\n"):
        yield from textwrap.wrap(_escaped(paragraph), width=120, break_long_words=False, break_on_hyphens=False)
        yield ""
    shown = [parameter for parameter in command.params if not parameter.hidden]
    if shown:
        yield from ("| argument or option | meaning |", "|---|---|")
        yield from (_row(parameter) for parameter in shown if _row(parameter) not in known)
        if same := [
            re.sub(r"(`) `[^`]*`$", r"\1", _name(parameter)) for parameter in shown if _row(parameter) in known
        ]:
            yield f"| {', '.join(same)} | as for `dpaudit run` |"
        yield ""


def _row(parameter: Any) -> str:
    return f"| {_name(parameter)} | {_meaning(parameter)} |"


def _name(parameter: Any) -> str:
    """Return the spelling of the argument or option, and the name of its value if there is a value."""
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    names = ", ".join(f"`{option}`" for option in parameter.opts)
    if parameter.is_flag:
        return names
    value = parameter.metavar or "NUMBER"  # all options without a metavar take a number
    return f"{names} `{value}`".replace("|", "\\|")


def _meaning(parameter: Any) -> str:
    notes = ["required"] if parameter.required and parameter.param_type_name == "option" else []
    if not parameter.required and not getattr(parameter, "is_flag", False) and parameter.default not in (None, ()):
        notes.append(f"default: `{parameter.default}`")
    words = re.sub(r" +", " ", _escaped(parameter.help or ""))
    return f"{words} ({'; '.join(notes)})" if notes else words


def _escaped(words: str) -> str:
    """Return the words of a help text as Markdown that shows them unchanged."""
    return re.sub(r"([*_|<])", r"\\\1", words)


if __name__ == "__main__":
    PAGE.write_text(page_with(sections(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
