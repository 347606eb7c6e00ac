"""What a report can consist of: plain data, free of any page, markup or medium.

A section says WHAT is there; a writer (`pdf`, `html`, `markdown`, `terminal`) decides how it looks.  Every string in
a block is text to be shown as it is; no writer may read markup in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

# --- text


@dataclass(frozen=True, slots=True)
class Strong:
    """Words that carry the message."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Something to type, or a name as a program knows it."""

    text: str


@dataclass(frozen=True, slots=True)
class Math:
    """A short formula in Unicode, "β ≥ f(α)"; its single letters are variables."""

    text: str


@dataclass(frozen=True, slots=True)
class Reference:
    """The name of another part of the document, to be followed where the medium can; the first part is 0."""

    text: str
    part: int


Span: TypeAlias = str | Strong | Code | Math | Reference
Text: TypeAlias = str | tuple[Span, ...]


def with_mathematics(text: str) -> tuple[Span, ...]:
    """Our own text, in which what stands between two dollar signs is mathematics."""
    return tuple(Math(part) if i % 2 else part for i, part in enumerate(text.split("$")))


# --- blocks


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a section.  Level 1 is the highest within one audit, 3 the lowest."""

    text: str
    level: int = 1

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ValueError("a heading must have a text, got none: nothing could lead to it")
        if self.level not in (1, 2, 3):
            raise ValueError(f"a heading must be of level 1, 2 or 3, got {self.level}")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text; a `quiet` one is a note beside the main line."""

    text: Text
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """A list whose order means nothing."""

    items: tuple[Text, ...]
    quiet: bool = False


Tone: TypeAlias = Literal["bad", "clear", "open"]


@dataclass(frozen=True, slots=True)
class Callout:
    """The one thing to read.  Mark and title must say it all in black and white; tone only adds a colour."""

    mark: str  # one character
    title: str
    text: Text
    tone: Tone


@dataclass(frozen=True, slots=True)
class Facts:
    """A handful of short values side by side."""

    rows: tuple[tuple[str, Text], ...]


@dataclass(frozen=True, slots=True)
class KeyValues:
    """Names and values, one a line."""

    rows: tuple[tuple[str, Text], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column; a `grow` of 0 makes it as wide as its text, others share the rest in proportion."""

    title: Text
    align: Literal["left", "right"] = "left"
    grow: float = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header; every row has one text a column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Text, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row must have {len(self.columns)} cells, got {len(row)}: {row}")


@dataclass(frozen=True, slots=True)
class Panel:
    """A drawing of half a page's width; `alt` says in words what it shows."""

    svg: Callable[[], str]  # drawn when a writer asks for it: not every medium shows it
    alt: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels side by side, or one below the other where there is no room, and what they mean."""

    panels: tuple[Panel, ...]
    caption: Text


@dataclass(frozen=True, slots=True)
class Listing:
    """Lines to type."""

    text: str


Block: TypeAlias = Heading | Paragraph | Items | Callout | Facts | KeyValues | Table | Figure | Listing

# --- documents


@dataclass(frozen=True, slots=True)
class Part:
    """Everything about one audit."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A title, what comes before the parts, and the parts.  A single part carries no title of its own."""

    title: str
    subtitle: str
    date: datetime | None  # of the newest result, UTC; never the time of writing
    front: tuple[Block, ...]
    parts: tuple[Part, ...]
