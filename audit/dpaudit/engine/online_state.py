"""The file of a saved `OnlineAudit`.  All content is checked, because anybody may have edited the file."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, field_validator, model_validator

from dpaudit.inference.sequential.strategy import log_threshold
from dpaudit.mechanisms.wire import HEADER, Unsendable, frame, unframe
from dpaudit.text.foreign_files import read_foreign
from dpaudit.text.printable import shortened
from dpaudit.values import Foreign

FORMAT = "dpaudit-online/2"
MAX_STATE_BYTES = 2**28  # maximum size of a file
MEMORY = 5_000
"""Number of latest outputs that are kept when memory is trimmed; up to twice as many are saved.

When a stream is loaded, the score is refitted to the saved outputs.  The evidence is saved completely.
"""

PATH = 400  # maximum number of interim analyses in the history of a result
ROUNDING = 1e-6  # tolerance for log-wealth that another version of numpy computed
_MAX_BETS = 10_000  # maximum number of bets, each with one reference value
_MAX_LISTS = 2**15  # maximum number of lists in a file: outputs, points of the path, and bins
_MAX_VALUES = 2**17  # maximum number of values in a file; the claim may hold a curve with thousands of points
_MAX_WORDS = 300  # maximum number of characters of a message about a file

_Whole = Annotated[int, Field(ge=0, le=2**53)]


class State(BaseModel):
    """The content of a file; the names are those of `OnlineAudit`'s attributes."""

    model_config = ConfigDict(strict=True)

    format: str
    claim: str
    confidence: float = Field(gt=0, lt=1)
    attacks: str | list[str]
    seed: int = Field(ge=0)
    steps: _Whole
    unreadable: _Whole
    bins: int
    bets: list[FiniteFloat] = Field(max_length=_MAX_BETS)  # see `stream_bets.reference_wealth`
    counts: list[list[tuple[int, int]]]
    peak: list[list[tuple[int, int]]]  # counts at the largest wealth
    most: FiniteFloat = Field(ge=0)
    refuted_at: _Whole | None
    path: list[tuple[_Whole, FiniteFloat]] = Field(max_length=2 * PATH + 1)
    outputs: list[tuple[Literal[0, 1], str]] = Field(max_length=2 * MEMORY)

    @field_validator("format")
    @classmethod
    def _known(cls, value: str) -> str:
        if value != FORMAT:
            raise ValueError(f"its format is {shortened(value, _MAX_WORDS)!r}")
        return value

    @model_validator(mode="after")
    def _possible(self) -> State:
        steps = [step for step, _ in self.path]
        if max(len(self.outputs), self.unreadable, self.refuted_at or 0, *steps, 0) > self.steps:
            raise ValueError(f"the stream has more outputs or later steps than its {self.steps} steps")
        if sum(count for side in self.counts for _, count in side) > self.steps:
            raise ValueError(f"the stream counts more outputs than its {self.steps} steps")
        beyond = self.most - log_threshold(self.confidence)
        if (self.refuted_at is None and beyond > ROUNDING) or (self.refuted_at is not None and beyond < -ROUNDING):
            raise ValueError(f"a maximum log-wealth of {self.most:g} contradicts refuted_at = {self.refuted_at}")
        return self


def read_state(path: str | Path) -> State:
    """Read a file."""
    text = read_foreign(path, MAX_STATE_BYTES)
    # a small file with millions of lists would fill the memory before pydantic checks the first list
    if text.count("[") > _MAX_LISTS or text.count(",") > _MAX_VALUES:
        raise ValueError(f"it has more than {_MAX_LISTS:,} lists or {_MAX_VALUES:,} values")
    try:
        return State.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        words = first["msg"].removeprefix("Value error, ")
        raise ValueError(shortened(f"{place}: {words}" if place else words, _MAX_WORDS)) from None


def saved(outputs: Sequence[tuple[int, Foreign]]) -> list[tuple[int, str]]:
    """Return the latest outputs as text: as many as fit into a file that `read_state` accepts."""
    found: list[tuple[int, str]] = []
    letters = 0
    for side, output in reversed(outputs):
        text = encoded(output)
        letters += len(text)
        if letters > MAX_STATE_BYTES // 2:
            break
        found.append((side, text))
    return found[::-1]


def encoded(output: Foreign) -> str:
    """Return an output as text."""
    try:
        return base64.b64encode(frame(output)[HEADER.size :]).decode("ascii")
    except Unsendable as error:
        raise ValueError(f"an output cannot be saved: {error}") from None


def decoded(text: str) -> Foreign:
    """Return the output that `encoded` wrote."""
    try:
        return unframe(base64.b64decode(text, validate=True))
    except (RecursionError, MemoryError):
        raise ValueError("an output is nested too deeply or is too large") from None
