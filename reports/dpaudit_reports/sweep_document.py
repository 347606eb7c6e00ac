"""The document about a sweep: what was refuted, and a map of constructors by parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import partial

from dpaudit.result.sweeps import CellState, Sweep, SweptCell
from dpaudit.text.printable import one_line
from dpaudit_reports.blocks import (
    Block,
    Callout,
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
)
from dpaudit_reports.figures.sweep_map import PER_LINE, Square, map_svg, sample_svg
from dpaudit_reports.sweep_rows import (
    MEANING,
    SweepRow,
    counts,
    differences,
    promise,
    refuted_words,
    rows_of,
    share_of,
    sign_of,
    values_of,
    without_verdict,
)

_MAX_LISTED = 200  # number of entries of a list; sweep.json holds all
_LEGEND: tuple[tuple[Square, str], ...] = (
    (Square("no violation found", 0.5), "no violation found; filled up to the certified share of the claim"),
    (Square("violation", 1.0), "violation"),
    (Square("inconclusive"), "inconclusive"),
    (Square("not audited"), "could not be audited"),
)


def sweep_document(sweep: Sweep) -> Document:
    """Return the report of a sweep."""
    rows = rows_of(sweep)
    several = len(sweep.versions) > 1
    front: tuple[Block, ...] = (
        _summary(sweep),
        Paragraph(promise(sweep)),
        *_items("Violations", [refuted_words(cell) for row in rows for cell in row.refuted]),
        Heading("Constructors by parameters"),
        Paragraph(tuple(_legend({cell.state.value for cell in sweep.cells})), quiet=True),
        _map(rows, several=several),
        Paragraph(f"{MEANING}  Squares: the first axis from left to right, the others downwards.", quiet=True),
        *_items("Inconclusive", without_verdict(sweep, CellState.INCONCLUSIVE)),
        *_items("Not audited", without_verdict(sweep, CellState.NOT_AUDITED)),
        *_versions(sweep),
    )
    title = one_line(f"Sweep of {sweep.package} {sweep.versions[0]}")
    subtitle = one_line(f"{len(sweep.cells)} audits of differential-privacy claims, catalogue {sweep.catalogue}")
    return Document(title, subtitle, None, front, ())


def _summary(sweep: Sweep) -> Callout:
    bad = sweep.of(CellState.VIOLATION)
    clear = sweep.of(CellState.NO_VIOLATION)
    sign = sign_of(bad[0] if bad else clear[0] if clear else sweep.cells[0])
    title = f"{len(bad)} of {len(sweep.cells)} cells refuted" if bad else "No claim was refuted"
    return Callout(sign.sign, title, counts(sweep), sign.tone)


def _items(title: str, items: Sequence[str]) -> tuple[Block, ...]:
    if not items:
        return ()
    more = len(items) - _MAX_LISTED
    return Heading(title), Items((*items[:_MAX_LISTED], *([f"and {more} more"] if more > 0 else [])))


def _versions(sweep: Sweep) -> Iterator[Block]:
    for version in sweep.versions[1:]:
        both = one_line(f"{sweep.versions[0]} and {version}")
        found = differences(sweep, version)
        yield Heading(f"Differences between {both}")
        if not found:
            yield Paragraph("The verdicts agree.")
        else:
            yield Items(tuple(found[:_MAX_LISTED]))


def _legend(states: Set[str]) -> Iterator[Span]:
    """Yield a sample of each state that occurs, with its meaning."""
    for number, (square, words) in enumerate(entry for entry in _LEGEND if entry[0].state in states):
        yield "; " if number else ""
        yield Picture(partial(sample_svg, square), f"sample: {words}", wide=False)
        yield words
    yield "."


def _map(rows: Sequence[SweepRow], *, several: bool) -> Table:
    columns = (
        Column("Constructor", grow=3),
        Column("Cells", grow=3),
        Column("Axes", grow=3),
        Column("Share", align="right"),
        Column("Worst cell", grow=2.5),
    )
    return Table(columns, tuple(_row(row, several=several) for row in rows))


def _row(row: SweepRow, *, several: bool) -> tuple[Text, ...]:
    name = one_line(f"{row.constructor} {row.version}" if several else row.constructor)
    sign = sign_of(row.worst)
    lines = matrix(row.cells)
    words = f"{len(row.refuted)} of {len(row.cells)} refuted"
    return (
        (Strong(f"{sign.sign} "), name),
        (Picture(partial(map_svg, [[_square(cell) for cell in line] for line in lines]), words),),
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
    for cell in cells:
        for axis, label in cell.values.items():
            axes.setdefault(axis, {})[label] = None
    return one_line("; ".join(f"{axis}: {', '.join(labels)}" for axis, labels in axes.items())) or "none"


def _square(cell: SweptCell) -> Square:
    return Square(cell.state.value, cell.ratio or 0.0)
