"""The command `dpaudit`: parses options, calls the other packages, and prints.

Results go to stdout, and messages go to stderr.  The module `ending` documents the exit codes.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from dpaudit.cli.bisect import bisect
from dpaudit.cli.claims import convert, plan
from dpaudit.cli.commands import Command, Commands
from dpaudit.cli.ending import (
    INCONCLUSIVE,
    NO_VIOLATION,
    VIOLATION,
    chosen_codes,
    guarded,
    handle_termination,
    internal_error,
    interrupted_code,
)
from dpaudit.cli.listing import clean, list_
from dpaudit.cli.replay import replay
from dpaudit.cli.report import report, site
from dpaudit.cli.reproduce import reproduce
from dpaudit.cli.run import compare, run
from dpaudit.cli.scores import scores
from dpaudit.cli.start import init, schema
from dpaudit.cli.sweep import sweep
from dpaudit.cli.terminal import finish, prepare, show
from dpaudit.cli.words import words

app = typer.Typer(
    name="dpaudit",
    cls=Commands,
    help="Audit differential-privacy claims empirically.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from dpaudit.text import __version__

        show(f"dpaudit {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("-V", "--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Audit differential-privacy claims empirically."""


def main() -> None:
    """Run the command `dpaudit` and exit with its code."""
    prepare()
    handle_termination()
    code: int | str = NO_VIOLATION
    try:
        app()
    except SystemExit as end:
        code = end.code if end.code is not None else NO_VIOLATION
        if code == VIOLATION and chosen_codes != [VIOLATION]:  # typer exits with 1 when it cannot write its output
            code = INCONCLUSIVE
    except KeyboardInterrupt:
        code = interrupted_code()
    except BaseException as error:
        code = internal_error(error)
    finish()
    sys.exit(code)


def _help(command: Callable[..., None]) -> str:
    """Return the docstring of a command with one line for each paragraph, so that typer wraps it to the terminal."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


COMMANDS: dict[str, Callable[..., None]] = {
    "run": run,
    "compare": compare,
    "bisect": bisect,
    "sweep": sweep,
    "replay": replay,
    "reproduce": reproduce,
    "report": report,
    "site": site,
    "scores": scores,
    "convert": convert,
    "plan": plan,
    "list": list_,
    "init": init,
    "schema": schema,
    "clean": clean,
    "words": words,
}
for name, command in COMMANDS.items():
    app.command(name, cls=Command, help=_help(command))(guarded(command))
