"""The marks of verdicts in documents: the signs of `dpaudit.text.signs`, with words in title case."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.result.values import Verdict
from dpaudit.text.signs import SIGNS
from dpaudit_reports.blocks import Tone


@dataclass(frozen=True, slots=True)
class Mark:
    """The sign, word and tone of a verdict."""

    sign: str
    word: str
    tone: Tone


MARKS = {
    verdict: Mark(SIGNS[verdict.value].sign, SIGNS[verdict.value].title, SIGNS[verdict.value].tone)
    for verdict in Verdict
}

WORST_FIRST = (Verdict.VIOLATION, Verdict.INCONCLUSIVE, Verdict.NO_VIOLATION)
