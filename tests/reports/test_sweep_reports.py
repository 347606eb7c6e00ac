"""The table and the map of a sweep: order, lines of at most 80 columns, signs without colours, and hostile text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from dpaudit.cli.sweep_cells import facts_of
from dpaudit.result.command_outcomes import CellState, Sweep, SweptCell
from dpaudit_reports import sweep_report, to_pdf
from dpaudit_reports.command_outcomes import matrix, rows_of, share_of
from dpaudit_reports.figures.bars import PER_LINE, Square, map_svg
from dpaudit_reports.formats import Screen
from dpaudit_reports.terminal import document_text

from . import sample

STATES = {
    "v": CellState.VIOLATION,
    "g": CellState.NO_VIOLATION,
    "i": CellState.INCONCLUSIVE,
    "n": CellState.NOT_AUDITED,
}


def cell(name: str, state: str, ratio: float = 0.5, version: str = "1.0", **values: str) -> SweptCell:
    title = "-".join([name, *values.values()])
    return SweptCell(
        name=f"{title}-{version}",
        title=title,
        constructor=name,
        values=values,
        version=version,
        state=STATES[state],
        reason="because" if state in "in" else "",
        p_value=None if state == "n" else 0.001,
        certified="" if state == "n" else "ε ≥ 0.5 / 1",
        ratio=None if state == "n" else ratio,
    )


def sweep(*cells: SweptCell) -> Sweep:
    return Sweep(
        library="pydp",
        package="python-dp",
        catalogue="own.yaml",
        versions=tuple(dict.fromkeys(one.version for one in cells)),
        confidence=0.999,
        false_alarm=0.01,
        shared=True,
        number="ab",
        seconds=60.0,
        spent=12.0,
        answer_seconds=5.0,
        interrupted=False,
        cells=cells,
    )


def text(found: Sweep, screen: Screen) -> str:
    return document_text(sweep_report(found), screen)


MIXED = sweep(
    cell("clear", "g", 0.2, scale="1"),
    cell("clear", "g", 0.9, scale="2"),
    cell("missing", "n"),
    cell("open", "i", 0.95),
    cell("bad", "g", 0.9, T="i32"),
    cell("bad", "v", 1.5, T="f64"),
)


def test_the_most_serious_constructors_come_first() -> None:
    assert [row.constructor for row in rows_of(MIXED)] == ["bad", "open", "clear", "missing"]
    assert [row.worst.values for row in rows_of(MIXED)] == [{"T": "f64"}, {}, {"scale": "2"}, {}]


def test_a_share_is_rounded_down_and_a_violation_is_above_1() -> None:
    assert share_of(cell("a", "g", 0.999)) == "0.99"
    assert share_of(cell("a", "v", 1.0)) == "> 1"
    assert share_of(cell("a", "v", 1.0004)) == "1.0004"
    assert share_of(cell("a", "n")) == "–"


def test_differences_between_versions_name_new_and_missing_cells() -> None:
    found = sweep(cell("a", "g"), cell("b", "g"), cell("a", "v", version="2.0"), cell("c", "g", version="2.0"))
    shown = text(found, Screen(width=80))
    assert "Differences between 1.0 and 2.0" in shown
    for words in ("a: no violation found, then violation", "b: no violation found, then no such cell"):
        assert words in shown
    assert "c: no such cell, then no violation found" in shown


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_line_is_longer_than_the_screen(encoding: str) -> None:
    long = cell("a constructor with a name of many letters", "v", 2.0, axis="x" * 40, other="y" * 40)
    shown = text(sweep(*MIXED.cells, long), Screen(width=80, encoding=encoding))
    assert max(map(cell_len, shown.splitlines())) <= 80
    shown.encode(encoding)
    for word in ("private", "passed", "safe"):
        assert word not in shown


def test_text_of_a_file_cannot_forge_lines() -> None:
    hostile = replace(cell("a", "n"), constructor="x\n▲ y", reason="\x1b[2J\nbad", values={"a\n": "\u202eb"})
    shown = text(sweep(hostile, cell("b", "g")), Screen(width=80))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert not any(line.startswith("▲") for line in shown.splitlines())
    assert to_pdf(sweep_report(sweep(hostile, cell("b", "g")))).startswith(b"%PDF")


def test_signs_of_the_map_differ_without_colours() -> None:
    """The shapes of the four states are different, apart from their fill."""
    drawn = [map_svg([[Square(state.value, 0.5)]]) for state in CellState]
    shapes = {tuple(part for part in ("<path", "l4.4 7.6", "l3.4 3.4", "dasharray") if part in svg) for svg in drawn}
    assert len(shapes) == 4


def test_the_first_axis_goes_from_left_to_right() -> None:
    cells = [cell("a", "g", scale=str(scale), T=kind) for scale in range(3) for kind in ("i", "f")]
    lines = matrix(cells)
    assert [[one.values["scale"] for one in line] for line in lines] == [["0", "1", "2"]] * 2
    assert [line[0].values["T"] for line in lines] == ["i", "f"]
    wide = [cell("a", "g", scale=str(scale)) for scale in range(PER_LINE + 1)]
    assert list(map(len, matrix(wide))) == [PER_LINE, 1]


def test_cells_with_too_few_runs_have_one_reason() -> None:
    assert facts_of(sample.inconclusive())["reason"] == "the runs are too few to see any violation"
