"""The judgement of whether a violation stands although runs may depend on each other."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Judgement:
    """Doubts and hints about a violation that is about to be reported."""

    doubts: list[str] = field(default_factory=list)  # reasons for an inconclusive verdict; none if the violation stands
    hints: list[str] = field(default_factory=list)  # warnings to report with a violation: likely causes, assumptions
