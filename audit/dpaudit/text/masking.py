"""Masks what looks like a secret in commands, URLs and settings, before a file records them.

A result is made to be published, and the command that made it may hold a password.  What is recognised: the user of a
URL, values whose name says that they are secret (`--token abc`, `API_KEY=abc`, `?signature=abc`), and the forms of
common access tokens.  A secret under a harmless name is not recognised.

What dpaudit shows before it runs a stranger's code is never masked, because a mask could hide code.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise

MASK = "***"

_SECRET = frozenset(
    [
        "auth",
        "authorization",
        "bearer",
        "credential",
        "credentials",
        "pass",
        "passphrase",
        "passwd",
        "password",
        "pwd",
        "secret",
        "secrets",
        "signature",
        "token",
        "apikey",
    ]
)
_SECRET_KEYS = frozenset(
    ["access", "account", "api", "encryption", "license", "private", "secret", "shared", "signing", "subscription"]
)
_USER = re.compile(r"(?<![\w+.-])([A-Za-z][\w+.-]*://)[^\s/'\"]+@")
_NAMED = re.compile(r"(?<![\w.-])(-*)([A-Za-z_][\w.-]*)(\s*[=:]\s*|\s+)")
_VALUE = re.compile(r"(?:(?:bearer|basic|token)\s+)?(?:\"[^\"]*\"|'[^']*'|[^\s&'\"]+)", re.I)
_TOKEN = re.compile(
    r"\bbearer\s+[^\s'\"]+|\b(?:gh[a-z]_|github_pat_|glpat-|hf_|pypi-|sk-|xox[a-z]-|AKIA)[\w-]{12,}"
    r"|\beyJ[\w-]+\.[\w-]+\.[\w-]*",
    re.I,
)


def masked(text: str) -> str:
    """Return the text with a mask in place of what looks like a secret.

    Args:
        text: A command, a URL or any other text.
    """
    text = _USER.sub(rf"\1{MASK}@", text)
    pieces, end = [], 0
    for match in _NAMED.finditer(text):
        dashes, name, separator = match.groups()
        # without = or :, the value of an option may follow: --token abc
        valued = separator.strip() or (dashes and not text.startswith("-", match.end()))
        if match.start() < end or not valued or not is_secret(name):
            continue
        if value := _VALUE.match(text, match.end()):
            pieces += [text[end : match.end()], MASK]
            end = value.end()
    return _TOKEN.sub(MASK, "".join([*pieces, text[end:]]))


def masked_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command, masked; the word after an option such as `--token` is masked as a whole.

    Args:
        words: The program and its arguments.
    """
    found = []
    for before, word in zip(["", *words], words, strict=False):
        follows = before.startswith("-") and "=" not in before and is_secret(before) and not word.startswith("-")
        found.append(MASK if follows else masked(word))
    return found


def masked_command(words: Sequence[str]) -> str:
    """Return a command as one would type it in a shell, masked."""
    return shlex.join(masked_words(words))


def masked_values(value: object, name: str = "") -> object:
    """Return plain values with masks.

    Args:
        value: Text, a number, or mappings and lists of them.
        name: The key under which a mapping holds the value.
    """
    if isinstance(value, Mapping):
        return {key: masked_values(held, str(key)) for key, held in value.items()}
    if is_secret(name) and value is not None and not isinstance(value, bool):
        return MASK
    if isinstance(value, list | tuple):
        words = [one for one in value if isinstance(one, str)]
        return masked_words(words) if len(words) == len(value) else [masked_values(one) for one in value]
    return masked(value) if isinstance(value, str) else value


def is_secret(name: str) -> bool:
    """Whether the name of an option, variable or key says that its value is secret."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    parts = re.split(r"[^a-z0-9]+", apart.lower())
    return bool(_SECRET & set(parts)) or any(
        first in _SECRET_KEYS and second == "key" for first, second in pairwise(parts)
    )
