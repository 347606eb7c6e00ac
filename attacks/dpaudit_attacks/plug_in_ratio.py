"""Likelihood ratios from the frequencies of each value, for outputs with few values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpaudit.numerics.arrays import Array
from dpaudit_attacks.ratios import Labels, label_ratios

_MAX_VALUES = 4096  # maximum number of different outputs
_MIN_MEAN_OCCURRENCES = 4  # minimum mean number of outputs with each value; with fewer, ratios are mostly noise


@dataclass(frozen=True, slots=True)
class PlugInRatio:
    """The optimal attack on discrete outputs if every value has occurred often."""

    name: ClassVar[str] = "plug_in_ratio"
    former_names: ClassVar[tuple[str, ...]] = ("events",)
    sees: ClassVar[str] = "features"
    calibrated: ClassVar[bool] = True

    def suits(self, outputs0: Array, outputs1: Array) -> bool:
        """Return whether the outputs take few values, and each value often on average."""
        outputs = np.concatenate([outputs0, outputs1])
        if len(set(_rows(outputs[:: max(1, len(outputs) // 200)]))) > 150:
            return False  # counting the values of all outputs would be slow and have the same result
        return len(set(_rows(outputs))) <= min(_MAX_VALUES, len(outputs) // _MIN_MEAN_OCCURRENCES)

    def fit(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """Fit to arrays (n, d); return a function from such arrays to log-likelihood ratios in nats.

        Unknown values have the log-likelihood ratio 0.
        """
        if outputs0.shape[1] == 1:
            known = np.unique(np.concatenate([_bits(outputs0), _bits(outputs1)]))

            def places(outputs: Array) -> Labels:
                bits = _bits(outputs)
                place = np.minimum(np.searchsorted(known, bits), len(known) - 1)
                return np.where(known[place] == bits, place, -1)[:, None]

            ratio = label_ratios(places(outputs0), places(outputs1), [len(known)])
            return lambda outputs: ratio(places(outputs))

        values = {row: index for index, row in enumerate(dict.fromkeys(_rows(np.concatenate([outputs0, outputs1]))))}

        def labels(outputs: Array) -> Labels:
            return np.array([values.get(row, -1) for row in _rows(outputs)], dtype=np.intp).reshape(-1, 1)

        ratios = label_ratios(labels(outputs0), labels(outputs1), [len(values)])
        return lambda outputs: ratios(labels(outputs))

    def fit_second_stage(self, outputs0: Array, outputs1: Array, rng: np.random.Generator) -> Callable[[Array], Array]:
        """Fit in the same way as `fit`."""
        return self.fit(outputs0, outputs1, rng)


def _rows(outputs: Array) -> list[bytes]:
    """Return rows as keys.  Rows with equal bits have equal keys, so NaN equals NaN, but -0.0 is not 0.0."""
    return [row.tobytes() for row in np.ascontiguousarray(outputs)]


def _bits(outputs: Array) -> Labels:
    return np.ascontiguousarray(outputs[:, 0]).view(np.int64)
