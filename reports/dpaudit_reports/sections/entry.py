"""The part about one of several audits, on half a page."""

from __future__ import annotations

from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Answers, Beside, Block, Items
from dpaudit_reports.repeat import how_to_repeat
from dpaudit_reports.sections.answers import claimed, data
from dpaudit_reports.sections.pictures import tradeoff_panel
from dpaudit_reports.sections.verdict import verdict
from dpaudit_reports.sections.warnings import warnings
from dpaudit_reports.sides import ends
from dpaudit_reports.unseen import unseen

_MAX_WARNINGS = 3  # more warnings are in the full report
_MAX_WARNING = 300  # maximum length of a warning, in characters


def entry(result: AuditResult) -> tuple[Block, ...]:
    """Return the verdict, the warnings and four answers, beside the trade-off plot."""
    answers = Answers(
        (
            ("What was claimed", tuple(claimed(result))),
            ("On what data", tuple(data(result))),
            ("What could not be seen", unseen(result)),
            ("How to repeat it", how_to_repeat(result)),
        )
    )
    return (Beside(tradeoff_panel(result), (*verdict(result), *_warnings(result), answers)),)


def _warnings(result: AuditResult) -> tuple[Block, ...]:
    """Return the first warnings, and the number of the others."""
    found = [str(item) for block in warnings(result) if isinstance(block, Items) for item in block.items]
    shown = [f"Warning: {ends(words, _MAX_WARNING)}" for words in found[:_MAX_WARNINGS]]
    if len(found) > _MAX_WARNINGS:
        shown.append(f"{len(found) - _MAX_WARNINGS} more warnings are in the full report and in the result file.")
    return (Items(tuple(shown)),) if shown else ()
