"""Generators of synthetic tables with one mistake each.  The correct controls are in `catalogue.synthetic`.

Stadler, Oprisanu & Troncoso 2022, and Annamalai, Ganev & De Cristofaro 2024 found such mistakes in released software.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.catalogue.synthetic import Marginals, PateLike, Rounds
from dpaudit.catalogue.synthetic_domain import Cells, Domain, columns_of
from dpaudit.numerics import AnyArray, Array
from dpaudit.values import Dataset


class BoundsFromTable(Marginals, private=False):
    """Wrong: the cells of a column of numbers lie between those of the data; no epsilon.  Control: `Marginals`."""

    def domain_for(self, dataset: Dataset) -> Domain:
        public = self.domain
        bounds = [
            bound and _range(entries, bound)
            for entries, bound in zip(columns_of(dataset, public.columns), public.bounds, strict=True)
        ]
        return replace(public, bounds=tuple(bounds))


@dataclass(frozen=True, kw_only=True)
class DomainFromTable(Marginals, private=False):
    """Wrong: only the categories that occur in the data have counts; no epsilon.  Control: `Marginals`."""

    def domain_for(self, dataset: Dataset) -> Domain:
        public = self.domain
        categories = [
            tuple(name for name in names if name in entries) or names
            for entries, names in zip(columns_of(dataset, public.columns), public.categories, strict=True)
        ]
        return replace(public, categories=tuple(categories))


class NoiseForShares(Marginals, private=False):
    """Wrong: counts get the noise of shares, which are counts divided by the number of records n; no epsilon.

    The noise is too small by a factor of n, and its scale reveals n.  G. Ganev (ganevgv) reported the same mistake in
    conditional distributions as https://github.com/DataResponsibly/DataSynthesizer/issues/34.  Control: `Marginals`.
    """

    def noise_scale(self, cells: Cells) -> float:
        return super().noise_scale(cells) / max(1, len(cells))


@dataclass(frozen=True, kw_only=True)
class EarlyStopping(Rounds, private=False):
    """Wrong: the rounds end as soon as the model is near the data, measured without noise; no epsilon.

    The distance is the mean over columns of the total variation distance.  The number of rows shows the number of
    rounds.  Annamalai, Ganev & De Cristofaro 2024 describe early stopping in released software.  Control: `Rounds`.
    """

    tolerance: float = 0.5

    def rounds_made(self, counts: Array, model: Array, sizes: Sequence[int]) -> Sequence[int]:
        ends = np.cumsum(sizes)[:-1]
        start = np.concatenate([np.full((len(model), 1, len(counts)), 1.0), model], axis=1)
        apart = np.zeros(start.shape[:2])
        for true, parts in zip(np.split(counts, ends), np.split(start, ends, axis=2), strict=True):
            apart += np.abs(_shares(parts) - _shares(true)).sum(axis=2) / 2 / len(sizes) if true.sum() else 0.0
        near = apart <= self.tolerance
        near[:, -1] = True
        return [int(made) for made in near.argmax(axis=1)]


class SharedRecords(PateLike, private=False):
    """Wrong: all teachers see all records, so one record changes all votes; (teachers epsilon)-DP.

    Ganev, Annamalai & De Cristofaro 2024, "The elusive pursuit of reproducing PATE-GAN", found such teachers in
    released implementations.  Control: `PateLike`.
    """

    def votes(self, agree: AnyArray, rng: np.random.Generator) -> Array:
        return self.teachers * np.asarray(agree.any(axis=0), dtype=np.float64)


def _shares(counts: Array) -> Array:
    positive = np.maximum(counts, 0.0)
    total = positive.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(total > 0, positive / np.maximum(total, 1e-300), 1 / counts.shape[-1]))


def _range(entries: Sequence[object], public: tuple[float, float]) -> tuple[float, float]:
    known = [float(x) for x in entries if isinstance(x, int | float) and math.isfinite(x)]
    if not known:
        return public
    return min(known), max(min(known) + 1e-9, max(known))
