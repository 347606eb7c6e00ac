"""Defines the sign, the word and the colour of each verdict for terminals, documents and machine-readable formats.

No verdict has a tick or a green light, because no audit shows that a mechanism is private.
The signs differ in shape, so that readers can distinguish them without colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpaudit.text.printable import encodable


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """The appearance of a verdict."""

    sign: str
    word: str  # lower case; equals the value of the verdict
    style: str  # colour in a terminal, as a style of `rich`
    tone: Literal["bad", "clear", "open"]  # the style sheet of a document maps this to a colour

    @property
    def title(self) -> str:
        """The word with a capital letter."""
        return self.word[:1].upper() + self.word[1:]

    def shown(self, encoding: str | None = None) -> str:
        """Return sign and word, e.g. "▲ violation"."""
        return encodable(f"{self.sign} {self.word}", encoding)


SIGNS = {
    sign.word: sign
    for sign in (
        Sign(sign="▲", word="violation", style="bold red", tone="bad"),
        Sign(sign="○", word="no violation found", style="bold blue", tone="clear"),
        Sign(sign="◇", word="inconclusive", style="bold yellow", tone="open"),
    )
}
"""Maps the value of a verdict to its sign.  Keys are text, because importing `Verdict` would load numpy."""

NO_RESULT = Sign(sign="–", word="no result", style="bold yellow", tone="open")
"""The sign of an audit that was not run or could not be run."""


PAPERS = ("a4", "letter")
"""The sizes of paper for PDF documents; the first is the default."""
