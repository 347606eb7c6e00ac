"""The results of one command as text for stdout: a table for people, other formats for programs.

Each format is a function `NAME_text(run, screen) -> str`, and has an entry in `FORMATS`.  Every format escapes control
characters and changes of writing direction in foreign text.  Importing this package loads none of the formats.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpaudit_reports.formats.facts import Run, Screen

FORMATS = ("table", "json", "csv", "github", "sarif", "junit")


def rendered(name: str, run: Run, screen: Screen) -> str:
    """Return the results of a command in one of the formats."""
    module = import_module(f"dpaudit_reports.formats.{'table' if name == 'table' else 'programs'}")
    text: str = getattr(module, f"{name}_text")(run, screen)
    return text
