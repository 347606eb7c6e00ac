"""The command line: parses, calls, prints.  Results go to stdout, talk to stderr.

Exit codes: 0 no violation found, 1 violation, 2 wrong usage or config, 3 inconclusive or could not be completed, 4
internal error; of several audits the most serious one counts (1 over 4 over 3 over 0; 2 before anything runs).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from dpaudit.cli.claims import convert, plan
from dpaudit.cli.compare import compare
from dpaudit.cli.ending import INCONCLUSIVE, INTERRUPTED, NO_VIOLATION, VIOLATION, chosen_codes, guarded, internal_error
from dpaudit.cli.listing import list_
from dpaudit.cli.replay import replay
from dpaudit.cli.report import report
from dpaudit.cli.run import run
from dpaudit.cli.start import init, schema
from dpaudit.cli.terminal import finish, prepare, show

app = typer.Typer(
    name="dpaudit",
    help="Empirical audits of differential-privacy claims.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from dpaudit.text.version import __version__

        show(f"dpaudit {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Empirical audits of differential-privacy claims."""


def main() -> None:
    """Entry point of the command `dpaudit`."""
    prepare()
    code: Any = NO_VIOLATION
    try:
        app()
    except SystemExit as end:
        code = end.code if end.code is not None else NO_VIOLATION
        if code == VIOLATION and chosen_codes != [VIOLATION]:  # typer ends with 1 when its output cannot be written
            code = INCONCLUSIVE
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException as error:
        code = internal_error(error)
    finish()
    sys.exit(code)


COMMANDS: dict[str, Callable[..., None]] = {
    "run": run,
    "compare": compare,
    "replay": replay,
    "report": report,
    "convert": convert,
    "plan": plan,
    "list": list_,
    "init": init,
    "schema": schema,
}
for name, command in COMMANDS.items():
    app.command(name)(guarded(command))
