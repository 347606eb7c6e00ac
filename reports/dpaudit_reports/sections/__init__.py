"""What a report says about one audit: one section, one function, one file.

To add a section, write `sections/NAME.py` with a function from a result to blocks, beginning with a
`Heading`, and put it into `SECTIONS` where it is to appear.  It must cope with a result in which its part
is empty, None, nan or infinite, and gives no blocks for a result that it has nothing to say about.  Sections from
outside this project: `foreign`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Block
from dpaudit_reports.sections.attacks import attacks
from dpaudit_reports.sections.bounds import bounds
from dpaudit_reports.sections.detection_limits import detection_limits
from dpaudit_reports.sections.evidence import evidence
from dpaudit_reports.sections.method import method
from dpaudit_reports.sections.one_run import one_run
from dpaudit_reports.sections.pairs import pairs
from dpaudit_reports.sections.profile import profile
from dpaudit_reports.sections.provenance import provenance
from dpaudit_reports.sections.repeat import repeat
from dpaudit_reports.sections.tradeoff import tradeoff
from dpaudit_reports.sections.verdict import verdict
from dpaudit_reports.sections.warnings import warnings
from dpaudit_reports.sections.witness import witness

Section: TypeAlias = Callable[[AuditResult], tuple[Block, ...]]

SECTIONS: tuple[Section, ...] = (
    verdict,
    warnings,
    one_run,
    tradeoff,
    profile,
    evidence,
    witness,
    bounds,
    detection_limits,
    pairs,
    attacks,
    method,
    provenance,
    repeat,
)

# what a comment or a notebook has room for
BRIEF: tuple[Section, ...] = (verdict, warnings, one_run, witness, bounds, detection_limits, repeat)
