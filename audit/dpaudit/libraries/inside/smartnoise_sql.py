"""Reads and runs queries of smartnoise-sql on one table."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpaudit.values import Dataset, JsonObject, Output

MODULE = "snsql"  # the top-level module of the library

_TYPES = {"int": "int64", "float": "float64", "string": "object", "boolean": "object", "datetime": "object"}


class Query:
    """A query with the metadata of its table and the privacy loss of each column."""

    def __init__(self, query: str, metadata: JsonObject, epsilon: float = 1.0, delta: float = 1e-5) -> None:
        self.query, self.metadata, self.epsilon, self.delta = query, metadata, epsilon, delta
        (schemas,) = metadata.values()
        (tables,) = schemas.values()
        (self.table,) = tables.values()

    def columns(self) -> Iterator[tuple[str, JsonObject]]:
        for name, described in self.table.items():
            if isinstance(described, dict):
                yield name, described

    def reader(self, dataset: Dataset) -> Any:
        """Return a private reader of a table of plain values."""
        snsql, pandas = import_module("snsql"), import_module("pandas")
        frame = pandas.DataFrame()
        for name, described in self.columns():
            entries = dataset.get(name, [])
            frame[name] = pandas.Series(entries, dtype="object" if None in entries else _TYPES[described["type"]])
        privacy = snsql.Privacy(epsilon=self.epsilon, delta=self.delta)
        return snsql.from_df(frame, privacy=privacy, metadata=self.metadata)


def called(call: str, arguments: Any) -> Query:
    return Query(call, **(arguments or {}))


def facts(made: Query, d_in: Any = 1) -> JsonObject:
    epsilon, delta = made.reader({}).get_privacy_cost(made.query)
    users = [name for name, described in made.columns() if described.get("private_id")]
    return {
        "columns": {name: dict(described) for name, described in made.columns()},
        "user": None if made.table.get("row_privacy") or not users else users[0],
        "d_out": [float(epsilon), float(delta)],
        "censored": bool(made.table.get("censor_dims", True)),
        "sampled": bool(made.table.get("sample_max_ids", True)),
        "max_ids": int(made.table.get("max_ids", 1)),
        "clamped": bool(made.table.get("clamp_columns", True)),
        "query": made.query,
        "version": metadata.version("smartnoise-sql"),
    }


def sample(made: Query, dataset: Dataset, n: int) -> list[Output]:
    reader = made.reader(dataset)
    return [[tuple(row) for row in reader.execute(made.query)[1:]] for _ in range(n)]
