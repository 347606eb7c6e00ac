"""The classes of commands: `--resume[=anyway]`, help without types of flags, `dpaudit help COMMAND`, escaped errors.

In typer an option always has a value or never has one.  Therefore `--resume=anyway` is rewritten to a hidden option.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from dpaudit.settings import RESUMES
from dpaudit.text import one_line

if TYPE_CHECKING:
    from dpaudit.values import Any

RESUME_ANYWAY = "--resume-anyway"
_CONFIG = re.compile(r"No such command '(.+\.ya?ml)'\..*", re.DOTALL)


class Command(TyperCommand):
    """A command whose help does not show that flags are of type bool, and that accepts `--resume=anyway`."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_kinds(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if any(param.name == "resume" for param in self.params):
            args = list(_rewritten(args))
        found: list[str] = super().parse_args(ctx, args)
        return found


def _rewritten(words: Sequence[str]) -> Iterator[str]:
    for index, word in enumerate(words):
        if word == "--":  # words after "--" are not options
            yield from words[index:]
            return
        if not word.startswith("--resume="):
            yield word
        elif (value := word.removeprefix("--resume=")) == RESUMES[-1]:
            yield RESUME_ANYWAY
        else:
            raise typer.BadParameter(
                f"got {value[:40]!r}.  Write --resume, which refuses outputs of another audit, or "
                f"--resume={RESUMES[-1]}, which resumes from such outputs and reports the differences",
                param_hint="--resume",
            )


class Commands(TyperGroup):
    """The group of all commands, in which `help COMMAND` means `COMMAND --help`, and errors are escaped."""

    def make_context(self, *values: Any, **named: Any) -> Any:
        with _escaped():
            return super().make_context(*values, **named)

    def invoke(self, ctx: Any) -> Any:
        with _escaped():
            return super().invoke(ctx)

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_kinds(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = args[1:2] if args[1:2] == ["words"] else [*args[1:2], "--help"]
        found: list[str] = super().parse_args(ctx, args)
        return found


def _without_kinds(parameters: list[Any]) -> list[Any]:
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
