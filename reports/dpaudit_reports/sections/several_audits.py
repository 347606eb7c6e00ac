"""Reports of several audits: a line for each, then a third of a page for each, and a comparison of versions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from dpaudit.result.evidence import fingerprint
from dpaudit.result.model import AuditResult
from dpaudit.result.suite import promised_together, standing, to_settle
from dpaudit.result.summary import weakness
from dpaudit.result.values import Verdict
from dpaudit.result.words import words_of
from dpaudit.rounding import count, lower, percent_at_least, upper
from dpaudit.text import Sign, one_line, shortened
from dpaudit_reports import blocks
from dpaudit_reports.blocks import (
    Block,
    Code,
    Column,
    Columns,
    Figure,
    Heading,
    Items,
    KeyValues,
    Listing,
    Number,
    Numbers,
    Paragraph,
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
    least_found,
    ranges,
)
from dpaudit_reports.figures.bars import Key, axis_svg, key_svg, scale_end, strip_svg
from dpaudit_reports.sections.advice import commands_of, facts
from dpaudit_reports.sections.answer import panel, verdict, verdict_text, warnings
from dpaudit_reports.sections.details import SEED, origin, tradeoff_panel
from dpaudit_reports.verdicts import MARKS, WORST_FIRST, outcome, title_of


def entry(result: AuditResult) -> tuple[Block, ...]:
    """Return the verdict beside the picture, the warnings, four facts, and the commands that repeat it."""
    drawn = panel(result)
    words = (*verdict(result), *warnings(result))
    top = words if drawn is None else (Columns((Figure((drawn[0],), ""),), words, share=0.4),)
    commands = commands_of(result)
    return (*top, *facts(result), *((Listing("\n".join(commands)),) if commands else ()))


def appendix(results: Sequence[AuditResult], titles: Sequence[str]) -> tuple[Block, ...]:
    """Return the facts that all audits share, and a line with the attacks, the seed and the counts of each."""
    origins = [origin(result) for result in results]
    shared = [row for row in origins[0] if all(row in rows for rows in origins)]
    rows: list[tuple[Text, ...]] = []
    for title, result, known in zip(titles, results, map(dict, origins), strict=True):
        used = sorted((row for row in result.attacks if row.weight >= 0.01), key=lambda row: -row.weight)
        attacks = ", ".join(f"{row.name} {round(100 * row.weight)}\u00a0%" for row in used[:3]) or "–"
        counts = (Code(fingerprint(result.evidence)[:12]),)
        numbers = known.get("p-value", "–"), percent_at_least(result.confidence), known.get("seed", "–")
        rows.append((title, attacks, *numbers, counts))
    columns = (
        Column("Audit", grow=2),
        Column("Attacks", grow=2),
        *map(Column, ("p-value", "Confidence", "Seed", "Counts")),
    )
    shown, left_out = first(rows, "audits")
    return (
        Heading("Details"),
        *((KeyValues(tuple(shared)),) if shared else ()),
        Table(columns, tuple(shown)),
        *left_out,
        Paragraph(f"{SEED} Two pages for each audit: dpaudit report --full.", quiet=True),
    )


_KEYS: tuple[tuple[Key, str], ...] = (
    ("certified", "proven"),
    ("unproven", "not known"),
    ("blind", "a violation here may have been missed"),
    ("found", "from here, it would have been found (90\u00a0%, in the best case)"),
)

SCALE = "Loss relative to the claim "  # title of a column of drawings, whose unit is the claimed value
Line = tuple[tuple[Text, ...], AuditResult | str]
"""The first cells of a line of an overview, and the result, or the reason why there is none."""


def overview(
    lines: Sequence[Line], titles: Sequence[str] = ("Audit",), unsettled: Sequence[AuditResult] = ()
) -> tuple[Block, ...]:
    """Return a table with a line for each audit, and its legend; `titles` are those of the first columns."""
    results = [result for _, result in lines if isinstance(result, AuditResult)]
    places = [ranges(result) for result in results]
    end = scale_end([value for one in places if one for value in (one.certified, one.blind_until)])
    columns = (
        *(Column(title, grow=2.0 + 1 / len(titles)) for title in titles),
        Column((SCALE, Picture(partial(axis_svg, end), "")), grow=3.1),
        Column("Proven", grow=2.5),
        *(Column(title, align="right") for title in ("Claimed", "Found from", "Runs")),
    )
    rows: list[tuple[Text, ...]] = []
    for names, result in lines:
        if isinstance(result, str):
            rows.append((*names, result, *["–"] * (len(columns) - len(names) - 1)))
        else:
            (proven, *sizes), more = _sizes(result), f"; {_UNSETTLED.word}" * (result in unsettled)
            rows.append((*names, _strip(result, end), (*proven, more), *sizes, count(result.trials_used)))
    drawn = [(result, place) for result, place in zip(results, places, strict=True) if place is not None]
    return Table(columns, tuple(rows)), *_legend(drawn, end)


def _sizes(result: AuditResult) -> tuple[tuple[Span, ...], str, str]:
    """Return what is proven, what is claimed, and from where a violation would have been found."""
    bound = headline(result)
    if bound is None or math.isnan(bound.certified) or not (result.bounds_valid and result.bounded):
        return (*spans_of(certified_of_claimed(result)), outcome(result)), "–", "–"
    proven = bound.shown(bound.certified_text()) if bound.delta else bound.shown_alone()
    least = None if result.violated or weakness(result) else least_found(result)
    claimed = "–" if result.measurement else bound.claimed_text()
    return (*proven, outcome(result)), claimed, "–" if least is None else found_from(least)


def _legend(drawn: Sequence[tuple[AuditResult, Ranges]], end: float) -> tuple[Block, ...]:
    keys: set[Key] = {"certified", "unproven"} if drawn else set()
    for result, place in drawn:
        if not result.violated:
            keys |= {"blind", "found"} if place.blind_until <= end else {"blind"}
    spans: list[Span] = []
    for key, meaning in _KEYS:
        if key in keys:
            spans += ["; " if spans else "", Picture(partial(key_svg, key), f"sample: {key}", wide=False), meaning]
    return (Paragraph((*spans, ". Upright line: the claim."), quiet=True),) if spans else ()


def _strip(result: AuditResult, end: float) -> Text:
    if (place := ranges(result)) is None:
        return "no claim" if result.measurement else "this claim has no place on the scale"
    return (Picture(partial(strip_svg, place, MARKS[result.verdict].tone, end), _in_words(result, place)),)


def _in_words(result: AuditResult, place: Ranges) -> str:
    if not result.bounds_valid:
        return "nothing proven"
    if result.violated and not place.certified > 1:
        return "proven more than the claim"
    certified = f"proven {lower(place.certified, 3, over=1.0)} times the claim"
    blind = f"blind up to {upper(place.blind_until, 3)} times the claim"
    blind = blind if math.isfinite(place.blind_until) else "it is not known which violation would have been found"
    return certified if result.violated else f"{certified}; {blind}"


def summary(results: Sequence[AuditResult]) -> tuple[Block, ...]:
    """Return how many claims are false, an overview with one line for each audit in the given order, and notes."""
    stand = standing(results)
    unsettled = [result for result in results if result.violated and result not in stand]
    signs = [_UNSETTLED if result in unsettled else MARKS[result.verdict] for result in results]
    worst = MARKS[stand[0].verdict] if stand else signs[0]
    lines: list[Line] = [
        (((Strong(f"{MARKS[result.verdict].sign} "), Reference(title_of(result), i)),), result)
        for i, result in enumerate(results)
    ]
    together, *notes = caveat(results)
    quiet = (Paragraph(" ".join(notes), quiet=True),) if notes else ()
    return *answer(worst, signs, together), *overview(lines, unsettled=unsettled), *quiet


_UNSETTLED = replace(MARKS[Verdict.VIOLATION], word="not after the correction", tone="open")  # see `suite.standing`
_COUNTED = {
    "violation": "refuted",
    _UNSETTLED.word: "refuted alone, but not after the correction for several audits",
    "no violation found": "no violation found, which is no proof",
    "inconclusive": "inconclusive",
    "no result": "could not be audited",
}


def answer(worst: Sign, signs: Sequence[Sign], together: str) -> tuple[Block, Block]:
    """Return how many claims were refuted, what holds for all together, and how many have each other outcome."""
    counts = Counter(sign.word for sign in signs)
    bad = counts["violation"]
    title = f"{bad} of {len(signs)} claims refuted." if bad else "No claim was refuted."
    title = title if bad or not counts[_UNSETTLED.word] else "No refutation stands after the correction."
    numbers = [
        Number(count(counts[word]), words, "bad" if word == "violation" and bad else None)
        for word, words in _COUNTED.items()
        if counts[word] or word == "violation"
    ]
    return blocks.Verdict(worst.sign, title, together, worst.tone), Numbers(tuple(numbers))


def tally(results: Sequence[AuditResult]) -> str:
    """Return how many results have each verdict, worst first, such as "▲ Violation: 2." """
    counts = Counter(result.verdict for result in results)
    return " ".join(f"{MARKS[v].sign} {MARKS[v].title}: {counts[v]}." for v in WORST_FIRST if counts[v])


def caveat(results: Sequence[AuditResult]) -> list[str]:
    """Return what holds for all results together, and then sentences on what their numbers mean."""
    together, notes = promised_together(results), []
    if len({result.confidence for result in results}) == 1:
        notes.append(f"Confidence of each audit: {percent_at_least(results[0].confidence)}.")
    if not together:
        notes.append("Each verdict holds at its own confidence, but the verdicts do not hold jointly.")
        if len(results) > 1 and (refuted := sum(result.violated for result in results)):
            stand = len(standing(results))
            left = f"{stand} of {refuted} refutations. {to_settle(results)}" if stand < refuted else "all refutations."
            together = f"An e-BH correction for {len(results)} audits leaves {left}"
            notes.append("The correction for several audits is valid if this list contains every audit that was made.")
    if any(result.verdict is Verdict.NO_VIOLATION for result in results):
        notes.append(
            "That no violation was found does not prove a claim. Found from: the smallest violation that would have "
            "been found with 90\u00a0% probability, in the best case."
        )
    notes += dict.fromkeys(
        f"Audits with the method {result.method} assume, without a test: {words}."
        for result in results
        if (words := words_of(result.evidence).assumption)
    )
    return [together, *notes]


Versions = Mapping[str, AuditResult]
Missing = Mapping[tuple[str, str], str]
_PLOTTED = 3  # audits whose pictures fit on a page


def side_by_side(audits: Mapping[str, Versions], missing: Missing, *, full: bool) -> tuple[Block, ...]:
    """Return whether verdicts differ, and a line for each audit and version, with links to its part if `full`."""
    pairs = [(name, version) for name, results in audits.items() for version in results]
    versions = tuple(dict.fromkeys(version for _, version in (*pairs, *missing)))
    by_reason: dict[str, list[str]] = {}
    for (name, version), reason in missing.items():
        # the other lines are a traceback or the output of an installer
        brief = shortened(one_line(next(iter(reason.strip().splitlines()), "has no result")))
        by_reason.setdefault(brief, []).append(f"{_title(name)} – {version}")
    reasons = tuple(f"{', '.join(where)} {reason}" for reason, where in by_reason.items())
    lines: list[Line] = []
    for name in audits:
        for version in versions:
            result = audits[name].get(version)
            sign = "–" if result is None else MARKS[result.verdict].sign
            shown: Span = version if result is None or not full else Reference(version, pairs.index((name, version)))
            lines.append(
                ((_title(name), (Strong(f"{sign} "), shown)), "could not be run" if result is None else result)
            )
    differ, results = differing(audits), [result for own in audits.values() for result in own.values()]
    changed = f"The verdict changes in {len(differ)} of {len(audits)} audits." if differ else "No verdict changes."
    worst = MARKS[min((result.verdict for result in results), key=WORST_FIRST.index)]
    about = " ".join(_history(name, audits[name]) for name in differ[:_PLOTTED])
    return (
        blocks.Verdict(worst.sign, changed, f"{about} {promised_together(results)}".strip(), worst.tone),
        *overview(lines, ("Audit", "Version")),
        *((Items(reasons),) if reasons else ()),
    )


def _history(name: str, results: Versions) -> str:
    """Return the verdicts of an audit, each with the first version that has it."""
    kinds = groupby(results.items(), key=lambda one: one[1].verdict)
    return f"{_title(name)}: {', then '.join(f'{kind.value} in {next(found)[0]}' for kind, found in kinds)}."


def _title(name: str) -> str:
    return name.strip() or "–"


def differing(audits: Mapping[str, Versions]) -> list[str]:
    """Return the names of the audits whose verdict differs between versions."""
    return [name for name, results in audits.items() if len({result.verdict for result in results.values()}) > 1]


def changes(audits: Mapping[str, Versions]) -> tuple[Block, ...]:
    """Return the trade-off plots and the verdicts of the audits whose verdict differs between versions."""
    differ, found = differing(audits), list[Block]()
    for name in differ[:_PLOTTED]:
        panels, words = [], list[Text]()
        for version, result in audits[name].items():
            mark = MARKS[result.verdict]
            panels.append(tradeoff_panel(result, f"{version} {mark.sign} {mark.title}"))
            words.append((Strong(f"{version}: "), verdict_text(result) if result.violated else f"{mark.title}."))
        found += [Heading(_title(name), level=2), Figure(tuple(panels), "", columns=min(max(2, len(panels)), 3))]
        found.append(Items(tuple(words), quiet=True))
    if not found:
        return ()
    others = len(differ) - _PLOTTED
    more = (Paragraph(f"{others} more audits changed; see their result files."),) if others > 0 else ()
    return Heading("What changed"), *found, *more
