"""What runs that may depend on each other mean for a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Judgement:
    """Doubts and hints about a violation that is about to be reported."""

    doubts: list[str] = field(default_factory=list)  # why the audit is inconclusive; empty if the violation stands
    hints: list[str] = field(default_factory=list)  # warnings beside a violation: a likely cause, what was assumed
