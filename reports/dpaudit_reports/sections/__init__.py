"""The sections of a report about one audit: each section is one function.

To add a section, write a function from a result to blocks that begin with a `Heading`, and insert it into `SECTIONS` at
its place in the report.  The function must accept results with values that are empty,
None, nan or infinite, and returns no blocks for results to which the section does not apply.  `document` loads the
sections of other packages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Block
from dpaudit_reports.sections.appendix import method, provenance
from dpaudit_reports.sections.evidence import attacks, evidence, pairs, scores, witness
from dpaudit_reports.sections.next_step import next_step
from dpaudit_reports.sections.pictures import bounds, curves, pictures
from dpaudit_reports.sections.training import training
from dpaudit_reports.sections.verdict import answers, verdict, warnings

Section: TypeAlias = Callable[[AuditResult], tuple[Block, ...]]
"""Maps a result to the blocks of a section."""

SECTIONS: tuple[Section, ...] = (
    verdict,
    warnings,
    answers,
    next_step,
    pictures,
    scores,
    training,
    witness,
    bounds,
    curves,
    attacks,
    evidence,
    pairs,
    method,
    provenance,
)

# The sections of the short report for comments and notebooks.
BRIEF: tuple[Section, ...] = (verdict, warnings, answers, next_step, pictures, scores, witness, bounds)
