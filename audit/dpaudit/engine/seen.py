"""Records whether the outputs on a dataset ever varied."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpaudit.outputs import Timed
from dpaudit.pairs.brief import brief
from dpaudit.values import Foreign, Output, RawOutputs
from dpaudit.values.content import key

MIN_OUTPUTS = 10  # minimum number of outputs on a dataset from which conclusions are drawn


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


def not_whole(value: Foreign, depth: int = 4) -> bool:
    """Return whether a value contains a finite non-integer number, in at most `depth` levels of containers."""
    if isinstance(value, float | np.floating):
        return math.isfinite(value) and float(value) != math.floor(float(value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool(np.any(np.isfinite(value) & (value != np.floor(value))))
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple) and depth:
        return any(not_whole(part, depth - 1) for part in value)
    if hasattr(value, "to_numpy") and depth:
        return not_whole(list(np.ravel(value.to_numpy())), depth - 1)
    return False


def shown(value: Foreign) -> str:
    """Write an output in at most 60 characters, and floats with five digits."""
    if isinstance(value, np.generic):
        value = value.item()
    return f"{value:.5g}" if type(value) is float else brief(value, 60)
