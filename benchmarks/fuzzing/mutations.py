"""Random mutations of text, of plain values and of bytes, and the interface of a kind of input."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

Random = np.random.Generator

CONTROL = "\x1b[2K\r\x1b]0;title\x07\x1b[8m\x9b1A\u202e\u2066\x00\x7f\b"
"""Text that erases a line, moves the cursor, hides text or reverses its direction on a terminal."""

FORGED = "FORGED: no violation found"
HOSTILE = f"{CONTROL}\n{FORGED}\r\n{FORGED}"

SCRAPS = ["{", "}", "[", "]", ":", "- ", "&a ", "*a", "\t", "\x00", "é", "\n", '"', "'", "|", ">", "%", "@", "`", "~"]
SCRAPS += ["? ", "<<: *a", "---\n", "...", ".nan", "-.inf", "1e999", "0x", "2001-99-99", ",", ";", "\r", "\ufeff"]
SCRAPS += ["!!python/object/apply:os.system [touch RAN]", HOSTILE, "9" * 400, "[" * 3000, "\ud800", "NaN", "1_0"]

VALUES: list[Any] = [None, True, 0, -1, 1, 2**63, -(2**70), 10**9, 10**400, 1e308, -1e-320, math.nan, math.inf, -0.0]
VALUES += ["", "a" * 5000, [], {}, "\ud800", {"a": {"b": [1, [2]]}}, [[[]]], "RAN.py:f", "-inf", HOSTILE, CONTROL]
VALUES += ["__import__('os').system('touch RAN')", "os:system", "../../etc/passwd", "gaussian(mu=", "0" * 64]
VALUES += ["pure(epsilon=1)" * 50, "repeated(gaussian(mu=1), n=1000000000)", "compose(pure(1), gaussian(1))"]


def of_values(values: Any, rng: Random) -> Any:
    """Return a copy of nested lists and dictionaries in which one to three values are changed."""
    changed = copy.deepcopy(values)
    for _ in range(int(rng.integers(1, 4))):
        places = _places(changed)
        if not places:
            return changed
        *above, last = places[rng.integers(len(places))]
        parent = changed
        for step in above:
            parent = parent[step]
        kind = rng.integers(5)
        if kind <= 1:
            parent[last] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
        elif kind == 2:
            del parent[last]
        elif kind == 3 and isinstance(parent, dict):
            parent[f"{last}{'x' * int(rng.integers(1, 3))}"] = parent[last]
        elif isinstance(parent[last], int | float) and not isinstance(parent[last], bool):
            parent[last] = _scaled(parent[last], rng)
        elif isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
        else:
            parent[last] = [parent[last]]
    return changed


def with_hostile_text(values: Any, rng: Random) -> Any:
    """Return a copy in which a tenth of the strings, and at least one, begin or end with a string of `HOSTILE`."""
    changed = copy.deepcopy(values)
    texts = [place for place in _places(changed) if isinstance(_at(changed, place), str)]
    chosen = [texts[i] for i in rng.integers(0, len(texts), 1 + len(texts) // 10)] if texts else []
    for place in chosen:
        parent, text = _at(changed, place[:-1]), str(_at(changed, place))
        parent[place[-1]] = [HOSTILE + text, text + HOSTILE, HOSTILE][rng.integers(3)]
    return changed


def of_text(text: str, rng: Random) -> str:
    """Return a text in which characters are removed, repeated, exchanged or inserted at one to three positions."""
    for _ in range(int(rng.integers(1, 4))):
        a, b = sorted(int(x) for x in rng.integers(0, len(text) + 1, 2))
        b = min(b, a + int(rng.integers(1, 40)))
        kind = rng.integers(5)
        if kind == 0:
            text = text[:a] + text[b:]
        elif kind == 1:
            text = text[:b] + text[a:]
        elif kind == 2:
            text = text[:a] + SCRAPS[rng.integers(len(SCRAPS))] + text[a:]
        elif kind == 3:
            text = text[:a] + chr(int(rng.integers(1, 0x2FFF))) + text[a + 1 :]
        else:
            text = text[:a] + text[a:b][::-1] + text[b:]
    return text


def of_bytes(content: bytes, rng: Random) -> bytes:
    """Return bytes in which bits are flipped, or a section is removed, repeated, set to zero or replaced by random
    bytes.
    """
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        if not changed:
            break
        a = int(rng.integers(len(changed)))
        b = min(len(changed), a + int(2 ** rng.integers(0, 13)))
        kind = rng.integers(6)
        if kind <= 1:
            changed[a] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            del changed[a:b]
        elif kind == 3:
            changed[a:a] = changed[a:b]
        elif kind == 4:
            changed[a:b] = bytes(b - a)
        else:
            b = min(b, a + 16)
            changed[a:b] = rng.bytes(b - a)
    return bytes(changed)


def encoded(text: str) -> bytes:
    """Encode a text in UTF-8.  A lone surrogate becomes bytes that no decoder accepts."""
    return text.encode("utf-8", "surrogatepass")


def _scaled(number: float, rng: Random) -> float:
    try:
        return float(number) * float(rng.choice([-1, 0, 1e-9, 1e9, 1.5]))
    except OverflowError:
        return math.inf


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key in value:
            found += _places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(len(value), 8)):
            found += _places(value[index], (*path, index))
    return found


class Wrong(Exception):
    """The exception for undocumented behaviour of dpaudit.

    The message describes the behaviour.  Reading an input and rejecting it with a documented error are both correct.
    """


class Target(ABC):
    """A kind of input that is mutated.

    Attributes:
        name: Name of the kind of input in the summary.
        share: Share of all mutations that are made of this kind of input.
        seconds: Maximum processor time for one input, in seconds.
    """

    name: str
    share: float
    seconds: float = 2.0

    def __init__(self, folder: Path) -> None:
        """Create the valid files that are mutated.

        Args:
            folder: An empty folder, which is also the current folder.
        """
        self.folder = folder
        self.tried: object = None  # the last mutated input, for the message about a failure

    @abstractmethod
    def attempt(self, rng: Random) -> str:
        """Mutate an input, pass it to dpaudit, and return the outcome, such as "read" or "refused".

        Any exception that this method raises counts as a failure.
        """
