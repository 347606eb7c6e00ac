"""Masks passwords in text that files record, because results are meant to be published.

A mask replaces the value of an option or a variable whose name says that it is secret (`--token abc`, `API_KEY=abc`),
and the user of a URL.  A password under another name is recorded; a command may name a variable instead (`$VARIABLE`,
see `CommandMechanism`).  Text that is shown before a stranger's code runs is never masked, as a mask could hide code.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

MASK = "***"

_NAME = (
    r"[\w.-]*(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?"
    r"|signature)"
)
_SECRET = re.compile(_NAME, re.I)
_NAMED = re.compile(rf"(?<![\w.-])({_NAME}['\"]?\s*[=:]\s*|-{_NAME}\s+(?!-))(?:\"[^\"]*\"|'[^']*'|[^\s'\"&]+)", re.I)
_NAMED_WORD = re.compile(rf"({_NAME}[=:]).+", re.I | re.S)
_USER = re.compile(r"(?<![\w+.-])([A-Za-z][\w+.-]*://)[^\s/]+@")


def masked(text: str) -> str:
    """Return the text with a mask in place of each password."""
    return _NAMED.sub(rf"\1{MASK}", _USER.sub(rf"\1{MASK}@", text))


def masked_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command, masked."""
    return [_masked_word(word, before) for before, word in zip(["", *words], words, strict=False)]


def _masked_word(word: str, before: str) -> str:
    """Mask a word of a command after the word `before`: all of it, all of it after a name, or its parts."""
    if before.startswith("-") and _SECRET.fullmatch(before) and not word.startswith("-"):
        return MASK
    return _NAMED_WORD.sub(rf"\1{MASK}", word) if _NAMED_WORD.fullmatch(word) else masked(word)


def masked_command(words: Sequence[str]) -> str:
    """Return a command line for a shell, masked."""
    return shlex.join(masked_words(words))


def masked_values(value: object, secret: bool = False) -> object:
    """Return plain values with masks.  Numbers and booleans are not masked, because they are settings."""
    if isinstance(value, Mapping):
        return {
            masked(key) if isinstance(key, str) else key: masked_values(
                held, secret or _SECRET.fullmatch(str(key)) is not None
            )
            for key, held in value.items()
        }
    if isinstance(value, list | tuple):
        texts = [one if isinstance(one, str) else "" for one in value]
        shown = [MASK] * len(texts) if secret else masked_words(texts)
        return [
            word if isinstance(one, str) else masked_values(one, secret) for one, word in zip(value, shown, strict=True)
        ]
    if not isinstance(value, str):
        return value
    return MASK if secret else _masked_word(value, "")
