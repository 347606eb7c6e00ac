"""The results of one command as text for stdout: a table for people, other formats for programs.

Each format is a module with a function `text(run, screen) -> str`, and has an entry in `FORMATS`.  Every format escapes
control characters and changes of writing direction in foreign text.  Importing this package loads none of the formats.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpaudit_reports.formats.run import Run, Screen

FORMATS = {
    "table": "dpaudit_reports.formats.table",
    "json": "dpaudit_reports.formats.json_array",
    "csv": "dpaudit_reports.formats.csv_rows",
    "github": "dpaudit_reports.formats.github",
    "sarif": "dpaudit_reports.formats.sarif",
    "junit": "dpaudit_reports.formats.junit",
}
"""The module of each format."""


def rendered(name: str, run: Run, screen: Screen) -> str:
    """Return the results of a command in one of the formats."""
    text: str = import_module(FORMATS[name]).text(run, screen)
    return text
