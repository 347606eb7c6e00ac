"""The sections of a report about one audit: each is a function from a result to blocks that begin with a `Heading`.

Insert a new one into `SECTIONS`.  It must accept results with values that are empty, None, nan or infinite, and return
no blocks if it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Block
from dpaudit_reports.sections.advice import advice, facts, repeat
from dpaudit_reports.sections.answer import numbers, picture, verdict, warnings
from dpaudit_reports.sections.details import (
    all_warnings,
    bounds,
    errors_and_bounds,
    new_page,
    pairs,
    provenance,
    scores,
    training,
)

Section: TypeAlias = Callable[[AuditResult], tuple[Block, ...]]  # maps a result to the blocks of a section

SECTIONS: tuple[Section, ...] = (
    *(verdict, warnings, numbers, picture, scores, advice, repeat, facts),
    *(new_page, errors_and_bounds, training, pairs, all_warnings, provenance),
)

# The sections of the short report for comments and notebooks.
BRIEF: tuple[Section, ...] = (verdict, warnings, numbers, picture, scores, advice, repeat, facts, bounds)
