"""A report of several audits: at most a third of a page for each, and the details at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpaudit.result.model import AuditResult
from dpaudit.rounding import count
from dpaudit_reports.blocks import (
    Block,
    Columns,
    Entries,
    Figure,
    Heading,
    KeyValues,
    Listing,
    Paragraph,
    Part,
    Text,
    first,
)
from dpaudit_reports.sections.advice import commands_of, facts
from dpaudit_reports.sections.answer import panel, verdict, warnings
from dpaudit_reports.sections.details import SEED, listing, origin, region, scores
from dpaudit_reports.sections.training import training

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
