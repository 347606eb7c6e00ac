"""Reads and checks values of options: numbers, choices, and names of files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dpaudit.cli.ending import refuse
from dpaudit.result import RESULTS
from dpaudit.settings.limits import percent_meant
from dpaudit.text.numbers import comma_meant, read_number
from dpaudit.text.spelling import hint, nearest

if TYPE_CHECKING:
    from dpaudit.values import Foreign

NUMBER = "NUMBER"
"""Name of the value of options that take a number, in the help."""


def whole(least: int | None = None) -> Callable[[str | int], int]:
    """Return a parser of whole numbers such as 1000, 1e5 and 10**4, for `typer.Option`."""

    def parse(given: str | int) -> int:
        found = read_number(given) if isinstance(given, str) else float(given)
        if found is None or not found.is_integer():
            raise typer.BadParameter(
                f"must be a whole number such as 1000 or 1e5, got {given!r}{comma_meant(given, '')}"
            )
        if least is not None and found < least:
            raise typer.BadParameter(f"must be at least {least}, got {given}")
        return int(given) if str(given).removeprefix("-").isdecimal() else int(found)  # a float has 53 bits

    return parse


def number(given: str | float) -> float:
    """Parse a number such as 0.5, 1e-5, 1/3 or log(3), for `typer.Option`."""
    if not isinstance(given, str):
        return given
    found = read_number(given)
    if found is None:
        percent = re.fullmatch(r"\s*([0-9]{1,2}(?:\.[0-9]{1,9})?)\s*%\s*", given)
        meant = percent_meant(percent[1]) if percent else comma_meant(given, ".")
        raise typer.BadParameter(f"must be a number such as 0.5, 1e-5 or 1/3, got {given!r}{meant}")
    return found


def whole_option(help: str, *, least: int | None = None, panel: str | None = None) -> Foreign:
    """Return an option that takes a whole number."""
    return typer.Option(parser=whole(least), metavar=NUMBER, rich_help_panel=panel, help=help)


def number_option(help: str, *, panel: str | None = None) -> Foreign:
    """Return an option that takes a number."""
    return typer.Option(parser=number, metavar=NUMBER, rich_help_panel=panel, help=help)


def check_choice(name: str, given: str, allowed: Collection[str], otherwise: str = "see --help") -> None:
    """Refuse a value that is not one of the allowed words."""
    if given not in allowed:
        refuse(f"{name} must be one of {', '.join(allowed)}; got {given!r}; {hint(given, allowed, otherwise)}")


def completing(words: Collection[str]) -> Callable[[str], list[str]]:
    """Return the completion of an option that takes one of the words."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def check_writable(option: str, file: Path) -> None:
    """Refuse a file to write whose folder does not exist."""
    if not os.path.isdir(file.parent):  # unlike Path.is_dir, this call accepts a name that is too long
        refuse(f"{option} {file}: the folder {file.parent} does not exist; create it first".lstrip())


def file_meant(file: Path, endings: Sequence[str]) -> str:
    """Return a question after "; " if the folder of a missing file holds a file with a similar name; otherwise ""."""
    try:
        if file.exists():
            return ""
        if (saved := Path(RESULTS) / file).is_file():
            return f"; did you mean {saved}?"
        meant = nearest(file.name, sorted(one.name for one in file.parent.iterdir() if one.suffix in endings), 0.75)
    except OSError:
        return ""
    return f"; did you mean {file.with_name(meant)}?" if meant else ""
