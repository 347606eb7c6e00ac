"""Describes outputs that never varied: the mechanism has no noise, a fixed seed, or a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dpaudit.engine.seen import MIN_OUTPUTS, Seen, same, shown
from dpaudit.result.confirmation import Confirmation

if TYPE_CHECKING:
    from dpaudit.engine.collector import Collector


@dataclass(frozen=True, slots=True)
class Judgement:
    """Doubts and hints about a violation that is about to be reported."""

    doubts: list[str] = field(default_factory=list)  # reasons for an inconclusive verdict; none if the violation stands
    hints: list[str] = field(default_factory=list)  # warnings to report with a violation: likely causes, assumptions


_THREE_CAUSES = "the mechanism has no noise, a fixed seed, or a cache"


def nothing_varied(collector: Collector) -> list[str]:
    """Explain why an audit could find no violation, if the outputs never varied on any pair.

    Returns:
        A list of one reason; empty if some outputs varied, or if there were too few outputs.
    """
    seen = [sides for sides in collector.seen if sides[0].runs]
    if not all(side.constant for sides in seen for side in sides) or sum(sides[0].runs for sides in seen) < MIN_OUTPUTS:
        return []
    equal = [sides for sides in seen if same(sides[0].value, sides[1].value)]
    if len(equal) < len(seen):
        sides = next(sides for sides in seen if not same(sides[0].value, sides[1].value))
        return [f"{_constants(sides)}: {_THREE_CAUSES}, so only one output of each dataset was seen"]
    runs = 2 * sum(sides[0].runs for sides in seen)
    what = {shown(sides[0].value): None for sides in seen}
    if len(what) == 1:
        return [f"every one of the {runs:,} outputs was {next(iter(what))}, so no violation could have been found"]
    return [f"the {runs:,} outputs never varied on any pair, so no violation could have been found"]


def judgement_of(confirmation: Confirmation, sides: Sequence[Seen]) -> Judgement:
    """Return what the fresh runs say about a violation: doubts if they contradict it, and otherwise a likely cause."""
    constants = all(side.constant for side in sides)
    words = _constants(sides) if constants else ""
    if confirmation.outcome == "contradicted":
        return Judgement(doubts=[f"{words}: {confirmation.reason}" if words else confirmation.reason])
    if constants and confirmation.processes:
        return Judgement(hints=[f"{words}: the mechanism has no noise or a fixed seed"])
    return Judgement()


def _constants(sides: Sequence[Seen]) -> str:
    found = [f"all {s.runs:,} outputs of d{number} were {shown(s.value)}" for number, s in enumerate(sides)]
    return " and ".join(found)
