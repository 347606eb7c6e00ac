"""What follows for a verdict from runs that may not be independent, in words."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Judgement:
    """Doubts and hints about a violation that is about to be reported."""

    doubts: list[str] = field(default_factory=list)  # why nothing follows from the audit; empty if something does
    hints: list[str] = field(default_factory=list)  # what a violation may come from, and what was taken for granted
