"""The file of a saved `OnlineAudit`."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from dpaudit.mechanisms.wire import HEADER, Unsendable, frame, unframe
from dpaudit.text.foreign_files import MAX_FILE_BYTES, read_foreign
from dpaudit.text.printable import shortened
from dpaudit.values import Foreign

FORMAT = "dpaudit-online/2"
MEMORY = 5_000
"""Number of latest outputs that are kept when memory is trimmed; up to twice as many are saved.

When a stream is loaded, the score is refitted to the saved outputs.  The evidence is saved completely.
"""

PATH = 400  # maximum number of interim analyses in the history of a result

_Whole = Annotated[int, Field(ge=0, le=2**53)]


class State(BaseModel):
    """The content of a file; the names are those of `OnlineAudit`'s attributes."""

    format: Literal["dpaudit-online/2"]
    claim: str
    confidence: float
    attacks: str | list[str]
    seed: int
    steps: _Whole
    unreadable: _Whole
    bins: int
    bets: list[float]  # see `stream_bets.reference_wealth`
    counts: list[list[tuple[int, int]]]
    peak: list[list[tuple[int, int]]]  # counts at the largest wealth
    refuted_at: _Whole | None
    path: list[tuple[_Whole, float]]
    outputs: list[tuple[Literal[0, 1], str]]


def read_state(path: str | Path) -> State:
    """Read a file."""
    try:
        return State.model_validate_json(read_foreign(path, MAX_FILE_BYTES))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(shortened(f"{place}: {first['msg']}")) from None


def saved(outputs: Sequence[tuple[int, Foreign]]) -> list[tuple[int, str]]:
    """Return the latest outputs as text: as many as fit into a file that `read_state` accepts."""
    found: list[tuple[int, str]] = []
    letters = 0
    for side, output in reversed(outputs):
        text = encoded(output)
        letters += len(text)
        if letters > MAX_FILE_BYTES // 2:
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
    return unframe(base64.b64decode(text, validate=True))
