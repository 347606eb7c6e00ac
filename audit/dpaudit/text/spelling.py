"""Suggestions for misspelt words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most similar to `word`; "" if none is similar."""
    return next(iter(difflib.get_close_matches(word[:100].lower(), list(known), n=1, cutoff=0.6)), "")


def hint(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return a suggestion for a misspelt word.

    Args:
        word: The misspelt word.
        known: The known words.
        otherwise: The text to return if no known word is similar.

    Returns:
        "did you mean KNOWN?" or `otherwise`.
    """
    meant = nearest(word, known)
    return f"did you mean {meant}?" if meant else otherwise
