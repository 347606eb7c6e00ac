"""The sign, the word and the colour of each verdict: one set for terminals, documents, test suites and machines.

No verdict has a tick or a green light: no audit shows that a mechanism is private.
The signs differ in shape, so they are told apart without colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpaudit.text.encodable import encodable


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """How a verdict is shown."""

    sign: str
    word: str  # as in a sentence; the value of the verdict
    style: str  # colour in a terminal, in the terms of `rich`
    tone: Literal["bad", "clear", "open"]  # colour in a document, chosen by its style sheet

    @property
    def title(self) -> str:
        """The word with a capital letter."""
        return self.word[:1].upper() + self.word[1:]

    def shown(self, encoding: str | None = None) -> str:
        """Return sign and word, e.g. "▲ violation", in ASCII if the encoding needs it."""
        return encodable(f"{self.sign} {self.word}", encoding)


SIGNS = {
    sign.word: sign
    for sign in (
        Sign(sign="▲", word="violation", style="bold red", tone="bad"),
        Sign(sign="○", word="no violation found", style="bold blue", tone="clear"),
        Sign(sign="◇", word="inconclusive", style="bold yellow", tone="open"),
    )
}
"""The sign of each verdict by its value, `Verdict.value`, so that nobody loads numpy for a sign."""

NO_RESULT = Sign(sign="–", word="no result", style="bold yellow", tone="open")
"""Of an audit that could not be run, or was not run."""
