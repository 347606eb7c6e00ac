"""Reports of several audits: their overview, an entry and details for each, and a comparison of versions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from dpaudit.result.model import AuditResult
from dpaudit.result.suite import named_together, promised_together
from dpaudit.result.summary import p_value_words
from dpaudit.result.values import Verdict
from dpaudit.result.words import words_of
from dpaudit.rounding import at_most, count, lower, percent_at_least, upper
from dpaudit.text import one_line, shortened
from dpaudit_reports.blocks import (
    Block,
    Code,
    Column,
    Columns,
    Entries,
    Figure,
    Heading,
    Items,
    KeyValues,
    Listing,
    Panel,
    Paragraph,
    Part,
    Picture,
    Reference,
    Span,
    Strong,
    Table,
    Text,
    first,
    spans_of,
)
from dpaudit_reports.claimed import (
    Ranges,
    certified_of_claimed,
    found_from,
    headline,
    label,
    least_found,
    ranges,
    tells,
)
from dpaudit_reports.figures import GAP, WIDTH
from dpaudit_reports.figures.bars import Key, axis_svg, key_svg, scale_end, strip_svg
from dpaudit_reports.figures.tradeoff import Scale, peak, residual_hints, residual_svg, scale_of
from dpaudit_reports.rates import RegionStatus, counted, frequencies, region_status
from dpaudit_reports.sections.advice import commands_of, facts
from dpaudit_reports.sections.answer import panel, verdict, warnings
from dpaudit_reports.sections.details import SEED, listing, origin, region, scores, training
from dpaudit_reports.verdicts import MARKS, WORST_FIRST, outcome, title_of

_FULL = "The option --full of the command dpaudit report gives every audit the two pages of a report of one audit."


def entry(result: AuditResult) -> tuple[Block, ...]:
    """Return the verdict beside the picture, the warnings, four facts, and the commands that repeat it."""
    drawn = panel(result)
    words = (*verdict(result), *warnings(result))
    top = words if drawn is None else (Columns((Figure((drawn[0],), ""),), words, share=0.4),)
    commands = commands_of(result)
    return (*top, *facts(result), *((Listing("\n".join(commands)),) if commands else ()))


def appendix(
    results: Sequence[AuditResult], titles: Sequence[str], more: Callable[[AuditResult], tuple[Block, ...]]
) -> tuple[Block, ...]:
    """Return the facts that all audits share, and then the other facts, the config and more blocks of each audit."""
    origins = [origin(result) for result in results]
    shared = [row for row in origins[0] if all(row in rows for rows in origins)]
    parts = tuple(
        Part(title, (*_details(result, [row for row in rows if row not in shared]), *more(result)))
        for title, result, rows in zip(titles, results, origins, strict=True)
    )
    shown, left_out = first(parts, "audits")
    return (
        Heading("Details"),
        *((Heading("The same in all audits", level=2), KeyValues(tuple(shared))) if shared else ()),
        Heading("Each audit", level=2),
        Paragraph(f"{SEED} {_FULL}", quiet=True),
        Entries(tuple(shown)),
        *left_out,
    )


def _details(result: AuditResult, rows: Sequence[tuple[str, Text]]) -> tuple[Block, ...]:
    config = result.provenance.audit
    attacks = sorted((row for row in result.attacks if row.weight >= 0.01), key=lambda row: -row.weight)
    named = ", ".join(f"{row.name} {round(100 * row.weight)}\u00a0%" for row in attacks[:4])
    known = [*rows, *([("attacks", named)] if named else [])]
    if len(result.pairs) > 1:
        known.append(("pairs", count(len(result.pairs))))
    special = (*region(result), *scores(result), *training(result))
    inside = [part for block in special for part in (block.right if isinstance(block, Columns) else (block,))]
    return (
        KeyValues(tuple(known)),
        *(block for block in inside if not isinstance(block, Heading)),
        *((listing(config),) if config else ()),
    )


_KEYS: tuple[tuple[Key, str], ...] = (
    ("certified", "certified: the loss is at least this large"),
    ("unproven", "unproven: nothing is known about the loss here"),
    ("blind", "blind: a violation here may have been missed"),
    (
        "found",
        "found: from here, a violation would have been found with 90\u00a0% probability, if its trade-off curve is the "
        "one that the part about the audit names",
    ),
)


def overview(results: Sequence[AuditResult]) -> tuple[Block, ...]:
    """Return a table with a line for each audit, and its legend."""
    places = [ranges(result) for result in results]
    end = scale_end(places)
    one = len({result.confidence for result in results}) == 1
    columns = (
        Column("Audit", grow=2.9),
        Column(("Loss, as a multiple of the claim ", Picture(partial(axis_svg, end), "")), grow=3.3),
        Column("Certified / claimed", grow=2.3),
        Column("Claim", grow=2.3),
        *(() if one else (Column("Confidence", align="right"),)),
        Column("Runs", align="right"),
    )
    rows = tuple(
        (
            (Strong(f"{MARKS[result.verdict].sign} "), Reference(title_of(result), i)),
            _strip(result, place, end),
            _certified(result),
            (Code(label(result.claim)),),
            *(() if one else (percent_at_least(result.confidence),)),
            count(result.trials_used),
        )
        for i, (result, place) in enumerate(zip(results, places, strict=True))
    )
    drawn = [(result, place) for result, place in zip(results, places, strict=True) if place is not None]
    return Table(columns, rows), *_legend(drawn, end)


def _certified(result: AuditResult) -> Text:
    bound = headline(result) if result.measurement and result.bounds_valid else None
    if bound is not None and not math.isnan(bound.certified):
        return bound.shown(bound.certified_text())
    least = None if result.violated else least_found(result)
    after = outcome(result) if least is None else f"; found from {found_from(least)}"
    return *spans_of(certified_of_claimed(result)), after


def _legend(drawn: Sequence[tuple[AuditResult, Ranges]], end: float) -> tuple[Block, ...]:
    keys: set[Key] = {"certified", "unproven"} if drawn else set()
    for result, place in drawn:
        if not result.violated:
            keys |= {"blind", "found"} if place.blind_until <= end else {"blind"}
    spans: list[Span] = []
    for key, meaning in _KEYS:
        if key in keys:
            spans += ["; " if spans else "", Picture(partial(key_svg, key), f"sample: {key}", wide=False), meaning]
    return (Paragraph((*spans, "."), quiet=True),) if spans else ()


def _strip(result: AuditResult, place: Ranges | None, end: float) -> Text:
    mark = MARKS[result.verdict]
    if place is None:
        return "no claim" if result.measurement else "this claim has no place on the scale"
    return (Picture(partial(strip_svg, place, mark.tone, end), _in_words(result, place)),)


def _in_words(result: AuditResult, place: Ranges) -> str:
    if not result.bounds_valid:
        return "nothing certified"
    if result.violated and not place.certified > 1:
        return "certified more than the claim"
    certified = f"certified {lower(place.certified, 3, over=1.0)} times the claim"
    if result.violated:
        return certified
    if math.isinf(place.blind_until):
        return f"{certified}; no violation would have been found"
    return f"{certified}; blind up to {upper(place.blind_until, 3)} times the claim"


def summary(results: Sequence[AuditResult]) -> tuple[Block, ...]:
    """Return a tally of the verdicts, and an overview with one line for each audit in the given order."""
    return Paragraph((Strong(tally(results)),)), *overview(results), *caveat(results)


def tally(results: Sequence[AuditResult]) -> str:
    """Return how many results have each verdict, worst first, such as "▲ Violation: 2." """
    counts = Counter(result.verdict for result in results)
    return " ".join(f"{MARKS[v].sign} {MARKS[v].title}: {counts[v]}." for v in WORST_FIRST if counts[v])


def caveat(results: Sequence[AuditResult], where: str = "the part about the audit") -> tuple[Block, ...]:
    """Return what holds for all results together, and what their numbers mean."""
    together, notes = promised_together(results), []
    if len({result.confidence for result in results}) == 1:
        notes.append(f"Confidence of each audit: {percent_at_least(results[0].confidence)}.")
    if not together:
        notes.append("Each verdict holds at its own confidence, but the verdicts do not hold jointly.")
        if together := named_together(results):
            notes.append("The correction for several audits is valid if this list contains every audit that was made.")
    if any(result.verdict is Verdict.NO_VIOLATION for result in results):
        notes.append(
            "That no violation was found does not prove a claim. Found from: the smallest violation that would have "
            f"been found with 90\u00a0% probability in the best case, see {where}."
        )
    notes += dict.fromkeys(
        f"Audits with the method {result.method} assume, without a test: {words}."
        for result in results
        if (words := words_of(result.evidence).assumption)
    )
    if any(result.violated for result in results):
        notes.append("Certified / claimed: a lower bound, and the maximum that the claim allows.")
    return (
        *((Paragraph(together),) if together else ()),
        *((Paragraph(" ".join(notes), quiet=True),) if notes else ()),
    )


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
    by_reason: dict[str, list[str]] = {}
    for (name, version), reason in missing.items():
        # the other lines are a traceback or the output of an installer
        brief = shortened(one_line(next(iter(reason.strip().splitlines()), "has no result")))
        by_reason.setdefault(brief, []).append(f"{name.strip() or '–'} – {version}")
    reasons = tuple(f"{', '.join(where)} {reason}" for reason, where in by_reason.items())
    differ = [name for name, results in audits.items() if len({result.verdict for result in results.values()}) > 1]
    changes = "No verdict differs between versions."
    if differ:
        changes = f"The verdict differs between versions in {len(differ)} of {len(audits)} audits: {', '.join(differ)}."
    together = promised_together([result for results in audits.values() for result in results.values()])
    return (
        Paragraph((Strong(changes),)),
        _verdicts(audits, versions, pairs if full else []),
        *((Items(reasons),) if reasons else ()),
        *((Paragraph(together),) if together else ()),
        Paragraph(_HOW_TO_READ, quiet=True),
        *(() if full else (Paragraph(_MORE, quiet=True),)),
        *details,
    )


def _verdicts(audits: Mapping[str, Versions], versions: Sequence[str], parts: Sequence[tuple[str, str]]) -> Table:
    def cell(name: str, version: str) -> Text:
        result = audits[name].get(version)
        if result is None:
            return "– could not be run"
        mark = MARKS[result.verdict]
        word: Span = Reference(mark.title, parts.index((name, version))) if parts else mark.title
        p = f", p\u00a0{p_value_words(result, at_most)}" if tells(result) else ""
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
    columns = max(2, len(results))  # or as many as leave few places of the last row empty
    if len(results) > _ACROSS:
        columns = min((3, _ACROSS), key=lambda columns: (-len(results) % columns, -columns))
    width = (WIDTH - GAP * (columns - 1)) / columns
    panels = tuple(_panel(version, results[version], scale, width) for version in versions if version in results)
    return Heading(name.strip() or "–"), Figure(panels, caption=tuple(_caption(results, versions)), columns=columns)


def _panel(version: str, result: AuditResult, scale: Scale, width: float) -> Panel:
    mark = MARKS[result.verdict]
    words = "No errors of the attack were recorded."
    if (highest := peak(result)) is not None:
        alpha, excess = highest
        where = f"above the claim, at type I error {alpha:.2f}" if excess > 0 else "below the claim"
        least = "" if excess > 0 else "at least "
        words = f"The observed power of the attack is {least}{abs(excess):.1f} percentage points {where}."
    return Panel(
        partial(residual_svg, result, scale, width),
        title=f"{version} {mark.sign} {mark.title}",
        alt=f"{version}: {mark.title}, claim {label(result.claim)}. {words}",
        hints=partial(residual_hints, result, scale, width),
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
