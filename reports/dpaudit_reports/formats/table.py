"""The table for a terminal: one line for each audit, and further lines for columns that do not fit.

No text is truncated.  Columns that do not fit move below their audit, the longest columns first, and show their names
there.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from dpaudit.result.values import Verdict
from dpaudit.rounding import count
from dpaudit.text import encodable, one_line
from dpaudit_reports.claimed import label
from dpaudit_reports.formats.facts import Audited, Run, Screen, certified, detectable, why
from dpaudit_reports.sections.summary import p_value
from dpaudit_reports.verdicts import confirmation, fresh


def wrapped(text: str, width: int | None) -> list[str]:
    """Break text into lines of a maximum width, after spaces, or else anywhere."""
    if width is None or cell_len(text) <= width:
        return [text]
    return [line.plain.rstrip(" ") for line in Text(text).wrap(Console(), width)]


def packed(items: Sequence[str], separator: str, width: int | None) -> list[str]:
    """Join as many items on each line as fit; an item that is longer than a line is wrapped."""
    lines: list[str] = []
    for item in items:
        if lines and (width is None or cell_len(lines[-1] + separator + item) <= width):
            lines[-1] += separator + item
        else:
            lines += wrapped(item, width)
    return lines


_GAP, _INDENT = 2, 4
_MIN_NAME = 24  # in character cells; names are wrapped to this width before another column moves below
_LONG = ("claim", "certified / claimed", "detectable (90 %)")
_MOVES = (_LONG, ("as expected",), ("p-value",), ("runs",), ("audit",))  # columns that move below, in this order
_RIGHT = {"runs", "p-value"}
_NO_VALUE = "–"
_LEGEND = {
    "runs": "runs: number of runs on each dataset.",
    "p-value": "p-value: – means no evidence against the claim.",
    "certified / claimed": "certified: a lower bound on the mechanism's parameter; claimed: the claim's upper bound.",
    "detectable (90 %)": "detectable: this violation would have been found with 90 % probability, if the mechanism "
    "has exactly this trade-off curve and the attack is optimal.",
}
_NO_SIZE = "An audit stops at its first proof of a violation, so the loss may be much larger."


@dataclass(frozen=True, slots=True)
class _Row:
    cells: dict[str, str]  # text of each cell, by the column's name
    style: str  # style of the verdict
    expected: bool | None
    below: str  # text that always stands below the audit


def table_text(run: Run, screen: Screen) -> str:
    """Return the table, a legend and the sentence about all audits together; terminals also get colours."""
    reported = [audited for audited in run.audits if audited.result is not None or audited.failed]
    if not reported:
        return ""
    rows = [_row(audited, screen.encoding) for audited in reported]
    nothing = {"", encodable(_NO_VALUE, screen.encoding)}
    columns = [name for name in rows[0].cells if any(row.cells[name] not in nothing for row in rows)]
    beside = _beside(columns, rows, screen.width)
    widths = _widths(beside, rows, screen.width)
    rule = Text(encodable("─", screen.encoding) * _total(widths), style="dim")
    lines = [*([Text()] if screen.terminal else []), _header(widths), rule]
    for row in rows:
        lines += _audit(row, widths, [name for name in columns if name not in beside], screen)
    notes = [words for name, words in _LEGEND.items() if name in columns]
    results = [audited.result for audited in reported if audited.result is not None]
    if any(one.evidence.kind.anytime and one.stopped_by == "evidence" and not fresh(one) for one in results):
        notes.append(_NO_SIZE)
    paragraphs = notes if screen.width is None else [" ".join(notes)]
    lines += [Text(), *(Text(encodable(words, screen.encoding), style="dim") for words in paragraphs)]
    if missing := [one_line(audited.name) for audited in run.audits if audited not in reported]:
        lines += [Text(), Text(encodable(f"Not run: {', '.join(missing)}.", screen.encoding))]
    if run.together:
        lines += [Text(), Text(encodable(one_line(run.together), screen.encoding))]
    return drawn(lines, screen)


def _row(audited: Audited, encoding: str) -> _Row:
    result = audited.result
    expected = audited.as_expected
    cells = {
        "verdict": audited.sign.shown(encoding),
        "audit": one_line(audited.name),
        "runs": _NO_VALUE if result is None else count(result.trials_used),
        "p-value": _NO_VALUE if result is None else p_value(result),
        "as expected": "" if expected is None else "yes" if expected else "NO",
        "claim": "" if result is None else one_line(label(result.claim)),
        "certified / claimed": "" if result is None else certified(result),
        "detectable (90 %)": one_line(detectable(result)),
    }
    if result is None or result.verdict is Verdict.INCONCLUSIVE:
        below = f"because: {why(audited) or 'the result does not record the reason'}"
    else:
        below = one_line(confirmation(result))
    return _Row(
        {name: encodable(cell, encoding) for name, cell in cells.items()},
        audited.sign.style,
        expected,
        encodable(below, encoding),
    )


def _beside(columns: Sequence[str], rows: Sequence[_Row], width: int | None) -> list[str]:
    beside = list(columns)
    for moved in _MOVES:
        if width is None or _total(_widths(beside, rows, width)) <= width:
            break
        beside = [name for name in beside if name not in moved]
    return beside


def _widths(beside: Sequence[str], rows: Sequence[_Row], width: int | None) -> dict[str, int]:
    """Return the width of each column.  The names get the remaining width, but at least `_MIN_NAME`."""
    widths = {name: max(cell_len(name), *(cell_len(row.cells[name]) for row in rows)) for name in beside}
    if width is not None and "audit" in widths:
        left = width - (_total(widths) - widths["audit"])
        widths["audit"] = max(min(widths["audit"], _MIN_NAME), min(widths["audit"], left))
    return widths


def _total(widths: dict[str, int]) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1)


def _header(widths: dict[str, int]) -> Text:
    cells = (name.rjust(width) if name in _RIGHT else name.ljust(width) for name, width in widths.items())
    return Text((" " * _GAP).join(cells).rstrip(), style="bold")


def _audit(row: _Row, widths: dict[str, int], below: Sequence[str], screen: Screen) -> list[Text]:
    name, *more = wrapped(row.cells["audit"], widths["audit"]) if "audit" in widths else [""]
    line = Text()
    for column, width in widths.items():
        cell = name if column == "audit" else row.cells[column]
        space = " " * (width - cell_len(cell))
        line.append(" " * _GAP if line else "")
        line.append(space if column in _RIGHT else "")
        line.append(cell, _style(column, row))
        line.append("" if column in _RIGHT else space)
    line.rstrip()
    lines = [line]
    before = widths["verdict"] + _GAP
    lines += [Text(" " * before + part) for part in more]
    items = [f"{column}: {row.cells[column]}" for column in below if row.cells[column]]
    room = None if screen.width is None else max(screen.width - _INDENT, 1)
    separator = encodable(" · ", screen.encoding)
    reported = [*packed(items, separator, room), *(wrapped(row.below, room) if row.below else ())]
    return lines + [Text(" " * _INDENT + part) for part in reported]


def _style(column: str, row: _Row) -> str:
    if column == "verdict":
        return row.style
    return "bold red" if column == "as expected" and row.expected is False else ""


def drawn(items: Iterable[RenderableType], screen: Screen) -> str:
    """Return objects of rich as text for a screen, with colours as escape codes."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        force_terminal=screen.terminal,
        color_system="auto" if screen.terminal else None,
        width=screen.width or 1_000_000,
        markup=False,
        highlight=False,
        emoji=False,
    )
    for item in items:
        console.print(item)
    return encodable(re.sub(" +\n", "\n", stream.getvalue()), screen.encoding)
