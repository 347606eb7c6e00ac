"""The marks of verdicts in documents: the signs of `dpaudit.text.signs`, with words in title case; and titles."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.result.model import AuditResult
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


def title_of(result: AuditResult) -> str:
    """Return the name of the result, or a substitute because documents, parts and links need a title."""
    return result.name if result.name.strip() else "audit without a name"
