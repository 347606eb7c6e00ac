"""How a reader repeats what was found."""

from __future__ import annotations

import shlex

from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Block, Code, Heading, Listing, Paragraph, Text
from dpaudit_reports.rates import RegionStatus, region_status


def repeat(result: AuditResult) -> tuple[Block, ...]:
    """The line that counts the witness again on fresh randomness, and the one that made the result."""
    return Heading("Repeating it"), *_replay(result), *_again(result)


def _replay(result: AuditResult) -> tuple[Block, ...]:
    if why_not := result.evidence.words.again:
        return (Paragraph(why_not),)
    if result.witness is None:
        return (Paragraph("There is no rejection region that could be counted again."),)
    if region_status(result) is RegionStatus.VOID:
        return (Paragraph("Nothing is certified, so no region is worth counting again."),)
    if region_status(result) is RegionStatus.FAR:
        return (
            Paragraph(
                "No region that was counted came near a violation, so there is none that is worth counting again."
            ),
        )
    region = "the witness's region" if result.violated else "the region above"
    words = f"Fresh outputs, counted in {region}, with an exact p-value of their own"
    if result.provenance.audit is not None:
        return Paragraph(f"{words}:"), Listing(f"dpaudit replay {shlex.quote(f'{result.name}.json')}")
    if result.provenance.test is not None:
        file = ": FILE.json is the result that the test kept, the folder is the one in which pytest ran."
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
        "A mechanism that draws only from the random generator it is given has, with the same seed and versions, the "
        "same result, bit for bit. A mechanism that draws its own randomness gives other outputs; the guarantee is the "
        "same."
    )
    command = result.provenance.command
    if command is None:
        return (Paragraph(words, quiet=True),)
    return Paragraph(f"{words} To repeat the whole audit:", quiet=True), Listing(command)
