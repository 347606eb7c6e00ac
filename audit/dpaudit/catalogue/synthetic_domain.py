"""The base of generators of synthetic tables, and a table's public domain, which reads and writes records as cells."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.catalogue.promises import Pure, check_count
from dpaudit.claims import TradeoffFunction
from dpaudit.numerics import AnyArray, Array
from dpaudit.pairs.search import bounds_or_list, numeric, read_schema
from dpaudit.values import Dataset, Record

Schema = Mapping[str, Sequence[Any]]  # for each column [low, high], which are two numbers, or a list of categories

Cells = npt.NDArray[np.intp]
"""The cell of each record in each column, (records, columns); -1 for an entry outside the domain."""

SMALL: Schema = {"city": ("Bonn", "Jena", "Ulm"), "sex": ("f", "m"), "age": (0, 100)}

TableOutput = dict[str, Any]  # a table as a dict of columns, or noisy counts by name

_MAX_CELLS = 100_000


@dataclass(frozen=True, slots=True)
class Domain:
    """The columns of a table.  A column of numbers has `bins` cells of equal width, other columns one per category."""

    columns: tuple[str, ...]
    bounds: tuple[tuple[float, float] | None, ...]
    categories: tuple[tuple[Record, ...], ...]
    bins: int

    @classmethod
    def of(cls, schema: Schema, bins: int) -> Domain:
        check_count("bins", bins)
        found = read_schema({column: bounds_or_list(entries) for column, entries in read_schema(schema).items()})
        bounds = [(float(entries[0]), float(entries[1])) if numeric(entries) else None for entries in found.values()]
        categories = [() if numeric(entries) else tuple(entries) for entries in found.values()]
        return cls(tuple(schema), tuple(bounds), tuple(categories), bins)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(
            self.bins if bound else len(names) for bound, names in zip(self.bounds, self.categories, strict=True)
        )

    def cells(self, dataset: Dataset) -> Cells:
        """Read records; numbers are clamped to their bounds, and a missing entry or an unknown category has no cell."""
        found = []
        columns = columns_of(dataset, self.columns)
        for entries, bound, names in zip(columns, self.bounds, self.categories, strict=True):
            if bound is None:
                places = {name: index for index, name in enumerate(names)}
                found.append([_place(entry, places) for entry in entries])
                continue
            low, high = bound
            numbers = [x if isinstance(x, int | float) else math.nan for x in entries]
            # A number is moved to its bounds before it becomes a float, because a large integer has no float.
            shares = np.array([x if x != x else (min(max(x, low), high) - low) / (high - low) for x in numbers])
            cell = np.minimum(np.floor(shares * self.bins), self.bins - 1)
            found.append(np.where(np.isnan(cell), -1, np.nan_to_num(cell)).astype(int).tolist())
        return np.array(found, dtype=np.intp).reshape(len(self.columns), -1).T

    def tables(self, cells: Cells, rng: np.random.Generator) -> list[dict[str, AnyArray]]:
        """Write cells of n tables, (n, rows, columns), as dicts of columns; a number is uniform in its cell."""
        written = []
        for j, (bound, names) in enumerate(zip(self.bounds, self.categories, strict=True)):
            if bound is None:
                one_type = len(set(map(type, names))) == 1
                kept = np.array(names) if one_type else np.fromiter(names, dtype=object, count=len(names))
                written.append(kept[cells[..., j]])
                continue
            inside = rng.random(cells.shape[:2])
            written.append(bound[0] + (bound[1] - bound[0]) * (cells[..., j] + inside) / self.bins)
        return [dict(zip(self.columns, table, strict=True)) for table in zip(*written, strict=True)]

    def every_cell(self) -> Cells:
        if math.prod(self.sizes) > _MAX_CELLS:
            raise ValueError(f"the domain must have at most {_MAX_CELLS:,} cells, got {math.prod(self.sizes):,}")
        return np.array(list(itertools.product(*map(range, self.sizes))), dtype=np.intp)


def counts_of(cells: Cells, columns: Sequence[int], sizes: Sequence[int]) -> Array:
    """Return the number of records in each cell of a marginal, in its shape; records without a cell are not counted."""
    found = np.zeros([sizes[j] for j in columns])
    chosen = cells[:, list(columns)]
    np.add.at(found, tuple(chosen[(chosen >= 0).all(axis=1)].T), 1.0)
    return found


def drawn(noisy: Array, uniform: Array) -> Cells:
    """Draw cells, (n, rows), in proportion to noisy counts, which are post-processed: negative counts are 0."""
    weights = np.maximum(noisy, 0.0)
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)
    upper = np.cumsum(weights, axis=1)
    return np.asarray((uniform[:, :, None] * upper[:, None, -1:] >= upper[:, None, :-1]).sum(axis=2))


def _place(entry: Record, places: Mapping[Record, int]) -> int:
    try:
        return places.get(entry, -1)
    except TypeError:  # an entry without a hash, such as a list, is no category
        return -1


def columns_of(dataset: Dataset, names: Sequence[str]) -> list[list[Record]]:
    """Return the entries of each column of a list of dicts, a dict of columns, or a data frame."""
    if isinstance(dataset, Mapping) or hasattr(dataset, "columns"):
        return [list(dataset[name]) for name in names]
    return [[row.get(name) for row in dataset] for name in names]


@dataclass(frozen=True, kw_only=True)
class Generator(Pure, inputs={"relation": "add_remove", "schema": SMALL, "tiny": True}, private=True):
    """A generator of tables that is claimed to be epsilon-DP for one added or removed record."""

    epsilon: float = 1.0
    rows: int = 100  # number of rows of a synthetic table
    bins: int = 4  # number of cells of a column of numbers
    schema: Schema = field(default_factory=lambda: SMALL)  # for each column [low, high] or a list of categories
    white_box: bool = False  # whether the noisy counts are the output

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("rows", self.rows)
        Domain.of(self.schema, self.bins)

    @property
    def domain(self) -> Domain:
        return Domain.of(self.schema, self.bins)

    def domain_for(self, dataset: Dataset) -> Domain:
        """Return the domain that the generator uses for a dataset; it is public and independent of the dataset."""
        return self.domain

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Sequence[TableOutput]:
        domain = self.domain_for(dataset)
        return self.generated(domain.cells(dataset), domain, n, rng)

    def generated(self, cells: Cells, domain: Domain, n: int, rng: np.random.Generator) -> Sequence[TableOutput]:
        """Return n outputs for records that were read as cells."""
        raise NotImplementedError

    def check_neighbours(self, d0: Dataset, d1: Dataset, claim: TradeoffFunction) -> None:
        """Raise ValueError unless one dataset consists of all rows of the other and one more row."""
        sizes = [len(columns_of(dataset, self.domain.columns[:1])[0]) for dataset in (d0, d1)]
        if abs(sizes[0] - sizes[1]) != 1:
            raise ValueError(
                f"d0 has {sizes[0]} rows and d1 has {sizes[1]}, but the claim is about one added or removed row"
            )
        fewer, more = sorted((self.domain.cells(dataset) for dataset in (d0, d1)), key=len)
        changed = Counter(map(tuple, fewer.tolist())) - Counter(map(tuple, more.tolist()))
        if changed:
            raise ValueError(
                f"the dataset with more rows lacks {changed.total():,} rows of the other dataset, but the claim is "
                "about one added or removed row"
            )
