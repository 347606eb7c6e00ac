"""What is known about one cell while a sweep runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dpaudit.config.sweeps import Cell
from dpaudit.engine.next_cell import Spent
from dpaudit.inference.sequential.strategy import log_threshold
from dpaudit.result.model import AuditResult
from dpaudit.values import Foreign


@dataclass(slots=True, kw_only=True)
class Row:
    """One cell of a running sweep."""

    cell: Cell
    confidence: float
    result: AuditResult | None = None
    reason: str = ""
    closed: bool = False
    retried: bool = False
    busy: bool = False
    unfinished: bool = False
    facts: dict[str, Foreign] = field(default_factory=dict)
    rounds: int = 0
    seconds: float = 0.0
    last_seconds: float = 0.0

    @property
    def spent(self) -> Spent:
        """What the rule that chooses the next round knows."""
        result = self.result
        return Spent(
            trials=0 if result is None else result.trials_allowed,
            seconds=self.seconds,
            last_seconds=self.last_seconds,
            log_e=0.0 if result is None or not result.bounds_valid else -math.log(max(result.p_value, 1e-300)),
            log_threshold=log_threshold(self.confidence),
            most=self.cell.planned.config.trials,
            closed=self.closed,
            busy=self.busy,
        )
