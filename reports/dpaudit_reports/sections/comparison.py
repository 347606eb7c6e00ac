"""A comparison of the same audits on several versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from dpaudit.result.model import AuditResult
from dpaudit.result.suite import promised_together
from dpaudit.rounding import count
from dpaudit.text import one_line, shortened
from dpaudit_reports.blocks import (
    Block,
    Code,
    Column,
    Figure,
    Heading,
    Items,
    Panel,
    Paragraph,
    Reference,
    Span,
    Strong,
    Table,
    Text,
    spans_of,
)
from dpaudit_reports.claimed import certified_of_claimed, label, tells
from dpaudit_reports.figures.canvas import GAP, WIDTH
from dpaudit_reports.figures.residual import Scale, peak, residual_hints, residual_svg, scale_of
from dpaudit_reports.rates import RegionStatus, counted, frequencies, region_status
from dpaudit_reports.sections.summary import p_value
from dpaudit_reports.verdicts import MARKS, outcome

Versions = Mapping[str, AuditResult]
Missing = Mapping[tuple[str, str], str]
_ACROSS = 4  # maximum number of versions that fit as columns of a table, and of panels that fit side by side
_HOW_TO_READ = (
    "How to read the plots: the power of an attack is the share of outputs of d1 that it recognises. The blue line "
    "shows by how many percentage points the observed power lies above the maximum that the claim allows at the same "
    "type I error. The black line is the claim, and the claim promises that no attack reaches the grey area above it. "
    "Chance can carry the blue line into the grey area, in particular if an audit stopped after few runs. Grey line: "
    "observed errors that bound nothing. Full diamond: the witness of a violation, with the 95\u00a0% intervals of "
    "its two errors. Hollow diamond: a region that shows no violation. All versions of an audit have one scale."
)
_MORE = "The result files hold the details of each audit, and the command dpaudit report shows them."


def side_by_side(audits: Mapping[str, Versions], missing: Missing, *, full: bool) -> tuple[Block, ...]:
    """Return the verdicts, with audits as rows and versions as columns, and then the plots of each audit."""
    pairs = [(name, version) for name, results in audits.items() for version in results]
    versions = tuple(dict.fromkeys(version for _, version in (*pairs, *missing)))
    details = (block for name, results in audits.items() for block in _audit(name, results, versions))
    together = promised_together([result for results in audits.values() for result in results.values()])
    return (
        Paragraph((Strong(_changes(audits)),)),
        _verdicts(audits, versions, pairs if full else []),
        *_reasons(missing),
        *((Paragraph(together),) if together else ()),
        Paragraph(_HOW_TO_READ, quiet=True),
        *(() if full else (Paragraph(_MORE, quiet=True),)),
        *details,
    )


def _reasons(missing: Missing) -> tuple[Block, ...]:
    by_reason: dict[str, list[str]] = {}
    for (name, version), reason in missing.items():
        # the other lines are a traceback or the output of an installer
        brief = shortened(one_line(next(iter(reason.strip().splitlines()), "has no result")))
        by_reason.setdefault(brief, []).append(f"{name.strip() or '–'} – {version}")
    return (Items(tuple(f"{', '.join(where)} {reason}" for reason, where in by_reason.items())),) if by_reason else ()


def _changes(audits: Mapping[str, Versions]) -> str:
    differ = [name for name, results in audits.items() if len({result.verdict for result in results.values()}) > 1]
    if not differ:
        return "No verdict differs between versions."
    return f"The verdict differs between versions in {len(differ)} of {len(audits)} audits: {', '.join(differ)}."


def _verdicts(audits: Mapping[str, Versions], versions: Sequence[str], parts: Sequence[tuple[str, str]]) -> Table:
    def cell(name: str, version: str) -> Text:
        result = audits[name].get(version)
        if result is None:
            return "– could not be run"
        mark = MARKS[result.verdict]
        word: Span = Reference(mark.title, parts.index((name, version))) if parts else mark.title
        p = f", p\u00a0{p_value(result)}" if tells(result) else ""
        runs = f"{outcome(result)}{p}, {count(result.trials_used)}\u00a0runs"
        return (Strong(f"{mark.sign} "), word, ": ", *spans_of(certified_of_claimed(result)), runs)

    if len(versions) <= _ACROSS:
        return Table(
            (Column("Audit", grow=1.2), *(Column(version, grow=1) for version in versions)),
            tuple((name.strip() or "–", *(cell(name, version) for version in versions)) for name in audits),
        )
    return Table(
        (Column("Audit", grow=1), Column("Version", grow=1), Column("Verdict", grow=2)),
        tuple((name.strip() or "–", version, cell(name, version)) for name in audits for version in versions),
    )


def _audit(name: str, results: Versions, versions: Sequence[str]) -> tuple[Block, ...]:
    if not results:
        return Heading(name.strip() or "–"), Paragraph("This audit could not be run on any version.")
    scale = scale_of(results.values())
    columns = _columns(len(results))
    width = (WIDTH - GAP * (columns - 1)) / columns
    panels = tuple(_panel(version, results[version], scale, width) for version in versions if version in results)
    return Heading(name.strip() or "–"), Figure(panels, caption=tuple(_caption(results, versions)), columns=columns)


def _columns(panels: int) -> int:
    """Return the number of panels in a row: all of them, or as many as leave few places of the last row empty."""
    if panels <= _ACROSS:
        return max(2, panels)
    return min((3, _ACROSS), key=lambda columns: (-panels % columns, -columns))


def _panel(version: str, result: AuditResult, scale: Scale, width: float) -> Panel:
    mark = MARKS[result.verdict]
    alt = f"{version}: {mark.title}, claim {label(result.claim)}. {_in_words(result)}"
    return Panel(
        partial(residual_svg, result, scale, width),
        title=f"{version} {mark.sign} {mark.title}",
        alt=alt,
        hints=partial(residual_hints, result, scale, width),
    )


def _in_words(result: AuditResult) -> str:
    highest = peak(result)
    if highest is None:
        return "No errors of the attack were recorded."
    alpha, excess = highest
    side = "above" if excess > 0 else "below"
    least = "" if excess > 0 else "at least "
    return (
        f"The observed power of the attack is {least}{abs(excess):.1f} percentage points {side} the claim"
        f"{f', at type I error {alpha:.2f}' if excess > 0 else ''}."
    )


def _caption(results: Versions, versions: Sequence[str]) -> list[Span]:
    shown = [version for version in versions if version in results]
    labels = {version: label(results[version].claim) for version in shown}
    spans: list[Span] = []
    if len(set(labels.values())) == 1:
        spans += ["Claim: ", Code(labels[shown[0]]), "."]
    else:
        for version in shown:
            spans += [f"{' ' if spans else ''}Claim with {version}: ", Code(labels[version]), "."]
    for version in shown:
        result = results[version]
        found = frequencies(result) if region_status(result) is RegionStatus.WITNESS else None
        if found is not None:
            words = counted(result, found)
            spans += [" ", Strong(f"{version}:"), f" {words}{'' if words.endswith('.') else '.'}"]
    return spans
