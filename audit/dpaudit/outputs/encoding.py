"""Encodings, which convert outputs into columns of numbers.

They are fitted to past outputs and never change, so the features of an output depend only on it and on past outputs,
which the validity of every score needs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np

from dpaudit.numerics import EXACT, Array, Flags
from dpaudit.outputs.derived import PER_NUMBER, bits
from dpaudit.outputs.plain import Plain
from dpaudit.outputs.queries import Queries, Targets
from dpaudit.outputs.tables import Parts
from dpaudit.values import OUTPUT, Feature, Label

_MAX_COLUMNS = 96  # maximum number of columns of an encoding, excluding the column for the number of unknown parts
_MAX_CANDIDATES = 1000  # maximum number of candidate columns of each kind before the selection of columns
_MAX_BITS = 16  # maximum number of numbers per output whose binary representation is examined


@dataclass(frozen=True, slots=True)
class PlainEncoding:
    """An encoding of numbers, or of vectors of equal length, with one column for each number.

    The median is subtracted exactly from a column with integers beyond +-2^53, which preserves the last bits.
    """

    single: bool  # True if each output is a number, and False if each output is a vector
    columns: int
    centre: tuple[int, ...] | None  # integers to subtract; shape (columns,), or None if no integer is large
    kind: str = "float"  # kind of the past outputs, as returned by `plain.plain_kind`

    @classmethod
    def of(cls, past: Plain, kind: str) -> PlainEncoding:
        """Fit an encoding to an array of past outputs of one kind, which has the shape (n,) or (n, d)."""
        rows = past.reshape(len(past), -1)
        centre = None
        if past.dtype.kind in "iu" and past.dtype.itemsize == 8 and np.any(np.abs(rows.astype(np.float64)) > EXACT):
            centre = tuple(int(value) for value in np.sort(rows, axis=0)[len(rows) // 2])
        return cls(past.ndim == 1, rows.shape[1], centre, kind)

    @property
    def names(self) -> list[Feature]:
        """The feature of each column."""
        return [OUTPUT] if self.single else [("{}[{}]", OUTPUT, i) for i in range(self.columns)]

    @property
    def numeric(self) -> int:
        """The number of leading columns that are numbers of the output."""
        return self.columns

    def features(self, array: Plain) -> Array:
        """Return the features of an array of n outputs as an array of shape (n, columns)."""
        rows = array.reshape(len(array), self.columns)
        if self.centre is None:
            return rows.astype(np.float64, copy=False)
        centre = np.array(self.centre, dtype=rows.dtype if rows.dtype.itemsize == 8 else np.int64)
        wide = rows.astype(centre.dtype)
        far = wide.astype(np.float64) - centre.astype(np.float64)
        with np.errstate(over="ignore"):
            near = np.where(wide >= centre, (wide - centre).astype(np.float64), -((centre - wide).astype(np.float64)))
        return np.where(np.abs(far) < 2.0**62, near, far)

    def bits(self, array: Plain) -> Array:
        """Return the features of the bits of the first 16 columns as an array of shape (n, 3 min(columns, 16))."""
        rows = array.reshape(len(array), self.columns)
        return np.hstack([bits(rows[:, j]) for j in range(min(self.columns, _MAX_BITS))])


@dataclass(frozen=True, slots=True, eq=False)
class PartsEncoding:
    """An encoding that represents outputs of any type by their named parts.

    It has one column for each number (NaN if missing), for each frequent value of a label and for each count.  The last
    column counts the output's unknown parts, which occurred in fewer than two of the past outputs.
    """

    numbers: tuple[Feature, ...]
    centre: tuple[int, ...]  # integers that are subtracted from the numbers; 0 for numbers without large integers
    labels: tuple[tuple[Feature, Label], ...]
    counts: tuple[Feature, ...]
    known_parts: frozenset[Feature]
    known_labels: frozenset[tuple[Feature, Label]]
    exact: tuple[Feature, ...]  # the numbers whose binary representation is examined
    table_queries: Queries | None = None  # queries of the tables among the parts; None if there are no tables

    @classmethod
    def of(cls, past: Sequence[Parts], side: Flags, targets: Targets = (None, None)) -> PartsEncoding:
        """Fit an encoding to the parts of n past outputs; `side` (n,) is true for outputs on d1."""
        numbers: Counter[Feature] = Counter(chain.from_iterable(parts.numbers for parts in past))
        counts: Counter[Feature] = Counter(chain.from_iterable(parts.counts for parts in past))
        labels: Counter[tuple[Feature, Label]] = Counter(chain.from_iterable(parts.labels.items() for parts in past))
        known = frozenset(pair for pair, times in labels.items() if times > 1)
        of_part: Counter[Feature] = Counter()
        columns: list[tuple[Feature, Label]] = []
        for (name, label), times in labels.most_common():
            # at most 32 values of one label have separate columns
            if 1 < times < len(past) and of_part[name] < 32:
                of_part[name] += 1
                columns.append((name, label))
        large = {
            name
            for parts in past
            for name, value in parts.numbers.items()
            if isinstance(value, int) and not -EXACT <= value <= EXACT
        }
        centres = {
            name: _centre(parts.numbers.get(name) for parts in past) if name in large else 0
            for name, _ in numbers.most_common(_MAX_CANDIDATES)
        }
        whole = cls(
            numbers=tuple(centres),
            centre=tuple(centres.values()),
            labels=tuple(columns[:_MAX_CANDIDATES]),
            counts=tuple(name for name, _ in counts.most_common(_MAX_CANDIDATES)),
            known_parts=frozenset(name for found in (numbers, counts) for name, n in found.items() if n > 1),
            known_labels=known,
            exact=(),
            table_queries=Queries.of(past, side, targets),
        )
        return whole._pruned(whole.features(past), side)

    def _pruned(self, matrix: Array, side: Flags) -> PartsEncoding:
        """Drop constant and duplicate columns, and then those that differ least between the datasets, if many."""
        seen: set[bytes] = set()
        keep: list[int] = []
        for j, column in enumerate(np.ascontiguousarray(matrix[:, :-1].T)):
            key = column.tobytes()
            if key not in seen and not np.all((column == column[0]) | (np.isnan(column) & np.isnan(column[0]))):
                seen.add(key)
                keep.append(j)
        if len(keep) > _MAX_COLUMNS:
            # how much each column's mean, or its rate of missing values, differs between d0 and d1, standardised
            columns = matrix[:, keep]
            strength = np.zeros(len(keep))
            with np.errstate(all="ignore"):
                missing = np.isnan(columns)
                some = np.flatnonzero(missing.any(axis=0))  # the columns with at least one missing value
                strength[some] = _gap(missing[:, some].astype(float), side)
                strength = np.maximum(strength, _gap(np.nan_to_num(columns, posinf=1e300, neginf=-1e300), side))
            keep = sorted(keep[i] for i in np.argsort(-strength, kind="stable")[:_MAX_COLUMNS])
        n, m = len(self.numbers), len(self.labels)
        kept = [j for j in keep if j < n]
        return PartsEncoding(
            numbers=tuple(self.numbers[j] for j in kept),
            centre=tuple(self.centre[j] for j in kept),
            labels=tuple(self.labels[j - n] for j in keep if n <= j < n + m),
            counts=tuple(self.counts[j - n - m] for j in keep if j >= n + m),
            known_parts=self.known_parts,
            known_labels=self.known_labels,
            exact=tuple(self.numbers[j] for j in kept)[:_MAX_BITS],
            table_queries=self.table_queries,
        )

    @property
    def numeric(self) -> int:
        """The number of leading columns that are numbers of the output."""
        return len(self.numbers)

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.numbers) + len(self.labels) + len(self.counts) + 1

    @property
    def names(self) -> list[Feature]:
        """The feature of each column."""
        return [
            *self.numbers,
            *(("{} is {}", name, label) for name, label in self.labels),
            *self.counts,
            ("number of parts seen at most once before",),
        ]

    def features(self, outputs: Sequence[Parts]) -> Array:
        """Return the features of n outputs, given the parts of each output, as an array of shape (n, columns)."""
        first_label, first_count = len(self.numbers), len(self.numbers) + len(self.labels)
        matrix = np.zeros((len(outputs), self.columns))
        label_at = {label: j for j, label in enumerate(self.labels, first_label)}
        count_at = {name: j for j, name in enumerate(self.counts, first_count)}
        for row, parts in zip(matrix, outputs, strict=True):
            row[:first_label] = self._numbers(parts)
            # The inner loops iterate over the columns or over the parts of the output, whichever are fewer.
            if len(label_at) < len(parts.labels):
                get = parts.labels.get
                row[first_label:first_count] = [get(name) == label for name, label in self.labels]
            else:
                row[[j for label in parts.labels.items() if (j := label_at.get(label)) is not None]] = 1.0
            if len(count_at) < len(parts.counts):
                row[first_count:-1] = list(map(parts.counts.get, self.counts, repeat(0.0)))
            else:
                for name, count in parts.counts.items():
                    if (j := count_at.get(name)) is not None:
                        row[j] = count
            row[-1] = self._unknown(parts)
        return matrix

    def _numbers(self, parts: Parts) -> Array | list[float]:
        """Return the numbers of an output, less their centres, and NaN for missing numbers."""
        found = list(map(parts.numbers.get, self.numbers, repeat(math.nan)))
        if not any(self.centre):
            try:
                return np.array(found, dtype=np.float64)
            except OverflowError:  # an integer that exceeds the largest float
                pass
        return [
            _float(value if not centre else value - (centre if isinstance(value, int) else _float(centre)))
            for value, centre in zip(found, self.centre, strict=True)
        ]

    def _unknown(self, parts: Parts) -> int:
        """Return the number of parts of an output that this encoding does not know."""
        labels, known = parts.labels.items(), self.known_parts
        unknown = 0 if self.known_labels.issuperset(labels) else len(labels - self.known_labels)
        for names in (parts.numbers, parts.counts):
            unknown += 0 if known.issuperset(names) else len(names.keys() - known)
        return unknown

    def queries(self, outputs: Sequence[Parts]) -> Array:
        """Return the answers to the queries of tables for n outputs, (n, queries)."""
        return np.zeros((len(outputs), 0)) if self.table_queries is None else self.table_queries.features(outputs)

    def bits(self, outputs: Sequence[Parts]) -> Array:
        """Return the features of the bits of the numbers in `exact` as an array of shape (n, 3 max(1, len(exact)))."""
        found = [bits([parts.numbers.get(name, math.nan) for parts in outputs]) for name in self.exact]
        return np.hstack(found) if found else np.zeros((len(outputs), PER_NUMBER))


Encoding = PlainEncoding | PartsEncoding


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _centre(values: Any) -> int:
    """Return the median of integers if at least one absolute value exceeds 2**53, and 0 otherwise."""
    known = sorted(value for value in values if isinstance(value, int))
    return known[len(known) // 2] if known and max(-known[0], known[-1]) > EXACT else 0


def _gap(columns: Array, side: Flags) -> Array:
    """Return the difference between the clipped column means on d0 and d1, in standard deviations of each column."""
    low, high = np.quantile(columns.T.copy(), [0.02, 0.98], axis=1)
    clipped = np.where(low < high, np.clip(columns, low, high), np.sign(columns - low))
    difference = clipped[side].mean(axis=0) - clipped[~side].mean(axis=0)
    error = clipped.std(axis=0) + 1e-300
    gap: Array = np.nan_to_num(np.abs(difference) / error)
    return gap
