"""What outputs show about the independence of their runs: whether they vary, repeat values, or depend on their order.

Tests of exchangeability need columns that do not depend on the order of the outputs, as an audit's own scores do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit.outputs import Timed
from dpaudit.pairs.difference import brief
from dpaudit.result.confirmation import Confirmation
from dpaudit.values import Dataset, Output, RawOutputs, key

ENOUGH_OUTPUTS = 10  # minimum number of outputs on a dataset, or on one side of a cut, from which conclusions are drawn


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


def shown(value: Any) -> str:
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
    if (
        not all(side.constant for sides in seen for side in sides)
        or sum(sides[0].runs for sides in seen) < ENOUGH_OUTPUTS
    ):
        return []
    differing = [sides for sides in seen if not same(sides[0].value, sides[1].value)]
    if differing:
        sides = differing[0]
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


_REPEATED = 3  # fewer repeated values prove no pool, because any two values lie on a grid
_MAX_NUMBERS = 1_000  # maximum number of numbers that are examined
_DECIMALS, _BINARY = 6, 2.0**20  # numbers with 6 decimals, or multiples of 2^-20, are taken to lie on a grid
_STEPS = 1e6  # maximum range of a grid, in steps


def pool_words(sides: Sequence[Sequence[Output]], datasets: Sequence[Dataset]) -> str:
    """Describe the repeated values if the suspicion is strong, on one dataset or on both together; "" otherwise."""
    read = [_Outputs.of(outputs) for outputs in sides]
    enough = [len(outputs.repeated) >= _REPEATED for outputs in read]
    for side, outputs in enumerate(read):
        apart = outputs.repeated.keys().isdisjoint(read[1 - side].examples)
        if enough[side] and apart and _on_no_grid(outputs.repeated.values(), datasets[side]):
            return outputs.words(side)
    repeated = [value for outputs in read for value in outputs.repeated.values()]
    apart = read[0].examples.keys().isdisjoint(read[1].examples)
    if len(repeated) >= _REPEATED and apart and not any(enough) and _on_no_grid(repeated, list(datasets)):
        return " and ".join(outputs.words(side) for side, outputs in enumerate(read) if outputs.repeated)
    return ""


@dataclass(frozen=True, slots=True)
class _Outputs:
    """The first outputs on one dataset."""

    runs: int
    examples: dict[Hashable, Output]  # the different outputs, by their content
    repeated: dict[Hashable, Output]  # the repeated non-integer outputs, by their content

    @staticmethod
    def of(outputs: Sequence[Output]) -> _Outputs:
        plain = [output.output if isinstance(output, Timed) else output for output in outputs]
        keys = [key(output) for output in plain]
        examples = dict(zip(keys, plain, strict=True))
        repeated = {k: examples[k] for k, times in Counter(keys).items() if times > 1 and not_whole(examples[k])}
        return _Outputs(len(plain), examples, repeated)

    def words(self, side: int) -> str:
        different = f"{len(self.examples):,} different value{'s' * (len(self.examples) > 1)}"
        one = shown(next(iter(self.repeated.values())))
        return f"the first {self.runs:,} outputs of d{side} have only {different}, such as {one}"


def not_whole(value: Output) -> bool:
    """Return whether a value contains a finite number that is not whole."""
    return any(math.isfinite(number) and not number.is_integer() for number in _numbers(value))


def _on_no_grid(values: Iterable[Output], dataset: Dataset) -> bool:
    """Return whether the numbers in repeated values lie on no grid, and do not all occur in the dataset."""
    numbers = [number for value in values for number in _numbers(value)]
    return not set(numbers) <= set(_numbers(dataset)) and not _on_a_grid(numbers)


def _numbers(value: Any, depth: int = 4) -> list[float]:
    """Return the numbers in a value, at most `_MAX_NUMBERS`, from at most `depth` levels of containers."""
    if isinstance(value, bool | np.bool_ | str | bytes) or value is None:
        return []
    if isinstance(value, int | float | np.number) and not isinstance(value, np.complexfloating):
        return [float(value)]
    if isinstance(value, np.ndarray):
        return [float(x) for x in value.ravel()[:_MAX_NUMBERS]] if value.dtype.kind in "iuf" else []
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple) and depth:
        return [number for part in value[:_MAX_NUMBERS] for number in _numbers(part, depth - 1)][:_MAX_NUMBERS]
    if hasattr(value, "to_numpy") and depth:
        return _numbers(list(np.ravel(value.to_numpy())), depth - 1)
    return []


def _on_a_grid(numbers: Sequence[float]) -> bool:
    """Return whether all numbers have few digits, or all differences are multiples of the smallest difference."""
    values = np.array(numbers, dtype=np.float64)
    values = values[np.isfinite(values)]
    if np.all(np.round(values, _DECIMALS) == values) or np.all(np.floor(values * _BINARY) == values * _BINARY):
        return True
    scale = float(np.abs(values).max())
    steps = np.diff(np.sort(values))
    steps = steps[steps > 1e-12 * scale]  # smaller differences are rounding errors
    if not len(steps) or steps.sum() > _STEPS * steps.min():
        return not len(steps)
    multiples = steps / steps.min()
    return bool(np.all(np.abs(multiples - np.round(multiples)) < 1e-6 * multiples + 1e-9 * scale / steps.min()))
