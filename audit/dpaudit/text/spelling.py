"""Suggestions for misspelt words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most similar to this one, or "" if none is similar."""
    return next(iter(difflib.get_close_matches(word[:100].lower(), list(known), n=1, cutoff=0.6)), "")


def hint(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return "did you mean ...?" if a known word is similar to this one, and `otherwise` if none is."""
    meant = nearest(word, known)
    return f"did you mean {meant}?" if meant else otherwise
