"""What a warning of an audit is about, for whoever decides by it.

A warning is text, and result files hold nothing else.  Where one is made it says what it is about; of a warning from a
file that is recognised by its words, here and nowhere else.
"""

from __future__ import annotations

import enum
from typing import Self


class About(enum.Enum):
    """What a warning is about.  The value is in the words of every such warning."""

    DEPENDENT = "no guarantee holds, since trials must be independent"
    VOID = "no guarantee holds for what was counted"  # an attack made the scores worthless
    FAILURE = "before it "  # the mechanism failed, which ended the audit
    INTERRUPTION = "interrupted"
    TOO_FEW = "too few to see"  # runs or guesses, for the violation that was looked for
    GLOBAL_STATE = "global random state"  # the mechanism uses it
    OTHER = ""


_NO_GUARANTEE = "no guarantee holds"
NOTHING_HOLDS = frozenset({About.DEPENDENT, About.VOID})
"""The counts prove nothing."""


class Reason(str):
    """A warning that knows what it is about; text in every other respect."""

    about: About

    def __new__(cls, words: str, about: About) -> Self:
        reason = super().__new__(cls, words)
        reason.about = about
        return reason

    def __getnewargs__(self) -> tuple[str, About]:  # type: ignore[override]  # for copies and pickles
        return str(self), self.about

    @classmethod
    def of(cls, words: str) -> Self:
        """The same words; about nothing that anybody decides by, unless they say what they are about themselves."""
        return words if isinstance(words, cls) else cls(words, About.OTHER)

    @classmethod
    def that(cls, sign: str, about: About) -> Self:
        """A sign that nothing holds, and what follows from it."""
        return cls(f"{sign}: {about.value}", about)


def is_about(warning: str, about: About) -> bool:
    """Whether a warning is about this; one from a file, if its words say so."""
    if isinstance(warning, Reason):
        return warning.about is about
    if about is About.DEPENDENT:  # in whatever words an earlier version went on
        return _NO_GUARANTEE in warning and About.VOID.value not in warning
    return about is not About.OTHER and about.value in warning


def nothing_holds(warning: str) -> bool:
    """Whether a warning says that the counts prove nothing."""
    return any(is_about(warning, about) for about in NOTHING_HOLDS)


def sign(warning: str) -> str:
    """What a warning of which `nothing_holds` saw, without what follows from it."""
    return warning.split(f": {_NO_GUARANTEE}")[0]
