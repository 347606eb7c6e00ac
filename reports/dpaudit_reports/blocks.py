"""What a report can consist of: plain data, free of any page, markup or medium.

A section says WHAT is there; a writer (today `pdf`) decides how it looks.  Every string in a block is text
to be shown as it is; no writer may read markup in it.
"""

from __future__ import annotations

from dataclasses import dataclass
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


Span: TypeAlias = str | Strong | Code | Math
Text: TypeAlias = str | tuple[Span, ...]

# --- blocks


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a section.  Level 1 is the highest within one audit."""

    text: str
    level: int = 1


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
class Figure:
    """A drawing; `alt` says in words what it shows."""

    svg: str
    alt: str
    caption: Text


@dataclass(frozen=True, slots=True)
class Listing:
    """Lines to type."""

    text: str


Block: TypeAlias = Heading | Paragraph | Items | Callout | Facts | KeyValues | Table | Figure | Listing
