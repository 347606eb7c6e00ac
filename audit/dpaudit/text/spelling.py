"""Suggestions for misspelt words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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
