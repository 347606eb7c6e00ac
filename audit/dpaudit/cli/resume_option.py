"""The option `--resume[=anyway]`, which may have a value but never takes the next word as its value.

In typer an option always has a value or never has one.  Therefore `--resume=anyway` is rewritten to a hidden option.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from dpaudit.settings.audit import RESUMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RESUME_ANYWAY = "--resume-anyway"
_RESUME = "--resume="


class ResumeCommand(TyperCommand):
    """A command that accepts `--resume=anyway` if it has the option `--resume`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line, with `--resume=anyway` rewritten."""
        if any(param.name == "resume" for param in self.params):
            args = list(_rewritten(args))
        found: list[str] = super().parse_args(ctx, args)
        return found


def _rewritten(words: Sequence[str]) -> Iterator[str]:
    for index, word in enumerate(words):
        if word == "--":  # words after "--" are not options
            yield from words[index:]
            return
        if not word.startswith(_RESUME):
            yield word
        elif (value := word.removeprefix(_RESUME)) == RESUMES[-1]:
            yield RESUME_ANYWAY
        else:
            raise typer.BadParameter(
                f"got {value[:40]!r}.  Write --resume, which refuses outputs of another audit, or "
                f"--resume={RESUMES[-1]}, which resumes from such outputs and reports the differences",
                param_hint="--resume",
            )
