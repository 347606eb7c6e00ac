"""The part about one of several audits, on a third of a page."""

from __future__ import annotations

from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Answers, Beside, Block, Items, Paragraph
from dpaudit_reports.repeat import how_to_repeat
from dpaudit_reports.sections.answers import claimed, data
from dpaudit_reports.sections.pictures import tradeoff_panel
from dpaudit_reports.sections.verdict import verdict, warnings
from dpaudit_reports.unseen import unseen

_MAX_WARNINGS = 3  # more warnings are in the full report
_MAX_WARNING = 300  # maximum length of a warning, in characters

_FIGURES = (
    "In the figures, the claim promises that no attack reaches the grey area. Blue: the attack's observed errors, "
    "which chance can carry into the grey area; grey: observed errors that bound nothing. Full diamond: the witness of "
    "a violation; hollow diamond: a region that shows no violation. The sides of a rectangle are the 95\u00a0% "
    "intervals of the two errors; they do not account for the choice of a region that was chosen by these counts. A "
    "violation would have been found in the best case: its trade-off curve is that of the claim with the larger "
    "parameter, and the attack is optimal. The last bits of floats are tested for external programs only."
)


def entry(result: AuditResult, *, brief: bool = False) -> tuple[Block, ...]:
    """Return the verdict, the warnings and the answers, beside and below the trade-off plot."""
    beside = Answers(
        (
            *(() if brief else (("What was claimed", tuple(claimed(result))),)),
            ("On what data", tuple(data(result))),
        )
    )
    below = Answers(
        (("What could not be seen", unseen(result, short=True)), ("How to repeat it", how_to_repeat(result)))
    )
    return (Beside(tradeoff_panel(result), (*verdict(result), *_warnings(result), beside), (below,)),)


def caption() -> Paragraph:
    """Return the common caption of the trade-off plots."""
    return Paragraph(_FIGURES, quiet=True)


def _warnings(result: AuditResult) -> tuple[Block, ...]:
    """Return the first warnings, and the number of the others."""
    found = [str(item) for block in warnings(result) if isinstance(block, Items) for item in block.items]
    cut = (words if len(words) <= _MAX_WARNING else f"{words[:_MAX_WARNING]}…" for words in found[:_MAX_WARNINGS])
    shown = [f"Warning: {words}" for words in cut]
    if len(found) > _MAX_WARNINGS:
        shown.append(f"{len(found) - _MAX_WARNINGS} more warnings are in the full report and in the result file.")
    return (Items(tuple(shown)),) if shown else ()
