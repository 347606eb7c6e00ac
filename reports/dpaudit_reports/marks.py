"""How a verdict is marked: a sign and a word, told apart in black and white and when read aloud.

No verdict has a tick or a green light: no audit shows that a mechanism is private.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.result.values import Verdict
from dpaudit_reports.blocks import Tone


@dataclass(frozen=True, slots=True)
class Mark:
    """Sign, word and tone of a verdict."""

    sign: str
    word: str
    tone: Tone


MARKS = {
    Verdict.VIOLATION: Mark("▲", "Violation", "bad"),
    Verdict.NO_VIOLATION: Mark("○", "No violation found", "clear"),
    Verdict.INCONCLUSIVE: Mark("◇", "Inconclusive", "open"),
}
