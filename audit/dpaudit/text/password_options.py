"""Finds passwords after short options of well-known programs, such as `mysql -pSECRET` and `curl -b SESSION`.

A short option alone does not mean a password: `-p` is a port for `ssh` and `docker run`, and a probability for many
programs.  So a short option counts only after the name of a program whose manual defines the option as a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class _Rule(NamedTuple):
    """The option of a program that takes a password."""

    letter: str
    apart: bool = True  # whether the password may be the next word; `mysql -p name` asks for it, and name is a database
    once: bool = False  # whether the program runs another program, to which later options belong
    needs: str = ""  # character that the value must contain; `curl -b` without `=` names a file


_RULES = {
    r"(?:mysql|mariadb)[\w-]*|7z[ar]?": _Rule("p", apart=False),
    r"sshpass": _Rule("p", once=True),
    r"mongo\w*|login": _Rule("p"),  # docker login, podman login, helm registry login, az login
    r"redis-cli": _Rule("a"),
    r"ldap[a-z]+": _Rule("w"),
    r"sqlcmd|bcp|isql|zip|unzip": _Rule("P"),
    r"smbclient|rpcclient": _Rule("U", needs="%"),  # user%password
    r"curl": _Rule("b", needs="="),  # cookies
}
_RULE_LIST = list(_RULES.values())
_PROGRAM = "|".join(f"({pattern})" for pattern in _RULES)
_WORD = re.compile(rf"(?:\S*/)?(?:{_PROGRAM})")
_STEP = re.compile(rf"(?<![\w.-])(?:{_PROGRAM})(?=\s)|(?<=\s)-([A-Za-z])(\s*)|[;|&\n]")
_QUOTED = r"(?:\"(?:[^\"\\]|\\.)*\"|'[^']*')"
_VALUE = re.compile(rf"(?:{_QUOTED}|\\.|[^\s'\"\\]|['\"\\](?=\S))+", re.S)


def passwords_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of passwords in a shell command, in order."""
    rule, end = None, 0
    for step in _STEP.finditer(text):
        if step.start() < end:
            continue
        *programs, letter, space = step.groups()
        if letter is None:
            rule = next((_RULE_LIST[i] for i, name in enumerate(programs) if name), None)
        elif rule is not None and letter == rule.letter and (rule.apart or not space):
            value = _VALUE.match(text, step.end())
            if value and rule.needs in value[0] and not (space and value[0].startswith("-")):
                end = value.end()
                rule = None if rule.once else rule
                yield value.span()


def passwords_of(words: Sequence[str]) -> list[str]:
    """Return the password at the end of each word of a command, or "" if the word holds none."""
    found: list[str] = []
    rule: _Rule | None = None
    waiting = False  # whether the preceding word was the option of the rule
    for word in words:
        secret = ""
        if rule is not None:
            option = f"-{rule.letter}"
            value = word if waiting else word[len(option) :] if word.startswith(option) else ""
            secret = value if rule.needs in value else ""
            waiting = not waiting and word == option and rule.apart
            rule = None if secret and rule.once else rule
        if not secret and (program := _WORD.fullmatch(word)):
            rule = next(_RULE_LIST[i] for i, name in enumerate(program.groups()) if name)
        found.append(secret)
    return found
