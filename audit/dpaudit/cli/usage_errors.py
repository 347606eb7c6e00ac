"""Escapes errors of the command line that typer finds and shows, such as an unknown option."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from typer.core import TyperGroup

from dpaudit.text.printable import one_line

if TYPE_CHECKING:
    from dpaudit.values import Foreign


_CONFIG = re.compile(r"No such command '(.+\.ya?ml)'\..*", re.DOTALL)


class SafeErrors(TyperGroup):
    """A group of commands that escapes control characters in usage errors.

    Such an error may quote the name of a file that somebody else chose.
    """

    def make_context(self, *values: Foreign, **named: Foreign) -> Foreign:
        """Parse the words before the command's name, as click does."""
        with _escaped():
            return super().make_context(*values, **named)

    def invoke(self, ctx: Foreign) -> Foreign:
        """Parse the words of the command and call the command, as click does."""
        with _escaped():
            return super().invoke(ctx)


def _meant(message: str) -> str:
    """Return a hint if the name of a config stands in place of a command."""
    found = _CONFIG.fullmatch(message)
    return f"  Write: dpaudit run {one_line(found[1])}" if found else ""


@contextlib.contextmanager
def _escaped() -> Iterator[None]:
    """Escape the message of an error that typer will show.  The class of the error depends on the version of typer."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message") and isinstance(message := getattr(error, "message", None), str):
            error.message = one_line(message) + _meant(message)  # type: ignore[attr-defined]
        raise
