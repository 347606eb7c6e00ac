"""Records whether the outputs on a dataset ever varied.  If not: no noise, a fixed seed, or a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dpaudit.outputs import Timed
from dpaudit.pairs.difference import brief
from dpaudit.result.confirmation import Confirmation
from dpaudit.values import Foreign, Output, RawOutputs
from dpaudit.values.content import key

MIN_OUTPUTS = 10  # minimum number of outputs on a dataset, or on one side of a cut, from which conclusions are drawn


@dataclass(slots=True)
class Seen:
    """The common content of all outputs on one dataset so far."""

    runs: int = 0  # runs so far; not counted after the outputs have varied
    constant: bool = True  # whether all outputs were equal so far
    value: Output = None  # the first output

    def add(self, outputs: RawOutputs) -> None:
        """Add the outputs of the next runs."""
        if not self.constant or not len(outputs):
            return
        if not self.runs:
            first = outputs[0].output if isinstance(outputs[0], Timed) else outputs[0]
            self.value = np.array(first) if isinstance(first, np.ndarray) else first
        self.runs += len(outputs)
        self.constant = _all_equal(outputs, self.value)


def _all_equal(outputs: RawOutputs, value: Output) -> bool:
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biufc":
        number = isinstance(value, float) or (isinstance(value, np.ndarray | np.number) and value.dtype.kind in "biufc")
        if not number or np.shape(value) != outputs.shape[1:]:  # the first call returned outputs of another form
            return False
        equal = outputs == value
        if outputs.dtype.kind == "f":  # 0.0 == -0.0, and NaN differs from itself
            equal = (equal & (np.signbit(outputs) == np.signbit(value))) | (np.isnan(outputs) & np.isnan(value))
        return bool(np.all(equal))
    return all(same(output.output if isinstance(output, Timed) else output, value) for output in outputs)


def same(a: Output, b: Output) -> bool:
    """Return whether two outputs, or parts of outputs, have the same type and content.  NaN equals NaN."""
    return type(a) is type(b) and key(a) == key(b)


def shown(value: Foreign) -> str:
    """Write an output in at most 60 characters, and floats with five digits."""
    if isinstance(value, np.generic):
        value = value.item()
    return f"{value:.5g}" if type(value) is float else brief(value, 60)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Doubts and hints about a violation that is about to be reported."""

    doubts: list[str] = field(default_factory=list)  # reasons for an inconclusive verdict; none if the violation stands
    hints: list[str] = field(default_factory=list)  # warnings to report with a violation: likely causes, assumptions


_THREE_CAUSES = "the mechanism has no noise, a fixed seed, or a cache"


def nothing_varied(pairs: Sequence[tuple[Seen, Seen]]) -> list[str]:
    """Explain why an audit could find no violation, if enough outputs never varied on any pair; else return []."""
    seen = [sides for sides in pairs if sides[0].runs]
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
