"""Splits a text into parts: the text, its first and last characters, its length, its first numbers, and its words."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from dpaudit.outputs.labels import LISTED, TEXT, label_of
from dpaudit.outputs.named import Parts
from dpaudit.outputs.vectors import vector

_MAX_WORDS = 64
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def text(parts: Parts, name: str, value: str) -> None:
    """Add the parts of a text."""
    if len(value) > TEXT or type(value) is not str:  # a subclass of str may compare its texts in its own way
        _add_text(parts, name, value)
        if len(value) > TEXT:
            vector(parts, name, np.frombuffer(value.encode("utf-8", "replace"), np.uint8).astype(np.float64))
        return
    known = _parts_of_text(name, value)
    parts.labels.update(known.labels)
    parts.numbers.update(known.numbers)
    parts.counts.update(known.counts)


@lru_cache(maxsize=4096)
def _parts_of_text(name: str, text: str) -> Parts:
    """Return the parts of a short text, which often occurs again in another output."""
    parts = Parts()
    _add_text(parts, name, text)
    return parts


def _add_text(parts: Parts, name: str, text: str) -> None:
    parts.labels[name] = label_of(text)
    parts.numbers[f"length of {name}"] = len(text)
    if text:
        parts.labels[f"first character of {name}"], parts.labels[f"last character of {name}"] = text[0], text[-1]
    for index, found in enumerate(_NUMBER.findall(text[:LISTED])[:3]):
        parts.numbers[f"number {index + 1} in {name}"] = float(found)
    for word in _WORD.findall(text[:LISTED])[:_MAX_WORDS]:
        parts.counts[f"word {label_of(word)} in {name}"] = 1
