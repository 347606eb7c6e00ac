"""Runs a query of a database: the mechanism of the key `sql`, in this process and in environments without dpaudit."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from contextlib import closing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any
    from typing import Any as Generator  # a numpy Generator, or a random.Random if the environment has no numpy

    from dpaudit.values import Dataset, Output


class Queries:
    """A query on tables that hold the dataset, over a connection of Python's DB-API (PEP 249).

    Each call makes a new connection, prepares it, and runs the query once for each output.
    """

    def __init__(self, connect: str, query: str, prepare: list[str], folder: str) -> None:
        module, _, name = connect.rpartition(":")
        if folder not in sys.path:
            sys.path.append(folder)  # at the end, so that a user's random.py does not replace Python's module
        found: Any = (
            _from_file(os.path.join(folder, module)) if module.endswith(".py") else importlib.import_module(module)
        )
        for part in name.split("."):
            found = getattr(found, part)
        self._connect: Callable[..., Any] = found
        self._query, self._prepare = query, prepare
        self.libraries = (module.split(".")[0],)

    def sample(self, dataset: Dataset, n: int, rng: Generator) -> list[Output]:
        """Return the rows of n queries; of one row with one column, its entry."""
        rows = [tuple(row) for row in _rows(dataset)]
        with closing(self._connect(rng) if _takes_one(self._connect) else self._connect()) as connection:
            cursor = connection.cursor()
            for statement in self._prepare:
                if "{dataset}" not in statement:
                    cursor.execute(_seeded(statement, rng))
                elif rows:
                    statement = statement.replace("{dataset}", _places(connection, len(rows[0])))
                    cursor.executemany(_seeded(statement, rng), rows)
            return [_output(cursor, _seeded(self._query, rng)) for _ in range(n)]


def _from_file(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("_dpaudit_connect", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _takes_one(connect: Callable[..., Any]) -> bool:
    """Whether a function needs an argument, which is the generator of the run."""
    try:
        inspect.signature(connect).bind()
    except TypeError:
        return True
    except ValueError:  # a function of compiled code
        pass
    return False


def _seeded(statement: str, rng: Generator) -> str:
    return statement.replace("{seed}", str(int(rng.random() * (2**31 - 1)))) if "{seed}" in statement else statement


def _rows(dataset: Any) -> Any:
    """Return the rows of a list of records or of numbers, of a dict of columns, or of one number."""
    if isinstance(dataset, dict):
        return zip(*dataset.values())  # noqa: B905  (Python 3.8 has no strict)
    if not isinstance(dataset, (list, tuple)):
        return dataset.tolist() if hasattr(dataset, "tolist") else [[dataset]]
    if dataset and isinstance(dataset[0], dict):
        return [[row.get(name) for name in dataset[0]] for row in dataset]
    return [row if isinstance(row, (list, tuple)) else [row] for row in dataset]


def _places(connection: Any, columns: int) -> str:
    """Return the placeholders of a row, as the module of the connection writes them."""
    style = getattr(sys.modules.get(type(connection).__module__.split(".")[0]), "paramstyle", "qmark")
    one = {"format": "%s", "pyformat": "%s", "numeric": ":{}", "named": ":{}"}.get(style, "?")
    return ", ".join(one.format(number) for number in range(1, columns + 1))


def _output(cursor: Any, query: str) -> Output:
    cursor.execute(query)
    rows = [tuple(row) for row in cursor.fetchall()]
    return rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else rows
