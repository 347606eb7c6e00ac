"""Finds the files on which a program of `CommandMechanism` depends: the program, arguments, and imported modules."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from dpaudit.mechanisms.command import CommandMechanism
from dpaudit.mechanisms.modules import imported_files, user_files

PROGRAM = "program"
"""Name of the program's own file."""


def files_of_command(mechanism: CommandMechanism) -> dict[str, Path]:
    """Return the files by name: `PROGRAM`, a word of the command, or a path relative to the working directory.

    A word such as `--params=FILE` names the file after the first equals sign.
    """
    folder = mechanism.cwd or Path()
    files = {name: path for name, path in _named(mechanism, folder) if _is_file(path)}
    known = {path.absolute() for path in files.values()}
    scripts = [path.absolute() for path in files.values() if path.suffix == ".py" or _is_script(path)]
    for word, name in pairwise(mechanism.command):
        if word == "-m":
            scripts += [*user_files(f"{name}.__main__", [folder.absolute()], loaded=False)]
    for path in scripts:
        beside = imported_files(path, [path.parent, folder.absolute()], loaded=False)[0]
        files |= {os.path.relpath(other, folder): other for other in sorted(beside) if other not in known}
    return files


def _named(mechanism: CommandMechanism, folder: Path) -> Iterator[tuple[str, Path]]:
    program, *words = mechanism.command
    yield PROGRAM, folder / program if "/" in program else Path(shutil.which(program) or program)
    for word in words:
        yield word, folder / word
        _, equals, value = word.partition("=")
        if equals and value:
            yield value, folder / value


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_script(path: Path) -> bool:
    """Whether the first line of a file marks it as a Python program."""
    with path.open("rb") as file:
        first = file.readline(200)
    return first.startswith(b"#!") and b"python" in first
