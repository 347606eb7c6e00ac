"""The outcome of `dpaudit sweep` in a terminal: a row for each constructor, violations first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from dpaudit.result.sweeps import CellState, Sweep
from dpaudit.text.printable import encodable
from dpaudit_reports.formats.facts import Screen
from dpaudit_reports.formats.table import drawn, wrapped
from dpaudit_reports.sweep_document import (
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

_GAP = 2


def text(sweep: Sweep, screen: Screen) -> str:
    """Return the table of constructors, cells without a verdict, differences of versions, and the guarantee."""
    rows = rows_of(sweep)
    lines = [*([Text()] if screen.terminal else []), *_table(rows, screen, several=len(sweep.versions) > 1)]
    notes = [MEANING, counts(sweep)]
    lines += [part for words in notes for part in (Text(), *_prose(words, screen))]
    for title, state in (("Inconclusive", CellState.INCONCLUSIVE), ("Not audited", CellState.NOT_AUDITED)):
        lines += _listed(f"{title}:", without_verdict(sweep, state), screen)
    for version in sweep.versions[1:]:
        found = differences(sweep, version)
        both = f"{sweep.versions[0]} and {version}"
        shown = found[:40] + ["and more"] * bool(found[40:])
        none = [Text(), *_prose(f"The verdicts of {both} agree.", screen)]
        lines += _listed(f"Verdicts of {both} differ in {len(found)} cells:", shown, screen) if found else none
    lines += [Text(), *_prose(promise(sweep), screen)]
    return drawn(lines, screen)


def _table(rows: Sequence[SweepRow], screen: Screen, *, several: bool) -> Iterator[Text]:
    names = [row.name(several=several) for row in rows]
    width = min(max(map(cell_len, [*names, "constructor"])), 30)  # a longer name is wrapped
    columns = ("cells", "refuted", "share")
    used = 2 + width + sum(_GAP + max(7, len(column)) for column in columns) + _GAP
    room = None if screen.width is None else max(screen.width - used, 12)
    header = ["  " + "constructor".ljust(width), *(column.rjust(7) for column in columns), "worst cell"]
    yield Text((" " * _GAP).join(header), style="bold")
    yield Text(encodable("─", screen.encoding) * (screen.width or used + 30), style="dim")
    for row, name in zip(rows, names, strict=True):
        yield from _row(row, name, width, room, screen)


def _row(row: SweepRow, name: str, width: int, room: int | None, screen: Screen) -> Iterator[Text]:
    sign = sign_of(row.worst)
    first, *more = wrapped(encodable(name, screen.encoding), width)
    worst, *others = wrapped(encodable(values_of(row.worst), screen.encoding), room)
    line = Text()
    line.append(f"{encodable(sign.sign, screen.encoding)} ", sign.style)
    line.append(first + " " * (width - cell_len(first)))
    share = encodable(share_of(row.worst), screen.encoding)
    numbers = f"{row.audited}/{len(row.cells)}", str(len(row.refuted)), share
    for number in numbers:
        line.append(" " * _GAP + number.rjust(7))
    line.append(" " * _GAP + worst)
    yield line
    indent = 2 + width + len(numbers) * (_GAP + 7) + _GAP
    for index in range(max(len(more), len(others))):
        left = more[index] if index < len(more) else ""
        right = others[index] if index < len(others) else ""
        yield Text((f"  {left}".ljust(indent) + right).rstrip())
    for cell in row.refuted:
        space = None if screen.width is None else max(screen.width - 4, 1)
        for part in wrapped(encodable(refuted_words(cell), screen.encoding), space):
            yield Text("    " + part, style=sign.style)


def _listed(title: str, items: Sequence[str], screen: Screen) -> list[Text]:
    if not items:
        return []
    space = None if screen.width is None else max(screen.width - 2, 1)
    parts = [part for item in items for part in wrapped(encodable(item, screen.encoding), space)]
    return [Text(), Text(title), *(Text("  " + part) for part in parts)]


def _prose(words: str, screen: Screen) -> list[Text]:
    return [Text(part) for part in wrapped(encodable(words, screen.encoding), screen.width)]
