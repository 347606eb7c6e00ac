"""What a reader must know before trusting the rest."""

from __future__ import annotations

from dpaudit.result import AuditResult
from dpaudit_reports.blocks import Block, Heading, Items, Paragraph


def warnings(result: AuditResult) -> tuple[Block, ...]:
    """The audit's warnings, or that there are none."""
    heading = Heading("Warnings")
    if not result.warnings:
        return heading, Paragraph("None.", quiet=True)
    return heading, Items(result.warnings)
