"""Fits and samples generators of synthetic tables of any library."""

from __future__ import annotations

import functools
from importlib import import_module, metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dpaudit.values import Dataset, Foreign, JsonObject, Output

MODULE = "dpaudit"
"""Not used: the library differs from generator to generator, and `Generator.library` names it."""

_KEYS = ("schema", "make", "fit", "sample", "rows", "fit_arguments", "sample_arguments", "table")


class Generator:
    """A generator of synthetic tables in the fit-and-sample habit.

    Args:
        make: A class or a function that makes a new object for each run.
        schema: For each column [low, high], which are two numbers, or a list of categories.
        arguments: The arguments of `make`.
        fit: The name of a method of the object, or a function (object, table).
        sample: The name of a method of the object, or a function (object, rows).
        rows: Number of rows of a synthetic table.
        fit_arguments: Further arguments of the method `fit`.
        sample_arguments: Further arguments of the method `sample`.
        table: "frame" passes a data frame of pandas to `fit`, "rows" a list of dicts, and "columns" a dict of columns.
    """

    def __init__(
        self,
        make: Foreign,
        schema: JsonObject,
        arguments: JsonObject | None = None,
        fit: Foreign = "fit",
        sample: Foreign = "sample",
        rows: int = 100,
        fit_arguments: JsonObject | None = None,
        sample_arguments: JsonObject | None = None,
        table: str = "frame",
    ) -> None:
        if table not in ("frame", "rows", "columns"):
            raise ValueError("table must be frame, rows or columns, got " + repr(table))
        self.make, self.schema, self.arguments = make, schema, dict(arguments or {})
        self.fit, self.sample, self.rows, self.table = fit, sample, rows, table
        self.fit_arguments, self.sample_arguments = dict(fit_arguments or {}), dict(sample_arguments or {})

    @property
    def library(self) -> str:
        """The top-level module of the class."""
        return str(getattr(self.make, "__module__", "")).partition(".")[0]

    @property
    def name(self) -> str:
        """The name of the class or function."""
        return str(getattr(self.make, "__name__", type(self.make).__name__))

    def prepared(self, dataset: Dataset) -> Foreign:
        """Return the rows of a dataset, which are dicts, in the form that `fit` takes."""
        if self.table == "rows":
            return [dict(row) for row in dataset]
        columns = {name: [row[name] for row in dataset] for name in self.schema}
        return columns if self.table == "columns" else import_module("pandas").DataFrame(columns)

    def run(self, dataset: Dataset) -> Output:
        """Make a new object, fit it to a dataset, and return a synthetic table.

        If `fit` or `sample` raises an exception, the exception is the output, because an analyst sees it.
        """
        made, table = self.make(**self.arguments), self.prepared(dataset)
        try:
            fitted = (
                self.fit(made, table, **self.fit_arguments)
                if callable(self.fit)
                else getattr(made, self.fit)(table, **self.fit_arguments)
            )
            # some libraries return a fitted copy
            model = fitted if fitted is not None and hasattr(fitted, str(self.sample)) else made
            if callable(self.sample):
                return self.sample(model, self.rows, **self.sample_arguments)
            return getattr(model, self.sample)(self.rows, **self.sample_arguments)
        except ImportError:  # the environment lacks a package, which says nothing about the dataset
            raise
        except Exception as error:
            return {"raised": type(error).__name__, "message": str(error)[:200]}


def called(call: str, arguments: Foreign) -> Generator:
    """Return a generator.

    Args:
        call: The address of the class, such as "dpmm.pipelines.mst:MSTPipeline".
        arguments: A dict with the `schema`, and the other arguments of `Generator`; `make` holds the arguments of the
            class.

    Raises:
        LookupError: If there is no such class, or an argument is unknown.
    """
    module, _, name = call.partition(":")
    if not name or name.startswith("_"):
        raise LookupError("call must be MODULE:CLASS, such as dpmm.pipelines.mst:MSTPipeline, got " + repr(call))
    found = import_module(module)
    if not hasattr(found, name):
        raise LookupError(module + " has no " + name)
    given = dict(arguments or {})
    unknown = sorted(set(given) - set(_KEYS))
    if unknown or not given.get("schema"):
        raise LookupError("arguments must have schema, and may have " + ", ".join(_KEYS[1:]) + f"; got {sorted(given)}")
    own = given.pop("make", None)
    return Generator(getattr(found, name), given.pop("schema"), own, **given)


def facts(made: Generator, d_in: Foreign = 1) -> JsonObject:
    """Return plain facts about a generator.

    Args:
        made: The generator.
        d_in: Not used.

    Returns:
        A dict with the `schema`, the `name`, and `epsilon` and `delta` among the arguments or attributes of the object;
        None if there is no such number.
    """
    thing = made.make(**made.arguments)

    def number(name: str) -> float | None:
        value = made.arguments.get(name, getattr(thing, name, None))
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    return {
        "schema": {name: list(entries) for name, entries in made.schema.items()},
        "name": made.name,
        "epsilon": number("epsilon"),
        "delta": number("delta"),
        "version": _version(made.library),
    }


@functools.lru_cache(maxsize=None)  # noqa: UP033  (Python 3.8)
def _version(module: str) -> str:
    try:
        names = metadata.packages_distributions().get(module, [module])  # Python 3.10 or later
        return names[0] + " " + metadata.version(names[0])
    except Exception:  # a class of a script, or an older Python
        return module or "unknown"


def runner(made: Generator) -> Callable[[Dataset, int], list[Output]]:
    """Return a function `(dataset, n)` that fits and samples n times.

    Args:
        made: The generator.
    """

    def run(dataset: Dataset, n: int) -> list[Output]:
        return [made.run(dataset) for _ in range(n)]

    return run
