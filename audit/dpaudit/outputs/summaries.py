"""Adds the parts of sequences of numbers, of texts, and of tables.

The parts of a sequence are its entries or the means of its pieces, and summaries that do not depend on the order.  The
parts of a table do not depend on the order of its rows: marginals, domains, and frequent rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpaudit.numerics import AnyArray, Array
from dpaudit.outputs.entries import LISTED, TEXT, label
from dpaudit.outputs.tables import MAX_ROWS, Column, Parts, Table, some_rows
from dpaudit.values import Feature

ENTRIES = 64  # maximum number of individually read entries, and number of pieces of a longer sequence
_HUGE = 1e300  # upper limit of absolute values in summaries, so that sums do not overflow


def vector(parts: Parts, name: Feature, entries: AnyArray) -> None:
    """Add the parts of an ordered sequence of numbers."""
    if len(entries) <= ENTRIES:
        for index, entry in enumerate(entries.tolist()):
            parts.numbers[("{}[{}]", name, index)] = entry
    else:  # the mean of a piece detects a large change of a single entry
        cuts = np.linspace(0, len(entries), ENTRIES + 1).astype(int)
        with np.errstate(all="ignore"):
            means = np.add.reduceat(entries.astype(np.float64), cuts[:-1]) / np.diff(cuts)
        for index, mean in enumerate(means.tolist()):
            parts.numbers[("mean of {}[{}:{}]", name, int(cuts[index]), int(cuts[index + 1]))] = mean
    summary(parts, name, entries)


def summary(parts: Parts, name: Feature, entries: AnyArray | list[float]) -> None:
    """Add the parts of a sequence of numbers that do not depend on the order of the numbers."""
    if len(entries) <= ENTRIES:
        _short_summary(parts, name, entries if isinstance(entries, list) else entries.tolist())
        return
    values = np.ascontiguousarray(entries, dtype=np.float64)
    known = np.isfinite(values)
    finite = values if known.all() else values[known]
    parts.counts[("number of entries of {} that are not finite", name)] = len(values) - len(finite)
    parts.counts[("number of zeros in {}", name)] = float(np.count_nonzero(values == 0))
    if len(finite):
        with np.errstate(over="ignore"):
            parts.numbers[("sum of {}", name)] = float(finite.sum())
            parts.numbers[("norm of {}", name)] = float(np.sqrt(np.einsum("i,i", finite, finite)))
        parts.numbers[("least of {}", name)], parts.numbers[("largest of {}", name)] = (
            float(finite.min()),
            float(finite.max()),
        )


def _short_summary(parts: Parts, name: Feature, entries: list[float]) -> None:
    """Add the same parts as `summary` for a short list, without creating a numpy array."""
    finite = [float(entry) for entry in entries if math.isfinite(entry)]
    parts.counts[("number of entries of {} that are not finite", name)] = len(entries) - len(finite)
    parts.counts[("number of zeros in {}", name)] = finite.count(0.0)
    if finite:
        parts.numbers[("sum of {}", name)] = sum(finite)
        parts.numbers[("norm of {}", name)] = math.hypot(*finite)
        parts.numbers[("least of {}", name)], parts.numbers[("largest of {}", name)] = min(finite), max(finite)


def floats(entries: Iterable[object]) -> list[float]:
    """Return the entries that are numbers with an absolute value below 1e300, converted to floats."""
    kinds = (int, float, np.integer, np.floating)
    return [float(x) for x in entries if isinstance(x, kinds) and -_HUGE < x < _HUGE]


def bag(parts: Parts, name: Feature, entries: AnyArray) -> None:
    """Add the parts of an unordered collection of numbers, such as a column of a data frame."""
    known = np.sort(entries[~np.isnan(entries)])
    parts.counts[("missing values of {}", name)] = len(entries) - len(known)
    summary(parts, name, known)
    if len(known):
        parts.numbers[("mean of {}", name)] = float(known.mean())
        for quantile in (25, 50, 75):
            parts.numbers[("{} % quantile of {}", quantile, name)] = float(known[(len(known) - 1) * quantile // 100])
        parts.counts[("distinct values of {}", name)] = float(1 + np.count_nonzero(np.diff(known)))


_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def text(parts: Parts, name: Feature, value: str) -> None:
    """Add the parts of a text."""
    if len(value) > TEXT or type(value) is not str:  # a subclass of str may compare its texts in its own way
        _add_text(parts, name, value)
        if len(value) > TEXT:
            vector(parts, name, np.frombuffer(value.encode("utf-8", "replace"), np.uint8).astype(np.float64))
        return
    known = _parts_of_text(name, value)
    parts.labels.update(known.labels)
    parts.numbers.update(known.numbers)
    parts.counts.update(known.counts)


@lru_cache(maxsize=4096)
def _parts_of_text(name: Feature, text: str) -> Parts:
    """Return the parts of a short text, which often occurs again in another output."""
    parts = Parts()
    _add_text(parts, name, text)
    return parts


def _add_text(parts: Parts, name: Feature, text: str) -> None:
    parts.labels[name] = label(text)
    parts.numbers[("length of {}", name)] = len(text)
    if text:
        parts.labels[("first character of {}", name)], parts.labels[("last character of {}", name)] = text[0], text[-1]
    for index, found in enumerate(_NUMBER.findall(text[:LISTED])[:3]):
        parts.numbers[("number {} in {}", index + 1, name)] = float(found)
    for word in _WORD.findall(text[:LISTED])[:ENTRIES]:
        parts.counts[("word {} in {}", label(word), name)] = 1


def table(parts: Parts, name: Feature, columns: Mapping[str, Column]) -> None:
    """Add the parts of a table."""
    parts.tables[name] = Table.of(columns)
    numeric: dict[Feature, Array] = {}
    for title, entries in columns.items():
        parts.counts[("column {} in {}", title, name)] = 1
        where = ("{}[{}]", name, title)
        parts.labels[("type of {}", where)] = (entries.kind,)
        if entries.numbers is not None:
            numeric[where] = entries.numbers
            bag(parts, where, entries.numbers)
        for place in _frequent(entries.counts):
            parts.counts[("number of {} in {}", label(entries.values[place]), where)] = float(entries.counts[place])
    _rows(parts, name, list(columns.values()))
    paired = list(numeric)[:6]
    for i, first in enumerate(paired):
        for second in paired[:i]:
            product = numeric[first] * numeric[second]
            known = product[~np.isnan(product)]
            parts.numbers[("mean of {} times {}", second, first)] = float(known.mean()) if len(known) else np.nan


def _rows(parts: Parts, name: Feature, columns: list[Column]) -> None:
    """Add the number of occurrences of each frequent row."""
    codes = np.zeros(min(MAX_ROWS, len(columns[0].codes) if columns else 0), dtype=np.intp)
    for entries in columns:  # the codes of distinct rows stay below the number of rows
        _, codes = np.unique(codes * len(entries.values) + some_rows(entries.codes), return_inverse=True)
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    parts.numbers[("largest number of equal rows of {}", name)] = int(counts.max()) if len(counts) else 0
    for place in _frequent(counts):
        row = tuple(entries.entry(int(first[place])) for entries in columns)
        parts.counts[("number of rows {} in {}", label(row), name)] = float(counts[place])


def _frequent(counts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the places of the values that are counted: all values if they are few, otherwise values that recur."""
    order = np.argsort(-counts, kind="stable")[:ENTRIES]
    return order if len(counts) <= ENTRIES else order[counts[order] > 1]
