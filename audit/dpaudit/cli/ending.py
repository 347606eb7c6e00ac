"""The end of a command: exit codes, refusals, and errors of dpaudit itself.

Exit codes: 0 no violation found, 1 violation, 2 wrong usage or config, 3 inconclusive or not completed, and 4 internal
error.  After several audits, the most serious outcome sets the code, in the order 1, 4, 3, 0.  If `dpaudit run` or
`dpaudit compare` exits with code 2, no audit has started.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import NoReturn

import typer

from dpaudit.cli.terminal import complain, say

NO_VIOLATION, VIOLATION, WRONG_USAGE, INCONCLUSIVE, INTERNAL_ERROR = 0, 1, 2, 3, 4

INTERRUPTED = 130

chosen_codes: list[int] = []  # the exit code that the command chose; empty before the choice


def internal_error(error: BaseException) -> int:
    """Report an error of dpaudit itself, or a lack of memory, disk space or file handles; return the exit code."""
    from dpaudit.cli.internal_errors import report_internal_error
    from dpaudit.mechanisms.raised import message_of, of_machine

    if of_machine(error):
        complain(f"the command is not completed: {message_of(error) or 'out of memory'}")
        return INCONCLUSIVE
    say(report_internal_error(error, debug="--debug" in sys.argv))
    return INTERNAL_ERROR


def leave(code: int) -> NoReturn:
    """End the command with this exit code."""
    chosen_codes[:] = [code]
    raise typer.Exit(code)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that an unexpected exception gives the code of an internal error, never that of a verdict."""

    @functools.wraps(command)
    def checked(*values: object, **named: object) -> None:
        try:
            command(*values, **named)
        except (typer.Exit, typer.Abort, KeyboardInterrupt):
            raise
        except BaseException as error:  # includes SystemExit, which only foreign code raises here
            leave(internal_error(error))

    checked.__signature__ = inspect.signature(command, eval_str=True)  # type: ignore[attr-defined]
    return checked


def print_traceback(debug: bool) -> None:
    """Show the traceback of the current exception if --debug was given."""
    if debug:
        import traceback

        say(traceback.format_exc().rstrip())


def refuse(*messages: str) -> NoReturn:
    """Report wrong usage and end the command; each message is an error."""
    for message in messages:
        complain(message)
    leave(WRONG_USAGE)
