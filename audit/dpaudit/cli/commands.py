"""The classes of commands: `--resume[=anyway]`, help without types of flags, `dpaudit help COMMAND`, escaped errors."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from typer.core import TyperGroup

from dpaudit.cli.resume_option import ResumeCommand
from dpaudit.text.printable import one_line

if TYPE_CHECKING:
    from dpaudit.values import Foreign

_CONFIG = re.compile(r"No such command '(.+\.ya?ml)'\..*", re.DOTALL)


class Command(ResumeCommand):
    """A command whose help does not show that flags are of type bool."""

    def get_params(self, ctx: Foreign) -> list[Foreign]:
        """Return all arguments and options, --help included."""
        return _without_kinds(super().get_params(ctx))


class Commands(TyperGroup):
    """The group of all commands, in which `help COMMAND` means `COMMAND --help`, and errors are escaped."""

    def make_context(self, *values: Foreign, **named: Foreign) -> Foreign:
        """Parse the words before the command's name, as click does."""
        with _escaped():
            return super().make_context(*values, **named)

    def invoke(self, ctx: Foreign) -> Foreign:
        """Parse the words of the command and call the command, as click does."""
        with _escaped():
            return super().invoke(ctx)

    def get_params(self, ctx: Foreign) -> list[Foreign]:
        """Return all options before the name of the command, --help included."""
        return _without_kinds(super().get_params(ctx))

    def parse_args(self, ctx: Foreign, args: list[str]) -> list[str]:
        """Parse the words after `dpaudit`."""
        found: list[str] = super().parse_args(ctx, [*args[1:2], "--help"] if args[:1] == ["help"] else args)
        return found


def _without_kinds(parameters: list[Foreign]) -> list[Foreign]:
    """Let the help of flags show no type, because a flag has no value."""
    for option in parameters:
        if getattr(option, "is_flag", False) and option.metavar is None:
            option.metavar = " "
    return parameters


@contextlib.contextmanager
def _escaped() -> Iterator[None]:
    """Escape the message of an error that typer will show; it may quote a file name that somebody else chose."""
    try:
        yield
    except Exception as error:  # the class of the error depends on the version of typer
        if hasattr(error, "format_message") and isinstance(message := getattr(error, "message", None), str):
            config = _CONFIG.fullmatch(message)
            meant = f"  Write: dpaudit run {one_line(config[1])}" if config else ""
            error.message = one_line(message) + meant  # type: ignore[attr-defined]
        raise
