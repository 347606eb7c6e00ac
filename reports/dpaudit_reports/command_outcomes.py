"""The reports of commands that run many audits: `dpaudit sweep` as a document, and `dpaudit bisect` in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

from rich.padding import Padding
from rich.text import Text as Words

from dpaudit.result.command_outcomes import (
    Bisection,
    CellState,
    Change,
    Release,
    State,
    Sweep,
    SweptCell,
    changes,
    decided,
    stretches_of,
)
from dpaudit.rounding import lower, percent_at_most, upper
from dpaudit.text import NO_RESULT, SIGNS, Reason, Sign, encodable, one_line, quoted, shortened
from dpaudit_reports.blocks import (
    Block,
    Column,
    Document,
    Heading,
    Items,
    NewPage,
    Paragraph,
    Picture,
    Span,
    Strong,
    Table,
    Text,
    first,
    some_of,
)
from dpaudit_reports.figures.bars import axis_svg, cells_svg, mark_svg, scale_end
from dpaudit_reports.formats import Audited, Run, Screen
from dpaudit_reports.sections.several_audits import SCALE, answer
from dpaudit_reports.terminal import drawn, table_text

_SERIOUS = (CellState.VIOLATION, CellState.INCONCLUSIVE, CellState.NO_VIOLATION, CellState.NOT_AUDITED)
NO_CELL = "no such cell"
_ACROSS = 8  # columns of a table of cells; a constructor with more values has a line for each cell


@dataclass(frozen=True, slots=True)
class SweepRow:
    """The cells of one constructor in one version."""

    constructor: str
    version: str
    cells: tuple[SweptCell, ...]

    @property
    def worst(self) -> SweptCell:
        """The cell with the largest proven loss, a multiple of its claim; a refuted one comes first."""
        return min(self.cells, key=lambda cell: (cell.state is not CellState.VIOLATION, -(cell.ratio or 0.0)))

    @property
    def state(self) -> CellState:
        """The most serious verdict."""
        return min((cell.state for cell in self.cells), key=_SERIOUS.index)

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
    return sorted(rows, key=lambda row: (_SERIOUS.index(row.state), -(row.worst.ratio or 0.0)))


def sign_of(one: SweptCell | SweepRow) -> Sign:
    """Return the sign of a verdict."""
    return NO_RESULT if one.state is CellState.NOT_AUDITED else SIGNS[one.state.value]


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
    proven = f"{cell.certified}{p_value}, {cell.trials:,} runs, {cell.name}.json"
    return one_line(f"{cell.constructor}, {values_of(cell)}: {proven}")


def without_verdict(sweep: Sweep, state: CellState) -> list[str]:
    """Return one sentence for each reason why cells have no verdict, the most frequent reason first."""
    groups: dict[str, list[str]] = {}
    for cell in sweep.of(state):
        words = shortened(one_line(cell.reason).strip() or "the reason was not recorded")
        words = quoted(words) if Reason.of(cell.reason).foreign else words
        groups.setdefault(words, []).append(cell.name)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return [f"{_counted(len(names), 'cell')}: {reason.rstrip('.')} ({some_of(names, 4)})" for reason, names in ordered]


def differences(sweep: Sweep, version: str) -> list[str]:
    """Return one sentence for each cell whose verdict differs between the first version and another."""
    old, new = (
        {c.title: c.state.value for c in sweep.cells if c.version == one} for one in (sweep.versions[0], version)
    )
    both = [(title, old.get(title, NO_CELL), new.get(title, NO_CELL)) for title in dict.fromkeys([*old, *new])]
    return [one_line(f"{title}: {before}, then {after}") for title, before, after in both if before != after]


def sweep_document(sweep: Sweep) -> Document:
    """Return the report of a sweep: a line for each constructor, and at the back a table of the cells of each."""
    rows = rows_of(sweep)
    sign = sign_of((sweep.of(CellState.VIOLATION) or sweep.of(CellState.NO_VIOLATION) or sweep.cells)[0])
    end = scale_end([cell.ratio or 0.0 for cell in sweep.cells])
    scale = (SCALE, Picture(partial(axis_svg, end), "")), 2.7
    titles = ("Constructor", 2.4), scale, ("Cells", 1.5), ("Largest proven loss", 2.6)
    columns = tuple(Column(title, grow=grow) for title, grow in titles)
    several, own = len(sweep.versions) > 1, "" if sweep.shared else "  Each cell has its own confidence (--each)."
    promise = (
        f"If all claims of the {len(sweep.cells)} cells are true, this sweep reports any violation with probability at "
        f"most {percent_at_most(sweep.false_alarm)}, whenever it ends.{own}"
    )
    front: tuple[Block, ...] = (
        *answer(sign, list(map(sign_of, sweep.cells)), promise),
        Table(columns, tuple(_row(row, end, several=several) for row in rows)),
        Paragraph(tuple(_legend({sign_of(cell) for cell in sweep.cells})), quiet=True),
        *_items("Violations", [refuted_words(cell) for row in rows for cell in row.refuted]),
        *_items("Inconclusive", without_verdict(sweep, CellState.INCONCLUSIVE)),
        *_items("Not audited", without_verdict(sweep, CellState.NOT_AUDITED)),
        *_versions(sweep),
    )
    shown, left_out = first(rows, "constructors")
    grids = [block for row in shown for block in _grid(row, several=several)]
    title = one_line(f"Sweep of {sweep.package} {', '.join(sweep.versions)}")
    audits = f"{len(sweep.cells)} audits of differential-privacy claims"
    subtitle = f"{audits}, {sweep.spent:,.0f}\u00a0s of runs, catalogue {sweep.catalogue}"
    about = f"The sign of each cell, and the loss that is proven, as a multiple of its claim; {CLAIM_LIMIT}"
    back = NewPage(), Heading("Every cell"), Paragraph(about, quiet=True), *grids, *left_out
    return Document(title, one_line(subtitle), None, front, (), back=back)


CLAIM_LIMIT = "above 1, the claim is false; below 1, it may be true or false."


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


def _legend(signs: Set[Sign]) -> Iterator[Span]:
    yield "Each mark is a cell:"
    for sign in (sign for sign in SIGNS.values() if sign in signs):
        yield from (" ", Picture(partial(mark_svg, sign.tone), f"sample: {sign.word}", wide=False), f"{sign.word},")
    yield f" at the loss that is proven. Upright line: the claim; {CLAIM_LIMIT}"


def _name(row: SweepRow, *, several: bool) -> str:
    return one_line(f"{row.constructor} {row.version}" if several else row.constructor)


def _row(row: SweepRow, end: float, *, several: bool) -> tuple[Text, ...]:
    signs = [sign_of(cell) for cell in row.cells]
    known = [(cell.ratio, sign_of(cell).tone) for cell in row.cells if cell.ratio is not None]
    tally = "  ".join(f"{sign.sign}\u00a0{signs.count(sign)}" for sign in (*SIGNS.values(), NO_RESULT) if sign in signs)
    share = share_of(row.worst)
    return (
        (Strong(f"{sign_of(row).sign} "), _name(row, several=several)),
        (Picture(partial(cells_svg, known, end), f"{len(row.refuted)} of {len(row.cells)} refuted"),),
        tally,
        share if share == "–" else f"{share}: {values_of(row.worst)}",
    )


def _grid(row: SweepRow, *, several: bool) -> tuple[Block, ...]:
    """Return a table of the cells of a constructor: its first axis from left to right, the others downwards."""
    axis = next(iter(row.cells[0].values), "")
    across = list(dict.fromkeys(cell.values.get(axis, "") for cell in row.cells))
    if len(across) > _ACROSS:
        axis, across = "", [""]
    lines: dict[str, dict[str, str]] = {}
    for cell in row.cells:
        others = replace(cell, values={name: label for name, label in cell.values.items() if name != axis})
        line = lines.setdefault("" if not others.values else values_of(others), {})
        share = "" if cell.ratio is None else f"\u00a0{share_of(cell)}"
        line[cell.values.get(axis, "") if axis else ""] = f"{sign_of(cell).sign}{share}"
    columns = tuple(Column(one_line(label), grow=1) for label in (axis, *across))
    body = tuple((others, *(line.get(label, "") for label in across)) for others, line in lines.items())
    return Heading(_name(row, several=several), level=2), Table(columns, body)


_SIGNS = {State.BAD: SIGNS["violation"], State.GOOD: SIGNS["no violation found"]}
_BAD_AND_GOOD = (
    "A release is bad if an audit refuted its claim.  A release is good only in the sense that no audit found a "
    "violation.  An audit misses a violation of the detectable size with probability 10 % under an optimal attack, and "
    "more often otherwise.  The probability that a true claim is refuted is bounded.  The probability that a named "
    "first release is wrong is not bounded."
)


def bisection_text(found: Bisection, screen: Screen) -> str:
    """Return the table of all audits, and sentences on the history."""
    run = Run(audits=[audited for release in found.releases for audited in _rows(found.package, release)])
    lines: list[Words | Padding] = [Words()]
    for words, state in _history(found):
        line = Words(encodable(one_line(words), screen.encoding), style="" if state is None else _SIGNS[state].style)
        lines.append(line if state is None else Padding(line, (0, 0, 0, 4), expand=False))
    each = "an audit" if found.audits == 1 else f"{found.audits} audits"
    own = "" if found.shared else "  Each audit has its own confidence (--each)."
    promise = (
        f"The command makes {each} of each of at most {found.most} releases.  Whichever releases it audits, it refutes "
        f"a true claim of any release with probability at most {percent_at_most(float(found.false_alarm))}.{own}"
    )
    for words in (_BAD_AND_GOOD, promise):
        lines += [Words(), Words(words)]
    return table_text(run, screen) + drawn(lines, screen)


def short_reason(reason: str) -> str:
    """Shorten why a release was skipped: the first line, and what an installer printed last."""
    first, *others = [line.strip() for line in reason.splitlines() if line.strip()] or [""]
    return shortened(one_line(f"{first} {others[-1]}" if others and first.endswith(":") else first))


def _rows(package: str, release: Release) -> Iterator[Audited]:
    if release.state is State.SKIPPED:
        reason = f"skipped: {short_reason(release.reason)}"
        yield Audited(name=f"{package} {release.version}", reason=reason, failed=True)
    for result in release.results.values():
        yield Audited(name=result.name, result=result)
    for name, reason in release.missing.items():
        yield Audited(name=f"{name} ({release.version})", reason=short_reason(reason), failed=True)


def _history(found: Bisection) -> Iterator[tuple[str, State | None]]:
    releases, states = found.releases, found.states
    known = decided(states)
    span = f"{found.package} {releases[0].version} to {releases[-1].version}"
    yield f"{span}: {len(known)} of {_counted(len(releases), 'release')} audited with a verdict.", None
    for one in stretches_of(states):
        inside = sum(state is one.state for state in states[one.first : one.last + 1])
        span = " to ".join(dict.fromkeys(releases[n].version for n in (one.first, one.last)))
        words = f"{_SIGNS[one.state].sign} {one.state.value:<5} {span}"
        yield f"{words} ({inside} of {one.last - one.first + 1} audited)", one.state
    for change in changes(states):
        yield _change(found, change), None
        if others := found.other_packages(change):
            both = f"{releases[change.before].version} and {releases[change.after].version}"
            names = [f"{name} ({old or 'none'}, then {new or 'none'})" for name, old, new in others]
            yield f"Other packages also differ between the environments of {both}: {some_of(names)}.", None
    yield from ((words, None) for words in _gaps(found))
    if not known:
        yield "No release was found good or bad.", None
        return
    oldest = releases[known[0]].version
    if known[0] > 0:
        yield f"Without a verdict: {_counted(known[0], 'release')} before {oldest}.", None
    if after := len(releases) - 1 - known[-1]:
        yield f"Without a verdict: {_counted(after, 'release')} after {releases[known[-1]].version}.", None
    if len({states[n] for n in known}) == 1:
        word = "bad" if states[known[0]] is State.BAD else "good"
        both = f"All {len(known)} audited releases are" if len(known) > 1 else "The only audited release is"
        by = " by at least one audit" if word == "bad" and found.audits > 1 else ""
        yield f"{both} {word}{by}: no change was found.", None
    elif states[known[0]] is State.BAD:
        yield f"The oldest audited release, {oldest}, is bad.", None
    if found.audits > 1 and State.BAD in states:
        yield from ((words, None) for words in _refuted(found))
    if not found.monotone:
        yield f"The history is not monotone: the verdict changes {len(changes(states))} times.", None
    elif changes(states):
        yield "The audited releases agree with a history in which the verdict changes once.", None
    if passed := [n for one in stretches_of(states) for n in range(one.first, one.last) if n not in known]:
        has = "these stretches have" if len(passed) > 1 else "a stretch has"
        advice = "  --most NUMBER audits more of them." if any(states[n] is None for n in passed) else ""
        words = f"{_counted(len(passed), 'release')} inside {has} no verdict, and may differ from the audited ones."
        yield words + advice, None


def _gaps(found: Bisection) -> Iterator[str]:
    if found.interrupted:
        yield "The command was interrupted, so changes may be missing."
    if found.offline:
        yield "The network failed during several installations in a row, which ended the search."
    for message in found.unread:
        yield f"A package index could not be read, so releases may be missing: {message}."


def _refuted(found: Bisection) -> Iterator[str]:
    """Yield which releases each audit refuted, because a release is bad if a single audit refutes it."""
    for title in sorted({title for release in found.releases for title in release.results}):
        names = [one.version for one in found.releases if title in one.results and one.results[title].violated]
        yield f"Audit {title} refuted {', '.join(names) or 'no release'}."
    yield (
        "The search looks for changes of all audits together.  With --only NAME, it looks for those of a single audit."
    )


def _change(found: Bisection, change: Change) -> str:
    before, after = found.releases[change.before], found.releases[change.after]
    assert after.state is not None
    assert before.state is not None
    words = f"First {after.state.value} release: {after.version}"
    others = [f"{version} ({why})" for version, why in found.left_out_inside(change).items()]
    left_out = f"  Not considered between the two: {some_of(others)}." if others else ""
    between = found.between(change)
    if not between:
        return f"{words}.  The listed release before it, {before.version}, is {before.state.value}.{left_out}"
    shown = some_of([release.version for release in between])
    untried = any(release.state is None for release in between)
    why = "not audited; use --most NUMBER to audit more releases" if untried else "without a verdict"
    or_ = f"{words}, or a release between it and {before.version}, which is {before.state.value}: {shown} ({why})."
    return or_ + left_out


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
