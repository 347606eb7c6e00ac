"""Reports of several results in a notebook."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit_reports.blocks import Document
from dpaudit_reports.html import fragment


@dataclass(frozen=True, repr=False)
class Shown:
    """A document that a notebook displays.  `print` shows its title and its number of parts."""

    document: Document

    def __repr__(self) -> str:
        parts = len(self.document.parts)
        return f"<{self.document.title}{f', {parts} parts' if parts > 1 else ''}>"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook displays."""
        return fragment(self.document)
