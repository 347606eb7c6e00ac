"""Orders the cells of a sweep by constructor, the most serious first; terminal and document show these rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dpaudit.result.sweeps import CellState, Sweep, SweptCell, changes
from dpaudit.text.printable import one_line, shortened
from dpaudit.text.reasons import FromFile, quoted
from dpaudit.text.rounding import lower, percent_at_most, upper
from dpaudit.text.signs import NO_RESULT, SIGNS, Sign

_SERIOUS = (CellState.VIOLATION, CellState.INCONCLUSIVE, CellState.NO_VIOLATION, CellState.NOT_AUDITED)
_MAX_NAMED = 4  # number of cells that a sentence names
NO_VALUE = "–"


@dataclass(frozen=True, slots=True)
class SweepRow:
    """The cells of one constructor in one version."""

    constructor: str
    version: str
    cells: tuple[SweptCell, ...]

    @property
    def worst(self) -> SweptCell:
        """The cell with the most serious verdict and, among equal ones, with the largest certified share."""
        return min(self.cells, key=_seriousness)

    @property
    def refuted(self) -> list[SweptCell]:
        """The cells whose claims were refuted."""
        return [cell for cell in self.cells if cell.state is CellState.VIOLATION]

    @property
    def audited(self) -> int:
        """The number of cells with a verdict."""
        return sum(cell.state in (CellState.VIOLATION, CellState.NO_VIOLATION) for cell in self.cells)


def rows_of(sweep: Sweep) -> list[SweepRow]:
    """Return a row for each constructor and version, the most serious first."""
    found: dict[tuple[str, str], list[SweptCell]] = {}
    for cell in sweep.cells:
        found.setdefault((cell.constructor, cell.version), []).append(cell)
    rows = [SweepRow(constructor, version, tuple(cells)) for (constructor, version), cells in found.items()]
    return sorted(rows, key=lambda row: _seriousness(row.worst))


def _seriousness(cell: SweptCell) -> tuple[int, float]:
    return _SERIOUS.index(cell.state), -(cell.ratio or 0.0)


def sign_of(cell: SweptCell) -> Sign:
    """Return the sign of a cell's verdict."""
    return NO_RESULT if cell.state is CellState.NOT_AUDITED else SIGNS[cell.state.value]


def values_of(cell: SweptCell) -> str:
    """Return the values of a cell, such as "type i32, scale 0.7"."""
    return one_line(", ".join(f"{axis} {label}" for axis, label in cell.values.items())) or "the only cell"


def share_of(cell: SweptCell) -> str:
    """Return the certified share of the claimed value, rounded down, such as "0.41"; "–" if it is not known."""
    if cell.state is CellState.NOT_AUDITED or cell.ratio is None:
        return NO_VALUE
    if cell.state is CellState.VIOLATION and cell.ratio <= 1:
        return "> 1"
    return lower(cell.ratio, 2, over=1.0)


def refuted_words(cell: SweptCell) -> str:
    """Describe a violation: the values of the cell, the bound, the p-value and the file."""
    p_value = "" if cell.p_value is None else f", p ≤ {upper(cell.p_value)}"
    return one_line(f"{values_of(cell)}: {cell.certified}{p_value}, {cell.trials:,} runs, {cell.name}.json")


def short_reason(reason: str) -> str:
    """Shorten a reason for a report: without the call that a message repeats, and with a maximum length."""
    text = re.sub(r"\\n +.*", "", one_line(reason))
    text = re.sub(r"^(?:calling|loading) .*? raised (?=[A-Z]\w*(?:Error|Exception)?\b)", "", text)
    text = re.sub(r"^[\d,]+ runs per dataset are (too few to see any violation).*", r"the runs are \1", text)
    text = re.sub(r"^start\.py:\w+ \(with [^)]*\) raised ", "", text)
    return shortened(re.sub(r"^LookupError: ", "", text).strip() or "the reason was not recorded")


def without_verdict(sweep: Sweep, state: CellState) -> list[str]:
    """Return one sentence for each reason why cells have no verdict, the most frequent reason first.

    A reason that a resumed sweep has read from `sweep.json` is a quotation, because anybody may have written the file.
    """
    groups: dict[str, list[str]] = {}
    for cell in sweep.of(state):
        short = short_reason(cell.reason)
        words = quoted(short) if isinstance(cell.reason, FromFile) else short
        groups.setdefault(words, []).append(cell.name)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return [f"{_cells(len(names))}: {reason.rstrip('.')} ({_some(names)})" for reason, names in ordered]


def differences(sweep: Sweep, version: str) -> list[str]:
    """Return one sentence for each cell whose verdict differs between the first version and another."""
    found = []
    for one in changes(sweep, version):
        before, after = (cell.state.value if cell else "no such cell" for cell in (one.before, one.after))
        found.append(one_line(f"{one.title}: {before}, then {after}"))
    return found


def promise(sweep: Sweep) -> str:
    """State the joint guarantee of the sweep."""
    number = len(sweep.cells)
    own = "" if sweep.shared else "  Each cell has its own confidence (--each)."
    return (
        f"If all claims of the {number} cells are true, this sweep reports any violation with probability at most "
        f"{percent_at_most(sweep.false_alarm)}, whenever it ends.{own}"
    )


MEANING = (
    "share: the certified lower bound on the privacy loss, divided by the claimed value, of the worst cell; – means "
    "that the bound is not known.  A share below 1 does not show that a claim is true."
)
"""The meaning of the numbers."""


def counts(sweep: Sweep) -> str:
    """State how many cells were refuted, were not refuted, and have no verdict."""
    numbers = {state: len(sweep.of(state)) for state in _SERIOUS}
    words = [
        f"{numbers[CellState.VIOLATION]} of {_cells(len(sweep.cells))} refuted",
        f"no violation found in {numbers[CellState.NO_VIOLATION]}",
        f"{numbers[CellState.INCONCLUSIVE]} inconclusive",
        f"{numbers[CellState.NOT_AUDITED]} could not be audited",
    ]
    return f"{sweep.package} {', '.join(sweep.versions)}: {'; '.join(words)}.  {sweep.spent:,.0f} s of runs."


def _cells(number: int) -> str:
    return f"{number} cell{'s' * (number != 1)}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return one_line(", ".join(names[:_MAX_NAMED]) + more)
