"""Text for people: escaping, masks of secrets, spelling hints, signs of verdicts, and reasons with codes."""

from __future__ import annotations

import difflib
import enum
import errno
import os
import re
import shlex
import stat
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import metadata
from io import BufferedReader
from pathlib import Path
from typing import Literal, Self


def _version() -> str:
    try:
        text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
        project = tomllib.loads(text)["project"]
        if project["name"] == "dpaudit":
            return str(project["version"])
    except (OSError, ValueError, LookupError, TypeError):
        pass  # not a checkout
    try:
        return metadata.version("dpaudit")
    except metadata.PackageNotFoundError:
        return "0+unknown"


__version__ = _version()


_PLAIN = str.maketrans(
    {
        "▲": "X", "○": "o", "◇": "?",  # signs of verdicts
        "≥": ">=", "≤": "<=", "≈": "~", "−": "-", "×": "x", "∞": "inf", "⁄": "/",
        "ε": "epsilon", "δ": "delta", "μ": "mu", "ρ": "rho", "α": "alpha", "β": "beta",
        "·": "-", "…": "...", "–": "-", "—": "-", "─": "-", "━": "-", "\u00a0": " ",
    }
)  # fmt: skip
_RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
_LOWERED = str.maketrans(_RAISED, "-0123456789")


def printable(text: str) -> str:
    """Escape invisible characters and changes of the text direction, e.g. \\x00 and \\u202e; keep line breaks."""

    def visible(character: str) -> bool:
        joins = character in "\n\u200c\u200d"  # line break, and the joiners that Persian and emoji need
        return character.isprintable() or joins or unicodedata.category(character) == "Zs"

    return "".join(c if visible(c) else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """Escape line breaks as well as the characters that `printable` escapes, so that text cannot add a line."""
    return printable(text).replace("\n", "\\n")


def joined(text: str) -> str:
    """Join the indented lines of a message of dpaudit with spaces, and escape all else like `one_line`."""
    return one_line(re.sub(r"\n +", " ", text))


def shortened(text: str, most: int = 300) -> str:
    """Return the text; if it has more than `most` characters, cut the rest and append an ellipsis."""
    return text if len(text) <= most else f"{text[:most]}…"


def encodable(text: str, encoding: str | None) -> str:
    """Return the text in ASCII if the encoding cannot write it."""
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeError, LookupError):
        powers = re.sub(f"[{_RAISED}]+", lambda found: f"^{found[0].translate(_LOWERED)}", text)
        return powers.translate(_PLAIN).encode("ascii", "backslashreplace").decode("ascii")
    return text


def facts_html(title: str, rows: Sequence[tuple[str, ...]], sentences: Iterable[str] = ()) -> str:
    """Return HTML that a notebook displays in its own colours."""

    def escaped(text: str) -> str:
        return escape(one_line(text), quote=True)

    body = "".join(
        f'<tr><th scope="row" style="text-align: left">{escaped(name)}</th>'
        f"{''.join(f'<td>{escaped(cell)}</td>' for cell in cells)}</tr>"
        for name, *cells in rows
    )
    below = "".join(f"<p>{escaped(sentence)}</p>" for sentence in sentences)
    return f"<div><p><strong>{escaped(title)}</strong></p><table><tbody>{body}</tbody></table>{below}</div>"


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
    """A warning: what was observed, and the consequence that its code implies; `OTHER` is the code of plain text."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """The appearance of a verdict."""

    sign: str
    word: str  # lower case; equals the value of the verdict
    style: str  # colour in a terminal, as a style of `rich`
    tone: Literal["bad", "clear", "open"]  # the style sheet of a document maps this to a colour

    @property
    def title(self) -> str:
        """The word with a capital letter."""
        return self.word[:1].upper() + self.word[1:]

    def shown(self, encoding: str | None = None) -> str:
        """Return sign and word, e.g. "▲ violation"."""
        return encodable(f"{self.sign} {self.word}", encoding)


SIGNS = {
    sign.word: sign
    for sign in (
        Sign(sign="▲", word="violation", style="bold red", tone="bad"),
        Sign(sign="○", word="no violation found", style="bold blue", tone="clear"),
        Sign(sign="◇", word="inconclusive", style="bold yellow", tone="open"),
    )
}
# keys are the values of verdicts, as text, because importing `Verdict` would load numpy

NO_RESULT = Sign(sign="–", word="no result", style="bold yellow", tone="open")
"""The sign of an audit that was not run or could not be run."""


PAPERS = ("a4", "letter")  # sizes of paper for PDF documents; the first is the default


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known word that is most similar to `word`; "" if the similarity of all words is below `cutoff`."""
    return next(iter(difflib.get_close_matches(word[:100].lower(), list(known), n=1, cutoff=cutoff)), "")


def hint(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return a suggestion for a misspelt word."""
    meant = nearest(word, known)
    return f"did you mean {meant}?" if meant else otherwise


_OTHER_RELATIONS = {
    "bounded": "replace_one",
    "substitute": "replace_one",
    "swap": "replace_one",
    "unbounded": "add_remove",
    "add": "add_remove",
    "remove": "add_remove",
}


def relation_meant(given: object, known: Iterable[str]) -> str:
    """Return a question after "; " if a neighbouring relation is misspelt or has another name; otherwise ""."""
    word = str(given)[:100].lower().replace("-", "_").replace(" ", "_")
    other = _OTHER_RELATIONS.get(word, "")
    meant = other if other in known else nearest(word, known)
    return f"; did you mean {meant}?" if meant else ""


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
            masked(name) if isinstance(name, str) else name: masked_values(
                content, secret or _SECRET.fullmatch(str(name)) is not None
            )
            for name, content in value.items()
        }
    if isinstance(value, list | tuple):
        texts = masked_words([entry if isinstance(entry, str) else "" for entry in value])
        return [
            masked_values(entry, secret) if secret or not isinstance(entry, str) else text
            for entry, text in zip(value, texts, strict=True)
        ]
    if not isinstance(value, str):
        return value
    return MASK if secret else _masked_word(value, "")


class Refused(Exception):
    """Wrong usage; each of the `problems` is a message for the user."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


MAX_FILE_BYTES = 2**28  # a file that somebody else may have written is read into memory


def open_foreign(path: str | Path) -> BufferedReader:
    """Open a regular file for reading."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # opening a pipe without a writer must not block
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is not a regular file but a folder, device or pipe", str(path))
    return os.fdopen(handle, "rb")


def read_foreign(path: str | Path, max_bytes: int = MAX_FILE_BYTES) -> str:
    """Read the text of a regular file, encoded as UTF-8."""
    with open_foreign(path) as file:
        # in pieces, because one call would reserve memory for the maximum size
        content = b"".join(iter(lambda: file.read(min(2**20, max_bytes + 1 - file.tell())), b""))
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"is larger than {max_bytes:,} bytes, the maximum size of a file to read", str(path))
    return content.decode("utf-8")
