"""Repeated non-integer outputs, which may come from a pool of values drawn once.

A mechanism that adds continuous noise in each run never gives the same number twice.  A mechanism that draws k values
once, and returns one of them in each run, gives only k numbers.  Such a mechanism makes only k independent runs.
Mechanisms on a grid repeat their outputs as well, and so do mechanisms that select from given candidates.  Repeated
outputs are therefore only a suspicion.  The suspicion is strong if at least three values were repeated and none of
these values occurred on the other dataset.  In addition, the repeated values must lie on no grid, and must not all
occur in the dataset.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.engine.seen import shown
from dpaudit.outputs import Timed
from dpaudit.values import Dataset, Foreign, Output
from dpaudit.values.content import key

_MIN_REPEATED = 3  # fewer repeated values prove no pool, because any two values lie on a grid
_MAX_NUMBERS = 1_000  # maximum number of numbers that are examined
_DECIMALS, _BINARY = 6, 2.0**20  # numbers with 6 decimals, or multiples of 2^-20, are taken to lie on a grid
_STEPS = 1e6  # maximum range of a grid, in steps


def pool_words(sides: Sequence[Sequence[Output]], datasets: Sequence[Dataset]) -> str:
    """Describe the repeated values if the suspicion is strong, on one dataset or on both together; "" otherwise."""
    read = [_Outputs.of(outputs) for outputs in sides]
    enough = [len(outputs.repeated) >= _MIN_REPEATED for outputs in read]
    for side, outputs in enumerate(read):
        apart = outputs.repeated.keys().isdisjoint(read[1 - side].examples)
        if enough[side] and apart and _on_no_grid(outputs.repeated.values(), datasets[side]):
            return outputs.words(side)
    repeated = [value for outputs in read for value in outputs.repeated.values()]
    if (
        len(repeated) < _MIN_REPEATED
        or any(enough)
        or not read[0].examples.keys().isdisjoint(read[1].examples)
        or not _on_no_grid(repeated, list(datasets))
    ):
        return ""
    return " and ".join(outputs.words(side) for side, outputs in enumerate(read) if outputs.repeated)


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
    given = set(_numbers(dataset))
    return not all(number in given for number in numbers) and not _on_a_grid(numbers)


def _numbers(value: Foreign, depth: int = 4) -> list[float]:
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
