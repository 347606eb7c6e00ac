"""The outcome of `dpaudit sweep`: for each cell of a catalogue, what was claimed, certified and refuted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import ClassVar

from dpaudit.text import read_foreign, shortened
from dpaudit.values import JsonObject

FORMAT = "dpaudit-sweep/1"

_STRICT = {"extra": "forbid", "strict": True}  # settings of pydantic, which checks the types of a file


class CellState(Enum):
    """What the audit of a cell has shown."""

    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"
    NO_VIOLATION = "no violation found"  # this does not show that the claim is true
    NOT_AUDITED = "not audited"  # there is no result; `reason` says why


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptCell:
    """One audit of a sweep."""

    __pydantic_config__: ClassVar[Mapping[str, object]] = _STRICT

    name: str
    title: str
    constructor: str
    values: dict[str, str]
    version: str
    state: CellState
    reason: str = ""
    closed: bool = False
    trials: int = 0
    rounds: int = 0
    seconds: float = 0.0
    last_seconds: float = 0.0
    p_value: float | None = None
    claim: str = ""
    certified: str = ""
    ratio: float | None = None
    detectable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The outcome of `dpaudit sweep`.

    If all claims are true, the probability that the command reports any violation is at most `false_alarm`; see
    `engine.next_cell`.
    """

    __pydantic_config__: ClassVar[Mapping[str, object]] = _STRICT

    library: str
    package: str
    catalogue: str
    versions: tuple[str, ...]
    confidence: float
    false_alarm: float
    shared: bool
    number: str
    seconds: float
    spent: float
    answer_seconds: float
    interrupted: bool
    cells: tuple[SweptCell, ...]

    def of(self, *states: CellState) -> list[SweptCell]:
        """Return the cells in one of the states."""
        return [cell for cell in self.cells if cell.state in states]

    def to_dict(self) -> JsonObject:
        """Return the outcome as plain JSON values, without the evidence of the audits."""
        values = asdict(self)
        for cell in values["cells"]:
            cell["state"] = cell["state"].value
        return {"format": FORMAT, **values}

    @classmethod
    def from_json(cls, file: Path) -> Sweep:
        """Read a file that holds `to_dict`."""
        from pydantic import TypeAdapter, ValidationError

        try:
            values = json.loads(read_foreign(file))
            stated = values.pop("format", None) if isinstance(values, dict) else None
            if stated != FORMAT:
                raise ValueError(f"its format is {stated!r:.60}, and this version of dpaudit reads {FORMAT}")
            found: Sweep = TypeAdapter(cls).validate_json(json.dumps(values))
        except ValueError as error:
            words = str(error)
            if isinstance(error, ValidationError):
                first = error.errors()[0]
                words = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise ValueError(f"{file} is not the outcome of a sweep: {shortened(words)}") from None
        return found
