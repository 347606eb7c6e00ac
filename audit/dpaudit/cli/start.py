"""`dpaudit init` writes an example config, and `dpaudit schema` prints the JSON Schema of configs."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli.ending import refuse
from dpaudit.cli.starting_configs import CASES
from dpaudit.cli.terminal import say, show
from dpaudit.cli.values import check_choice, check_writable, completing


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The config file to write.")] = Path("audit.yaml"),
    case: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="|".join(CASES),
            autocompletion=completing(CASES),
            help="What is audited.  Files that the config names are written beside it.",
        ),
    ] = next(iter(CASES)),
) -> None:
    """Write an example config with comments, which runs unchanged.

    The cases are a builtin mechanism, a Python function, a search for pairs, a dataset in a file, a mechanism of a
    library, a program in any language, and private training.
    """
    check_choice("--for", case, CASES)
    check_writable("", file)
    config, others = CASES[case]
    files = {file: config.replace("{file}", shlex.quote(str(file)))}
    files |= {file.parent / name: content for name, content in others.items()}
    for path in files:
        if os.path.lexists(path):
            refuse(f"{path} already exists; choose another file name or another folder")
    for path, content in files.items():
        try:
            with path.open("x", encoding="utf-8") as stream:
                stream.write(content)
        except OSError as error:
            refuse(f"{path}: {error.strerror}")
    say(f"wrote {' and '.join(map(str, files))}; run it with: dpaudit run {shlex.quote(str(file))}")


def schema() -> None:
    """Print the JSON Schema of configs, which editors use for completion and checks."""
    from dpaudit.config import schema as config_schema

    show(json.dumps(config_schema(), indent=2))
