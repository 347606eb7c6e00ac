"""Ids of the headings of a page, so that links lead to a section."""

from __future__ import annotations

import re
import unicodedata

_MAX = 60  # maximum number of characters of an id without the id of its part


class Anchors:
    """Makes ids that are unique on a page."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def new(self, title: str, within: str = "") -> str:
        """Return an id of small letters, digits, hyphens and slashes."""
        plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
        words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_MAX].strip("-") or "section"
        first = f"{within}/{words}" if within else words
        name, number = first, 2
        while name in self._used:
            name, number = f"{first}-{number}", number + 1
        self._used.add(name)
        return name
