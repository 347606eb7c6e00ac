"""How a command ends: exit codes, refusals, and errors of dpaudit itself.

Exit codes: 0 no violation found, 1 violation, 2 wrong usage or config, 3 inconclusive or could not be completed, 4
internal error; of several audits the most serious one counts (1 over 4 over 3 over 0; 2 before anything runs).
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import typer

from dpaudit.cli.terminal import say

NO_VIOLATION, VIOLATION, WRONG_USAGE, INCONCLUSIVE, INTERNAL_ERROR = 0, 1, 2, 3, 4

INTERRUPTED = 130

chosen_codes: list[int] = []  # the exit codes that commands chose, of which a process has one


def internal_error(error: BaseException) -> int:
    """Report an error of dpaudit itself; the exit code."""
    from dpaudit.cli.internal_errors import report_internal_error

    say(report_internal_error(error, debug="--debug" in sys.argv))
    return INTERNAL_ERROR


def leave(code: int) -> NoReturn:
    chosen_codes[:] = [code]
    raise typer.Exit(code)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command, so that nothing unexpected passes for a verdict."""

    @functools.wraps(command)
    def checked(*values: Any, **named: Any) -> None:
        try:
            command(*values, **named)
        except (typer.Exit, typer.Abort, KeyboardInterrupt):
            raise
        except BaseException as error:  # SystemExit too, which only foreign code raises here
            leave(internal_error(error))

    checked.__signature__ = inspect.signature(command, eval_str=True)  # type: ignore[attr-defined]
    return checked


def print_traceback(debug: bool) -> None:
    """With --debug, show where the exception comes from that is being handled."""
    if debug:
        import traceback

        say(traceback.format_exc().rstrip())


def refuse(text: str) -> NoReturn:
    say(text)
    leave(WRONG_USAGE)
