"""Outputs that come again although they are not whole: a pool of values that were drawn once?

A mechanism that adds continuous noise in each run never gives the same number twice.  One that draws k values once,
and returns one of them in each run, gives k numbers only: there were k independent runs, however many were made.
Mechanisms on a grid repeat their outputs as well, and so does one that chooses among given candidates.  So a pool is a
suspicion.  It is a strong one only if the repeated numbers lie on no grid, are no numbers of the dataset, and never
came on the other dataset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.engine.seen import not_whole, shown
from dpaudit.inference.independence import key
from dpaudit.outputs import Timed

_MIN_REPEATED = 3  # repeated values; two always lie on a grid
_MAX_NUMBERS = 1_000  # numbers that are looked at
_DECIMALS, _BINARY = 6, 2.0**20  # digits of a grid
_STEPS = 1e6  # of a grid


@dataclass(frozen=True, slots=True)
class Pool:
    """Values that are not whole and came again on one dataset."""

    words: str
    strong: bool  # whether no mechanism without a pool is likely to give them


def pool_of(sides: Sequence[Sequence[Any]], datasets: Sequence[Any]) -> Pool | None:
    """What the first outputs of d0 and d1 show of a pool; None if no number that is not whole came again.

    Args:
        sides: outputs of d0, and of d1.
        datasets: d0 and d1.
    """
    plain = [[output.output if isinstance(output, Timed) else output for output in outputs] for outputs in sides]
    keys = [[key(output) for output in outputs] for outputs in plain]
    counts = [Counter(side) for side in keys]
    found: list[Pool] = []
    for side, outputs in enumerate(plain):
        examples = dict(zip(keys[side], outputs, strict=True))
        repeated = {k: examples[k] for k, times in counts[side].items() if times > 1 and not_whole(examples[k])}
        if not repeated or len(examples) == 1:
            continue
        numbers = [number for value in repeated.values() for number in _numbers(value)]
        given = set(_numbers(datasets[side]))
        strong = (
            len(repeated) >= _MIN_REPEATED
            and not any(k in counts[1 - side] for k in repeated)
            and not all(number in given for number in numbers)
            and not _on_a_grid(numbers)
        )
        words = (
            f"the {len(outputs):,} first outputs of d{side} have only {len(examples):,} different values, "
            f"such as {shown(next(iter(repeated.values())))}"
        )
        found.append(Pool(words, strong))
    return max(found, key=lambda pool: pool.strong, default=None)


def _numbers(value: Any, depth: int = 4) -> list[float]:
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
    """Whether they have few digits, or their differences are multiples of the least one."""
    values = np.array(numbers, dtype=np.float64)
    values = values[np.isfinite(values)]
    if np.all(np.round(values, _DECIMALS) == values) or np.all(np.floor(values * _BINARY) == values * _BINARY):
        return True
    scale = float(np.abs(values).max())
    steps = np.diff(np.sort(values))
    steps = steps[steps > 1e-12 * scale]  # what is nearer differs by rounding
    if not len(steps) or steps.sum() > _STEPS * steps.min():
        return not len(steps)
    multiples = steps / steps.min()
    return bool(np.all(np.abs(multiples - np.round(multiples)) < 1e-6 * multiples + 1e-9 * scale / steps.min()))
