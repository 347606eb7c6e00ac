"""The classes of commands: `--resume[=anyway]`, help that shows no type for flags, and `dpaudit help COMMAND`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpaudit.cli.resume_option import ResumeCommand
from dpaudit.cli.usage_errors import SafeErrors

if TYPE_CHECKING:
    from dpaudit.values import Foreign


class Command(ResumeCommand):
    """A command whose help does not show that flags are of type bool."""

    def get_params(self, ctx: Foreign) -> list[Foreign]:
        """Return all arguments and options, --help included."""
        return _without_kinds(super().get_params(ctx))


class Commands(SafeErrors):
    """The group of all commands, in which `help COMMAND` means `COMMAND --help`."""

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
