"""The command `dpaudit`: parses options, calls the other packages, and prints.

Results go to stdout, and messages go to stderr.  The module `terminal` documents the exit codes.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from dpaudit.cli.bisect import bisect
from dpaudit.cli.lookup import clean, convert, list_, plan, words
from dpaudit.cli.options import RESUME_ANYWAY
from dpaudit.cli.replay import replay
from dpaudit.cli.report import report, reproduce, site
from dpaudit.cli.run import compare, run
from dpaudit.cli.scores import scores
from dpaudit.cli.start import init, schema
from dpaudit.cli.sweep import sweep
from dpaudit.cli.terminal import (
    INCONCLUSIVE,
    NO_VIOLATION,
    VIOLATION,
    chosen_codes,
    finish,
    guarded,
    handle_termination,
    internal_error,
    interrupted_code,
    prepare,
    show,
)
from dpaudit.settings import RESUMES
from dpaudit.text import one_line

_CONFIG = re.compile(r"No such command '(.+\.ya?ml)'\..*", re.DOTALL)


class Command(TyperCommand):
    """A command whose help does not show that flags are of type bool, and that accepts `--resume=anyway`."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_kinds(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)  # words after "--" are not options
        for index, word in enumerate(args[:end]):
            if word.startswith("--resume=") and any(param.name == "resume" for param in self.params):
                if word != f"--resume={RESUMES[-1]}":
                    raise typer.BadParameter(
                        f"got {word.removeprefix('--resume=')[:40]!r}.  Write --resume, which refuses outputs of "
                        f"another audit, or --resume={RESUMES[-1]}, which resumes from such outputs and reports the "
                        "differences",
                        param_hint="--resume",
                    )
                args = [*args[:index], RESUME_ANYWAY, *args[index + 1 :]]
        rest: list[str] = super().parse_args(ctx, args)
        return rest


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
        rest: list[str] = super().parse_args(ctx, args)
        return rest


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
        if code == VIOLATION and chosen_codes != [VIOLATION]:
            code = INCONCLUSIVE  # typer exits with 1 when it cannot write its output
    except KeyboardInterrupt:
        code = interrupted_code()
    except BaseException as error:
        code = internal_error(error)
    finish()
    sys.exit(code)


COMMANDS: dict[str, Callable[..., None]] = {
    command.__name__.rstrip("_"): command
    for command in (
        *(run, compare, bisect, sweep, replay, reproduce, report, site),
        *(scores, convert, plan, list_, init, schema, clean, words),
    )
}
for name, command in COMMANDS.items():
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")  # one line each, so that typer wraps them
    help_text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    app.command(name, cls=Command, help=help_text)(guarded(command))
