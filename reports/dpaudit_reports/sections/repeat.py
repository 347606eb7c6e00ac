"""How a reader repeats the audit, or counts its region again."""

from __future__ import annotations

import shlex

from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Block, Code, Heading, Listing, Paragraph, Text
from dpaudit_reports.rates import RegionStatus, region_status


def repeat(result: AuditResult) -> tuple[Block, ...]:
    """Return the command that counts the region on fresh randomness, and the command that made the result."""
    return Heading("Repeating it"), *_replay(result), *_again(result)


def _replay(result: AuditResult) -> tuple[Block, ...]:
    if why_not := result.evidence.words.again:
        return (Paragraph(why_not),)
    if result.witness is None:
        return (Paragraph("There is no rejection region that could be counted again."),)
    if region_status(result) is RegionStatus.VOID:
        return (Paragraph("Nothing is certified, so it is not useful to count a region again."),)
    if region_status(result) is RegionStatus.FAR:
        return (Paragraph("No region that was counted came near a violation, so it is not useful to count one again."),)
    region = "the witness's region" if result.violated else "the region above"
    words = f"To count fresh outputs in {region}, with a separate exact p-value"
    if result.provenance.audit is not None:
        return Paragraph(f"{words}:"), Listing(f"dpaudit replay {shlex.quote(f'{result.name}.json')}")
    if result.provenance.test is not None:
        file = ", run this in the folder in which pytest ran; FILE.json is the result that the test kept:"
        return Paragraph(f"{words}{file}"), Listing("dpaudit replay FILE.json")
    text: Text = (
        f"{words}: ",
        Code("dpaudit.replay(result, mechanism, pairs)"),
        ". The result does not name a config, so the command ",
        Code("dpaudit replay"),
        " does not know the mechanism.",
    )
    return (Paragraph(text),)


def _again(result: AuditResult) -> tuple[Block, ...]:
    words = (
        "If the mechanism draws only from the random generator that it is given, the same seed and versions give the "
        "same outputs, verdict and bounds. A mechanism that draws its own randomness gives other outputs; the "
        "guarantee is the same."
    )
    command = result.provenance.command
    if command is None:
        return (Paragraph(words, quiet=True),)
    return Paragraph(f"{words} To repeat the whole audit:", quiet=True), Listing(command)
