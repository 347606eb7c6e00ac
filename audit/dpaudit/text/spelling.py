"""What a misspelt word was perhaps meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that looks most like this one, or "" if none looks like it."""
    return next(iter(difflib.get_close_matches(word[:100].lower(), list(known), n=1, cutoff=0.6)), "")


def hint(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return "did you mean ...?" if a known word looks like this one, and `otherwise` if none does."""
    meant = nearest(word, known)
    return f"did you mean {meant}?" if meant else otherwise
