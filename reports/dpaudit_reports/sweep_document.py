"""The report of a sweep: its cells by constructor, the most serious first, and a map of constructors by parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial

from dpaudit.result.sweeps import CellState, Sweep, SweptCell
from dpaudit.rounding import lower, percent_at_most, upper
from dpaudit.text import NO_RESULT, SIGNS, Reason, Sign, one_line, quoted, shortened
from dpaudit_reports.blocks import (
    Block,
    Column,
    Document,
    Heading,
    Items,
    Paragraph,
    Picture,
    Span,
    Strong,
    Table,
    Text,
    Verdict,
    first,
    some_of,
)
from dpaudit_reports.figures.bars import PER_LINE, Square, map_svg, sample_svg

_SERIOUS = (CellState.VIOLATION, CellState.INCONCLUSIVE, CellState.NO_VIOLATION, CellState.NOT_AUDITED)
NO_CELL = "no such cell"


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
        return "–"
    if cell.state is CellState.VIOLATION and cell.ratio <= 1:
        return "> 1"
    return lower(cell.ratio, 2, over=1.0)


def refuted_words(cell: SweptCell) -> str:
    """Describe a violation: the values of the cell, the bound, the p-value and the file."""
    p_value = "" if cell.p_value is None else f", p ≤ {upper(cell.p_value)}"
    return one_line(f"{values_of(cell)}: {cell.certified}{p_value}, {cell.trials:,} runs, {cell.name}.json")


def without_verdict(sweep: Sweep, state: CellState) -> list[str]:
    """Return one sentence for each reason why cells have no verdict, the most frequent reason first."""
    groups: dict[str, list[str]] = {}
    for cell in sweep.of(state):
        words = shortened(one_line(cell.reason).strip() or "the reason was not recorded")
        words = quoted(words) if Reason.of(cell.reason).foreign else words
        groups.setdefault(words, []).append(cell.name)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return [f"{_cells(len(names))}: {reason.rstrip('.')} ({some_of(names, 4)})" for reason, names in ordered]


def differences(sweep: Sweep, version: str) -> list[str]:
    """Return one sentence for each cell whose verdict differs between the first version and another."""
    old, new = (
        {c.title: c.state.value for c in sweep.cells if c.version == one} for one in (sweep.versions[0], version)
    )
    both = [(title, old.get(title, NO_CELL), new.get(title, NO_CELL)) for title in dict.fromkeys([*old, *new])]
    return [one_line(f"{title}: {before}, then {after}") for title, before, after in both if before != after]


def promise(sweep: Sweep) -> str:
    """State the joint guarantee of the sweep."""
    number = len(sweep.cells)
    own = "" if sweep.shared else "  Each cell has its own confidence (--each)."
    return (
        f"If all claims of the {number} cells are true, this sweep reports any violation with probability at most "
        f"{percent_at_most(sweep.false_alarm)}, whenever it ends.{own}"
    )


_MEANING = (
    "share: the certified lower bound on the privacy loss, divided by the claimed value, of the worst cell; – means "
    "that the bound is not known.  A share below 1 does not show that a claim is true."
)


def counts(sweep: Sweep) -> str:
    """State how many cells were refuted, were not refuted, and have no verdict."""
    bad, open_, clear, missing = (len(sweep.of(state)) for state in _SERIOUS)
    words = f"{bad} of {_cells(len(sweep.cells))} refuted; no violation found in {clear}; {open_} inconclusive"
    package = f"{sweep.package} {', '.join(sweep.versions)}"
    return f"{package}: {words}; {missing} could not be audited.  {sweep.spent:,.0f} s of runs."


def _cells(number: int) -> str:
    return f"{number} cell{'s' * (number != 1)}"


_LEGEND: tuple[tuple[Square, str], ...] = (
    (Square("no violation found", 0.5), "no violation found; filled up to the certified share of the claim"),
    (Square("violation", 1.0), "violation"),
    (Square("inconclusive"), "inconclusive"),
    (Square("not audited"), "could not be audited"),
)


def sweep_document(sweep: Sweep) -> Document:
    """Return the report of a sweep."""
    rows = rows_of(sweep)
    wide = (Column(title, grow=3) for title in ("Constructor", "Cells", "Axes"))
    columns = *wide, Column("Share", align="right"), Column("Worst cell", grow=2.5)
    front: tuple[Block, ...] = (
        _summary(sweep),
        Paragraph(promise(sweep)),
        *_items("Violations", [refuted_words(cell) for row in rows for cell in row.refuted]),
        Heading("Constructors by parameters"),
        Paragraph(tuple(_legend({cell.state.value for cell in sweep.cells})), quiet=True),
        Table(columns, tuple(_row(row, several=len(sweep.versions) > 1) for row in rows)),
        Paragraph(_MEANING, quiet=True),
        *_items("Inconclusive", without_verdict(sweep, CellState.INCONCLUSIVE)),
        *_items("Not audited", without_verdict(sweep, CellState.NOT_AUDITED)),
        *_versions(sweep),
    )
    title = one_line(f"Sweep of {sweep.package} {sweep.versions[0]}")
    subtitle = one_line(f"{len(sweep.cells)} audits of differential-privacy claims, catalogue {sweep.catalogue}")
    return Document(title, subtitle, None, front, ())


def _summary(sweep: Sweep) -> Verdict:
    bad = sweep.of(CellState.VIOLATION)
    sign = sign_of((bad or sweep.of(CellState.NO_VIOLATION) or sweep.cells)[0])
    title = f"{len(bad)} of {len(sweep.cells)} cells refuted" if bad else "No claim was refuted"
    return Verdict(sign.sign, title, counts(sweep), sign.tone)


def _items(title: str, items: Sequence[str]) -> tuple[Block, ...]:
    if not items:
        return ()
    shown, left_out = first(items, "cells")
    return Heading(title), Items(tuple(shown)), *left_out


def _versions(sweep: Sweep) -> Iterator[Block]:
    for version in sweep.versions[1:]:
        title = one_line(f"Differences between {sweep.versions[0]} and {version}")
        found = differences(sweep, version)
        yield from _items(title, found) if found else (Heading(title), Paragraph("The verdicts agree."))


def _legend(states: Set[str]) -> Iterator[Span]:
    for number, (square, words) in enumerate(entry for entry in _LEGEND if entry[0].state in states):
        yield "; " if number else ""
        yield Picture(partial(sample_svg, square), f"sample: {words}", wide=False)
        yield words
    yield ". Squares: the first axis from left to right, the others downwards."


def _row(row: SweepRow, *, several: bool) -> tuple[Text, ...]:
    name = one_line(f"{row.constructor} {row.version}" if several else row.constructor)
    squares = [[Square(cell.state.value, cell.ratio or 0.0) for cell in line] for line in matrix(row.cells)]
    return (
        (Strong(f"{sign_of(row.worst).sign} "), name),
        (Picture(partial(map_svg, squares), f"{len(row.refuted)} of {len(row.cells)} refuted"),),
        _axes(row.cells),
        share_of(row.worst),
        values_of(row.worst),
    )


def matrix(cells: Sequence[SweptCell]) -> list[list[SweptCell]]:
    """Arrange the cells of a constructor in lines: the first axis from left to right, the others downwards."""
    lines: dict[tuple[tuple[str, str], ...], list[SweptCell]] = {}
    for cell in cells:
        lines.setdefault(tuple(list(cell.values.items())[1:]), []).append(cell)
    return [line[start : start + PER_LINE] for line in lines.values() for start in range(0, len(line), PER_LINE)]


def _axes(cells: Sequence[SweptCell]) -> str:
    axes: dict[str, dict[str, None]] = {}
    for axis, label in (pair for cell in cells for pair in cell.values.items()):
        axes.setdefault(axis, {})[label] = None
    return one_line("; ".join(f"{axis}: {', '.join(labels)}" for axis, labels in axes.items())) or "none"
