"""Divide a budget of processor time among rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from calibration_parts import Row

# the share of each part in the budget
SHARES = {
    "true claims": 0.15,
    "sizes": 0.1,
    "late bets": 0.05,
    "second stage": 0.05,
    "short audits": 0.1,
    "rare outputs": 0.15,
    "misbehaving": 0.1,
    "streams": 0.05,
    "commands": 0.05,
    "stated": 0.2,
}
MIN_AUDITS = 5  # audits of a row, however small the budget is
_MIN_SECONDS = 1.0  # processor time of a row, however small the budget is
_MIN_COST = 1e-3  # seconds


def divided(rows: Sequence[Row], costs: Mapping[str, float], seconds: float) -> dict[str, int]:
    """Return the number of audits of each row, by its label.

    The rows of a part get the same processor time, except that no row has more audits than a full calibration, or fewer
    than `MIN_AUDITS` or than one second allows.  The numbers do not depend on outcomes.

    Args:
        rows: The rows to run.
        costs: The processor seconds of one audit of each row, by the label of the row.  A row without a cost gets
            `MIN_AUDITS`.
        seconds: The budget.
    """
    parts = {row.part for row in rows}
    total = sum(SHARES[part] for part in parts)
    numbers: dict[str, int] = {}
    for part in parts:
        numbers |= _of_part([row for row in rows if row.part == part], costs, seconds * SHARES[part] / total)
    return numbers


def _of_part(rows: Sequence[Row], costs: Mapping[str, float], seconds: float) -> dict[str, int]:
    cost = {row.label: max(costs.get(row.label, math.inf), _MIN_COST) for row in rows}

    def numbers(each: float) -> dict[str, int]:
        return {row.label: min(row.full, max(MIN_AUDITS, int(each / cost[row.label]))) for row in rows}

    def spent(each: float) -> float:
        return sum(number * cost[label] for label, number in numbers(each).items() if label in costs)

    low, high = _MIN_SECONDS, seconds
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= seconds else (low, middle)
    return numbers(low)
