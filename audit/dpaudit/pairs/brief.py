"""Represents a dataset by one short line of text."""

from __future__ import annotations

from dpaudit.values import Dataset

MAX_DATASET = 200
"""Maximum length of the text of a dataset in a result, in characters."""


def brief(dataset: Dataset, most: int = 40) -> str:
    """Return the representation of a dataset as one line of text with at most `most` characters."""
    text = " ".join(repr(dataset).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def is_complete(dataset: Dataset, most: int) -> bool:
    """Return whether the function `brief` returns the complete representation of a dataset.

    The representation is incomplete if `brief` shortens it, or if the `repr` of a long array omits elements.
    """
    text = brief(dataset, most)
    return not text.endswith("…") and "..." not in text
