"""Warnings of an audit: words for people, and a code for whatever acts on a warning."""

from __future__ import annotations

import enum
from typing import Self


class WarningCode(enum.Enum):
    """What a warning means for a verdict, an exit code, a report or a next step."""

    DEPENDENT = "dependent"  # runs depend on each other, so no guarantee holds
    VOID = "void"  # an attack made the scores worthless, so no guarantee holds
    FAILURE = "failure"  # the mechanism failed, and the trials of a pair or of all pairs ended
    INTERRUPTION = "interruption"
    TOO_FEW = "too few"  # too few runs or guesses to detect the violation in question
    RETRIED = "retried"  # failed runs were retried, so the claim was tested on the runs that succeeded
    HARMLESS = "harmless"  # a side effect that was undone, or that only affects exact repetition
    OTHER = "other"


_CONSEQUENCES = {
    WarningCode.DEPENDENT: ": no guarantee holds, since trials must be independent",
    WarningCode.VOID: ": no guarantee holds for what was counted",
}


class Reason(str):
    """A warning: what was observed, followed by the consequence that its code implies.

    A warning that is plain text has the code `OTHER`.
    """

    sign: str  # what was observed, without the consequence
    code: WarningCode
    foreign: bool  # whether a file states it, which anybody may have written; reports quote it

    def __new__(cls, sign: str, code: WarningCode = WarningCode.OTHER, foreign: bool = False) -> Self:
        reason = super().__new__(cls, sign + _CONSEQUENCES.get(code, ""))
        reason.sign, reason.code, reason.foreign = sign, code, foreign
        return reason

    def __getnewargs__(self) -> tuple[str, WarningCode, bool]:  # type: ignore[override]  # used by copy and pickle
        return self.sign, self.code, self.foreign

    @classmethod
    def of(cls, words: str) -> Self:
        """Return a warning as a `Reason`."""
        return words if isinstance(words, cls) else cls(words)


def has_code(warning: str, *codes: WarningCode) -> bool:
    """Return whether the code of a warning is one of `codes`."""
    return Reason.of(warning).code in codes


def nothing_holds(warning: str) -> bool:
    """Return whether a warning states that the counts prove nothing."""
    return has_code(warning, WarningCode.DEPENDENT, WarningCode.VOID)


def quoted(words: str) -> str:
    """Return foreign words as a quotation."""
    plain = words.replace("”", '"').rstrip(".")
    return f"the file states: “{plain}”"
