"""The blocks of a report: plain data that does not depend on pages, markup or the medium.

A section selects the content, and a writer decides the appearance.  No writer may interpret markup in a string.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias, TypeVar

from dpaudit.rounding import count

# --- text


@dataclass(frozen=True, slots=True)
class Strong:
    """Emphasised words."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text to type, or a name in a program."""

    text: str


@dataclass(frozen=True, slots=True)
class Math:
    """A short formula in Unicode, such as "β ≥ f(α)".  Single letters are variables."""

    text: str


@dataclass(frozen=True, slots=True)
class Reference:
    """The name of another part of the document, with a link if the medium has links.  The first part has number 0."""

    text: str
    part: int


@dataclass(frozen=True, slots=True)
class Picture:
    """A small drawing within text.  Writers without drawings show `text` instead."""

    svg: Callable[[], str]  # called by writers that show drawings
    text: str  # describes the drawing in words
    wide: bool = True  # whether the drawing is as wide as the column of its table; otherwise as high as a letter


Span: TypeAlias = str | Strong | Code | Math | Reference | Picture
Text: TypeAlias = str | tuple[Span, ...]


def with_mathematics(text: str) -> tuple[Span, ...]:
    """Return a text as spans, with mathematics between two dollar signs."""
    return tuple(Math(part) if i % 2 else part for i, part in enumerate(text.split("$")))


def spans_of(text: Text) -> tuple[Span, ...]:
    """Return the spans of a text."""
    return (text,) if isinstance(text, str) else text


def flat(text: Text) -> str:
    """Return a text without its markup."""
    return "".join(span if isinstance(span, str) else span.text for span in spans_of(text))


# --- blocks


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a section.  Within one audit, level 1 is the highest and level 3 the lowest."""

    text: str
    level: int = 1


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text.  A `quiet` paragraph is a note in smaller or fainter type."""

    text: Text
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """A list, which is numbered if its items are steps."""

    items: tuple[Text, ...]
    quiet: bool = False
    numbered: bool = False


Tone: TypeAlias = Literal["bad", "clear", "open"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The main message.  Mark and title must be clear in black and white, because the tone only adds a colour."""

    mark: str  # one character
    title: Text
    text: Text
    tone: Tone


@dataclass(frozen=True, slots=True)
class Number:
    """A number, or a word, in large type, and what it means in small type."""

    value: Text
    meaning: Text
    tone: Tone | None = None


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers side by side."""

    cells: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and sentences, listed vertically."""

    rows: tuple[tuple[str, Text], ...]


@dataclass(frozen=True, slots=True)
class KeyValues:
    """Names and values, one pair on each line."""

    rows: tuple[tuple[str, Text], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: Text
    align: Literal["left", "right"] = "left"
    grow: float = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header; every row has one text for each column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Text, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row must have {len(self.columns)} cells, got {len(row)}: {row}")


@dataclass(frozen=True, slots=True)
class Hint:
    """Words that a screen shows when the pointer is over a place of a drawing."""

    x: float  # place as a fraction of the drawing's width, from the left
    y: float  # place as a fraction of the drawing's height, from the top
    text: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A drawing of half a page's width; `alt` describes it in words."""

    svg: Callable[[], str]  # called by writers that show drawings
    alt: str
    title: str = ""
    hints: Callable[[], tuple[Hint, ...]] | None = None  # called by writers for screens
    wide: Callable[[], str] | None = None  # the same drawing for a whole page's width


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels with a common caption.  The panels stand side by side, or on a narrow medium one below the other."""

    panels: tuple[Panel, ...]
    caption: Text
    columns: int = 2  # number of panels side by side; one panel alone has the caption to its right, unless it is wide


@dataclass(frozen=True, slots=True)
class Listing:
    """Lines of code or of a config, shown as they are typed."""

    text: str


@dataclass(frozen=True, slots=True)
class Columns:
    """Two columns of blocks, one below the other on a narrow medium."""

    left: tuple[Block, ...]
    right: tuple[Block, ...]
    share: float = 0.5  # of the left column in the width


@dataclass(frozen=True, slots=True)
class NewPage:
    """What follows begins a new page, on media with pages."""


@dataclass(frozen=True, slots=True)
class Part:
    """The blocks about one audit."""

    title: str
    blocks: tuple[Block, ...]
    mark: str = ""  # the sign and the word of the verdict; "" if they are not known
    tone: Tone | None = None


Block: TypeAlias = (
    Heading | Paragraph | Items | Verdict | Numbers | Facts | KeyValues | Table | Figure | Listing | Columns | NewPage
)

# --- documents


@dataclass(frozen=True, slots=True)
class Document:
    """A title, front matter, and the parts.  If there is only one part, its title is not shown."""

    title: str
    subtitle: str
    date: datetime | None  # date of the newest result, UTC, not the time of writing
    front: tuple[Block, ...]
    parts: tuple[Part, ...]
    footer: str = "dpaudit"  # text at the foot of each page; identifies a page that was separated from the rest
    back: tuple[Block, ...] = ()  # follows the parts
    dense: bool = False  # whether short parts share a page


T = TypeVar("T")

MAX_ENTRIES = 500  # of a list or table in a report; audits have far fewer, and a PDF of 20,000 rows would take minutes


def first(entries: Sequence[T], what: str) -> tuple[Sequence[T], tuple[Paragraph, ...]]:
    """Return the entries to show, and a sentence about the omitted entries."""
    if len(entries) <= MAX_ENTRIES:
        return entries, ()
    shown = f"{count(MAX_ENTRIES)} of {count(len(entries))}"
    return entries[:MAX_ENTRIES], (Paragraph(f"These are the first {shown} {what}; the result file has all of them."),)


def bare(words: str) -> str:
    """Return a number without its sign "at least" or "at most"."""
    return words.lstrip("≥≤\u00a0")


def some_of(names: Sequence[str], most: int = 5, more: str = "more") -> str:
    """Return the first names, and the number of the others, for a sentence."""
    others = f" and {len(names) - most} {more}" if len(names) > most else ""
    return ", ".join(names[:most]) + others
