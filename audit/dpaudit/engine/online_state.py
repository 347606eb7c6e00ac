"""The file of a saved `OnlineAudit`, with the fingerprint of its bets."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from dpaudit.inference.grid import BINS
from dpaudit.inference.sequential.strategy import Strategy
from dpaudit.numerics import Array
from dpaudit.running.wire import HEADER, Unsendable, frame, unframe
from dpaudit.text import MAX_FILE_BYTES, read_foreign, shortened

FORMAT = "dpaudit-online/2"
MEMORY = 5_000  # latest outputs that are kept, for refits, when memory is trimmed; up to twice as many are saved

PATH = 400  # maximum number of interim analyses in the history of a result

_SAME = 1e-9  # relative tolerance of fingerprints; rounding alone changes the wealth by less

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
    bets: list[float]  # see `reference_wealth`
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


def saved(outputs: Sequence[tuple[int, Any]]) -> list[tuple[int, str]]:
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


def encoded(output: Any) -> str:
    """Return an output as text."""
    try:
        return base64.b64encode(frame(output)[HEADER.size :]).decode("ascii")
    except Unsendable as error:
        raise ValueError(f"an output cannot be saved: {error}") from None


def decoded(text: str) -> Any:
    """Return the output that `encoded` wrote."""
    return unframe(base64.b64decode(text, validate=True))


class OtherBets(Exception):
    """Raised if a stream was saved with bets that differ from those of this version of dpaudit."""


def reference_wealth(bets: Strategy, log_prices: Array) -> list[float]:
    """Return the log-wealth of every bet for fixed counts in all bins, which identifies bets and prices."""
    bins = np.arange(BINS)
    counts = np.array([[1 + bins % 7, 1 + bins % 11]], dtype=np.int64)
    (gains,) = bets.gains(log_prices, counts, coin_selected=True)
    return [float(wealth) for wealth in bets.log_weights + gains]


def check_bets(saved: Sequence[float], ours: Sequence[float]) -> None:
    """Refuse different fingerprints: if a stream changes its bets, its wealth is no supermartingale."""
    if len(saved) != len(ours) or not np.allclose(saved, ours, rtol=_SAME, atol=_SAME):
        raise OtherBets(
            "it was saved by a version of dpaudit that places other bets, and a stream that changes its bets is not a "
            "valid test; continue with that version, or begin a new stream (the error probabilities of both add up)"
        )
