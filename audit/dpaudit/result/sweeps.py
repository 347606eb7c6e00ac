"""The outcome of `dpaudit sweep`: for each cell of a catalogue, what was claimed, certified and refuted."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import ClassVar

from dpaudit.text.foreign_files import read_foreign
from dpaudit.text.printable import one_line, shortened
from dpaudit.values import Foreign, JsonObject

FORMAT = "dpaudit-sweep/1"

MAX_SWEEP_BYTES = 2**28
"""Maximum size of the file of a sweep, in bytes."""

_MAX_KEYS = 64  # maximum number of keys of an object
_MAX_VERSIONS = 1_000
_PART = 100  # number of cells that are validated together; pydantic takes some 2 kB for each wrong key
_FILE_NAME = re.compile(r"\w[\w .+-]{0,199}")
_MAX_SECONDS = 1e9  # of one cell
_MAX_RUNS = 2**53  # of one cell
_STRICT = {"extra": "forbid", "strict": True}  # settings of pydantic, which checks the types of a file
_MAX_PROBLEM = 200  # maximum number of characters of a message about a file


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

    def __post_init__(self) -> None:
        for name in (self.name, self.title):
            if not _FILE_NAME.fullmatch(name):
                raise ValueError(f"the name of a cell must be a file name, got {name[:80]!r}")
        numbers = (self.trials, self.rounds, self.seconds, self.last_seconds, self.ratio or 0.0)
        if not all(0 <= number < math.inf for number in numbers):
            raise ValueError(f"cell {self.name}: numbers must be finite and at least 0")
        if max(self.trials, self.rounds) > _MAX_RUNS:
            raise ValueError(f"cell {self.name}: trials and rounds must be at most {_MAX_RUNS:,}")
        if max(self.seconds, self.last_seconds) > _MAX_SECONDS:
            raise ValueError(f"cell {self.name}: seconds must be at most {_MAX_SECONDS:g}")
        if self.p_value is not None and not 0 <= self.p_value <= 1:
            raise ValueError(f"cell {self.name}: p_value must be between 0 and 1, got {self.p_value}")
        if (self.state is CellState.NOT_AUDITED) != (self.p_value is None):
            raise ValueError(f"cell {self.name}: p_value must be given unless the state is 'not audited'")

    @property
    def full(self) -> bool:
        """Whether one more round could exceed a limit above, which no real sweep comes near."""
        return self.rounds >= _MAX_RUNS or max(self.seconds, self.last_seconds) > _MAX_SECONDS / 2


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

    def __post_init__(self) -> None:
        if not self.versions or not self.cells:
            raise ValueError("a sweep must have at least one version and one cell")
        for name in (self.library, self.package, self.catalogue, *self.versions):
            if not name or name != one_line(name):
                raise ValueError(f"a name must be one line of printable characters, got {name[:80]!r}")
        names = [cell.name.casefold() for cell in self.cells]
        if len(set(names)) < len(names):
            raise ValueError("two cells of a sweep have the same name")
        if unknown := {cell.version for cell in self.cells} - set(self.versions):
            raise ValueError(f"a cell has the version {min(unknown)[:40]!r}, which the sweep does not state")
        if not 0 < self.confidence < 1 or not 0 < self.false_alarm <= 1:
            raise ValueError("confidence and false_alarm must be probabilities")
        if not all(0 <= number < math.inf for number in (self.seconds, self.spent, self.answer_seconds)):
            raise ValueError("seconds must be finite and at least 0")
        if not 0 < self.answer_seconds <= 60:
            raise ValueError(f"answer_seconds must be above 0 and at most 60, got {self.answer_seconds:g}")
        if not re.fullmatch(r"[0-9a-f]{1,32}", self.number):
            raise ValueError(f"the number of the command must be hexadecimal, got {self.number[:40]!r}")

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
            values = json.loads(read_foreign(file, MAX_SWEEP_BYTES))
            stated = values.pop("format", None) if isinstance(values, dict) else None
            if stated != FORMAT:
                raise ValueError(f"its format is {stated!r:.60}, and this version of dpaudit reads {FORMAT}")
            _check_lengths(values)
            cells, one = values.get("cells"), TypeAdapter(tuple[SweptCell, ...])
            for start in range(0, len(cells) if isinstance(cells, list) else 0, _PART):
                one.validate_json(json.dumps(cells[start : start + _PART]))
            found: Sweep = TypeAdapter(cls).validate_json(json.dumps(values))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            words = shortened(f"{where}: {first['msg']}".removeprefix(": "), _MAX_PROBLEM)
            raise ValueError(f"{file} is not the outcome of a sweep: {words}") from None
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file} is not the outcome of a sweep: {shortened(str(error), _MAX_PROBLEM)}") from None
        return found


def _check_lengths(values: Mapping[str, Foreign]) -> None:
    """Raise ValueError if a part of a file has more entries than dpaudit writes; cells may be many.

    pydantic keeps every wrong entry, so the lengths are limited before the validation.
    """
    cells = values.get("cells")
    for one in (values, *(cells if isinstance(cells, list) else ())):
        inside = one.get("values") if isinstance(one, dict) else None
        for mapping in (one, inside):
            if isinstance(mapping, dict) and len(mapping) > _MAX_KEYS:
                raise ValueError(f"an object has {len(mapping):,} keys; the maximum is {_MAX_KEYS}")
    versions = values.get("versions")
    if isinstance(versions, list) and len(versions) > _MAX_VERSIONS:
        raise ValueError(f"it states {len(versions):,} versions; the maximum is {_MAX_VERSIONS:,}")


@dataclass(frozen=True, slots=True)
class Changed:
    """A cell that differs between two versions."""

    title: str
    before: SweptCell | None
    after: SweptCell | None


def changes(sweep: Sweep, version: str) -> list[Changed]:
    """Return the cells whose verdicts differ between the first version and another, and new and missing cells."""
    old, new = (
        {cell.title: cell for cell in sweep.cells if cell.version == one} for one in (sweep.versions[0], version)
    )
    both = [Changed(title, old.get(title), new.get(title)) for title in dict.fromkeys([*old, *new])]
    return [one for one in both if one.before is None or one.after is None or one.before.state is not one.after.state]
