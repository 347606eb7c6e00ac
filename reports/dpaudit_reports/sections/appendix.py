"""The method and the provenance, and a report of several audits: a third of a page for each, and details at the end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from dpaudit.result.evidence import fingerprint, once, spent
from dpaudit.result.model import AuditResult, p_value_words
from dpaudit.result.provenance import key
from dpaudit.result.words import words_of
from dpaudit.rounding import at_most, count, percent, seconds
from dpaudit.text import shortened
from dpaudit_reports.blocks import (
    Answers,
    Beside,
    Block,
    Code,
    Entries,
    Figure,
    Heading,
    Items,
    KeyValues,
    Listing,
    Paragraph,
    Part,
    Text,
    first,
    some_of,
    with_mathematics,
)
from dpaudit_reports.claimed import tells
from dpaudit_reports.rates import RegionStatus, region_status
from dpaudit_reports.sections.evidence import scores
from dpaudit_reports.sections.next_step import how_to_repeat
from dpaudit_reports.sections.pictures import tradeoff_panel
from dpaudit_reports.sections.training import training
from dpaudit_reports.sections.verdict import claimed, data, verdict, warnings
from dpaudit_reports.verdicts import unseen

CAPTION = Paragraph(  # of all trade-off plots
    "In the figures, the claim promises that no attack reaches the grey area. Blue: the attack's observed errors, "
    "which chance can carry into the grey area; grey: observed errors that bound nothing. Full diamond: the witness of "
    "a violation; hollow diamond: a region that shows no violation. The sides of a rectangle are the 95\u00a0% "
    "intervals of the two errors; they do not account for the choice of a region that was chosen by these counts. A "
    "violation would have been found in the best case: its trade-off curve is that of the claim with the larger "
    "parameter, and the attack is optimal. The last bits of floats are tested for external programs only.",
    quiet=True,
)


def entry(result: AuditResult, *, brief: bool = False) -> tuple[Block, ...]:
    """Return the verdict, the warnings and the answers, beside and below the trade-off plot."""
    first = () if brief else (("What was claimed", tuple(claimed(result))),)
    beside = Answers((*first, ("On what data", tuple(data(result)))))
    rows = ("What could not be seen", unseen(result, short=True)), ("How to repeat it", how_to_repeat(result))
    return (Beside(tradeoff_panel(result), (*verdict(result), *_warnings(result), beside), (Answers(rows),)),)


def _warnings(result: AuditResult) -> tuple[Block, ...]:
    found = [str(item) for block in warnings(result) if isinstance(block, Items) for item in block.items]
    shown = [f"Warning: {shortened(words)}" for words in found[:3]]
    if more := found[len(shown) :]:
        shown.append(f"{len(more)} more warnings are in the full report and in the result file.")
    return (Items(tuple(shown)),) if shown else ()


def method(result: AuditResult) -> tuple[Block, ...]:
    """Return a paragraph about the method, and references."""
    words = words_of(result.evidence)
    return Heading("Method"), Paragraph(with_mathematics(words.principle)), Items(words.references, quiet=True)


_MAX_LINES = 24  # maximum number of lines of a config; the result file has all lines
_FULL = "The option --full of the command dpaudit report gives every audit the pages of a report of one audit."


def methods(results: Sequence[AuditResult]) -> tuple[Block, ...]:
    """Return each method once, with the number of its audits if there are several methods, and all references once."""
    said = [words_of(result.evidence) for result in results]
    users = Counter(f"{words.principle} {words.errors} {words.untried}" for words in said)
    references = dict.fromkeys(source for words in said for source in words.references)
    paragraphs = []
    for method, many in users.items():
        audits = f"{count(many)} of {count(len(results))} audits: " if len(users) > 1 else ""
        paragraphs.append(Paragraph((audits, *with_mathematics(method))))
    return Heading("Method"), *paragraphs, Items(tuple(references), quiet=True)


def appendix(
    results: Sequence[AuditResult], titles: Sequence[str], more: Callable[[AuditResult], tuple[Block, ...]]
) -> tuple[Block, ...]:
    """Return the facts that all audits share, and then the other facts, the config and more blocks of each audit."""
    origins = [origin(result) for result in results]
    shared = [row for row in origins[0] if row[1] != "–" and all(row in rows for rows in origins)]
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
    known = tuple(row for row in (*_evidence(result), *rows) if row[1] != "–")
    special = (block for block in (*scores(result), *training(result)) if not isinstance(block, Figure | Heading))
    return KeyValues(known), *special, *((_listing(config.strip()),) if config else ())


def _listing(config: str) -> Listing:
    lines = config.splitlines()
    most = _MAX_LINES if len(lines) > _MAX_LINES + 1 else len(lines)  # a note on one more line is no shorter
    shown = [shortened(line) for line in lines[:most]]
    more = len(lines) - len(shown)
    return Listing("\n".join([*shown, *([f"# {count(more)} more lines are in the result file"] if more else [])]))


def _evidence(result: AuditResult) -> tuple[tuple[str, Text], ...]:
    rows: list[tuple[str, Text]] = []
    if tells(result):
        rows.append(("p-value", p_value_words(result, at_most)))
    found = result.witness
    if found is not None and region_status(result) not in (RegionStatus.NONE, RegionStatus.FAR):
        counts = found.counts
        hits1 = counts.n1 - counts.false_negatives
        inside = f"{count(counts.false_positives)} of {count(counts.n0)} outputs of d0, "
        rows.append(("in the region", f"{inside}{count(hits1)} of {count(counts.n1)} of d1"))
    if result.evidence.kind.of_pairs:
        if len(result.pairs) > 1:
            rows.append(("pairs", count(len(result.pairs))))
        used = sorted((row for row in result.attacks if row.weight > 0), key=lambda row: -row.weight)
        named = [f"{row.name} {percent(round(row.weight, 3), 2)}" for row in used]
        rows.append(("attacks", some_of(named, 4) or "–"))
    return tuple(rows)


# Fields that are shown elsewhere or are of no use to readers, and fields that come first: the code, and its claim.
_ELSEWHERE = ("command", "audit", "identity", "outputs", "first_outputs", "attack_seconds")
_FIRST = tuple(map(key, ("mechanism", "mechanism_packages", "claim_stated_by", "source")))

SEED = (
    "If the mechanism uses only the random generator that it receives, the same seed and versions give the same "
    "outputs, verdict and bounds. A mechanism with another source of randomness gives different outputs, but the "
    "guarantee is the same."
)


def provenance(result: AuditResult) -> tuple[Block, ...]:
    """Return the recorded facts about the audit, the fingerprint of its evidence, and the config."""
    config = result.provenance.audit
    return (
        Heading("Provenance"),
        KeyValues(origin(result)),
        Paragraph(SEED, quiet=True),
        *((Heading("Config"), Listing(config.strip())) if config else ()),
    )


def origin(result: AuditResult) -> tuple[tuple[str, Text], ...]:
    """Return the names and values of the recorded facts, without the config."""
    runs = f"{count(result.trials_used)} of at most {count(result.trials_allowed)} per dataset"
    if not result.evidence.kind.of_pairs or words_of(result.evidence).data:
        runs = "one" if once(result.evidence) else spent(result.evidence, result.trials_used)
    shown = result.provenance.besides(*_ELSEWHERE)
    about = [(name, shown[name]) for name in _FIRST if name in shown]
    about += [(name, value) for name, value in shown.items() if name not in _FIRST]
    outputs = result.provenance.outputs
    return (
        *((str(name), _value(value)) for name, value in about),
        ("runs", runs),
        ("stopped by", result.stopped_by),
        ("elapsed", seconds(result.elapsed_s)),
        ("outputs", (Code(outputs),) if outputs else "–"),
        ("counts", (Code(f"sha256:{fingerprint(result.evidence)}"),)),
    )


def _value(value: object) -> Text:
    match value:
        case None | "":
            return "–"
        case Mapping() if len(value) > 40:  # files or packages, which would fill pages
            return f"{count(len(value))}, listed in the JSON of the result"
        case Mapping():
            return ", ".join(f"{name} {_scalar(part)}" for name, part in value.items()) or "–"
        case list() | tuple():
            return ", ".join(_scalar(part) for part in value) or "–"
        case _:
            return str(value)


def _scalar(value: object) -> str:
    nested = isinstance(value, dict | list | tuple)
    return json.dumps(value, ensure_ascii=False, default=str) if nested else str(value)
