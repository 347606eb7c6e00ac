"""Subjects of warnings, for code that acts on a warning.

A warning of an audit is a `Reason`: text with a subject.  Result files store only the text, from which only this module
finds the subject again.
"""

from __future__ import annotations

import enum
from typing import Self


class About(enum.Enum):
    """The subject of a warning.  The value is part of the text of every warning about the subject."""

    DEPENDENT = "no guarantee holds, since trials must be independent"
    VOID = "no guarantee holds for what was counted"  # an attack made the scores worthless
    FAILURE = "before it "  # the mechanism failed, and the audit stopped
    INTERRUPTION = "interrupted"
    TOO_FEW = "too few to see"  # too few runs or guesses to detect the violation in question
    RETRIED = "retried: the "  # failed runs were retried, so the claim was tested on the runs that succeeded
    GLOBAL_STATE = "global random state"  # the mechanism uses the global random state
    OTHER = ""


_HARMLESS = (
    "the mechanism printed ",
    "the mechanism changed the working directory ",
    "the mechanism changes its dataset in place ",
    "the mechanism uses global random state ",
)
"""Beginnings of the warnings that concern neither the validity nor the meaning of a verdict."""


class Reason(str):
    """The text of a warning, with its subject as the attribute `about`."""

    about: About

    def __new__(cls, words: str, about: About) -> Self:
        reason = super().__new__(cls, words)
        reason.about = about
        return reason

    def __getnewargs__(self) -> tuple[str, About]:  # type: ignore[override]  # used by copy and pickle
        return str(self), self.about

    @classmethod
    def of(cls, words: str) -> Self:
        """Return `words` if this text is a `Reason`; otherwise a `Reason` with these words about `About.OTHER`."""
        return words if isinstance(words, cls) else cls(words, About.OTHER)

    @classmethod
    def that(cls, sign: str, about: About) -> Self:
        """Combine an observation with its consequence: "SIGN: CONSEQUENCE"."""
        return cls(f"{sign}: {about.value}", about)


class FromFile(str):
    """The text of a warning in a result file, which anybody may have written.  Reports quote such a text."""


def quoted(words: str) -> str:
    """Return foreign words as a quotation."""
    plain = words.replace("”", '"').rstrip(".")
    return f"the file states: “{plain}”"


def is_about(warning: str, about: About) -> bool:
    """Return whether a warning has the given subject."""
    if isinstance(warning, Reason):
        return warning.about is about
    return about is not About.OTHER and about.value in warning


def concerns_verdict(warning: str) -> bool:
    """Whether a warning concerns a verdict, rather than side effects that dpaudit undid or exact repetition."""
    return not warning.startswith(_HARMLESS)


def nothing_holds(warning: str) -> bool:
    """Return whether a warning states that the counts prove nothing."""
    return is_about(warning, About.DEPENDENT) or is_about(warning, About.VOID)


def sign(warning: str) -> str:
    """Return the observation of a warning without its consequence."""
    return warning.split(": no guarantee holds")[0]
