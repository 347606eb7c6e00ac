"""Fits and samples generators of synthetic tables of any library."""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import inspect
import numbers
import os
import sys
from importlib import import_module, metadata
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dpaudit.values import Dataset, JsonObject, Output

_outcomes = import_module("dpaudit.running.outcomes")
_worker = import_module("dpaudit.running.worker")

KEYS = ("schema", "make", "fit", "sample", "rows", "fit_arguments", "sample_arguments", "table")
"""The keys of `arguments` about the generator and its tables."""

SEARCH = ("relation", "most", "out_of_domain")  # the keys of `arguments` about the pairs

TABLES = ("frame", "rows", "columns")  # the forms of a table


class Generator:
    """A generator of synthetic tables in the fit-and-sample habit."""

    def __init__(
        self,
        make: Any,
        schema: JsonObject,
        arguments: JsonObject | None = None,
        fit: Any = "fit",
        sample: Any = "sample",
        rows: int = 100,
        fit_arguments: JsonObject | None = None,
        sample_arguments: JsonObject | None = None,
        table: str = "frame",
        search: JsonObject | None = None,
        raises: bool = False,
    ) -> None:
        if table not in TABLES:
            raise ValueError("table must be frame, rows or columns, got " + repr(table))
        self.make, self.schema, self.arguments = make, schema, dict(arguments or {})
        self.fit, self.sample, self.rows, self.table = fit, sample, rows, table
        self.fit_arguments, self.sample_arguments = dict(fit_arguments or {}), dict(sample_arguments or {})
        self.search, self.raises = dict(search or {}), raises

    @property
    def library(self) -> str:
        """The top-level module of the class, which is the audited library."""
        return str(getattr(self.make, "__module__", "")).partition(".")[0]

    @property
    def name(self) -> str:
        return str(getattr(self.make, "__name__", type(self.make).__name__))

    def run(self, dataset: Dataset) -> Output:
        """Make a new object, fit it to a dataset, which is a list of dicts, and return a synthetic table."""
        made = self.make(**_own(self.arguments))
        if self.table == "rows":
            table: Any = [_own(dict(row)) for row in dataset]
        else:
            table = {name: [_own(row[name]) for row in dataset] for name in self.schema}
        if self.table == "frame":
            table = import_module("pandas").DataFrame(table)
        try:
            fit = functools.partial(self.fit, made) if callable(self.fit) else getattr(made, self.fit)
            fitted = fit(table, **_own(self.fit_arguments))
            # some libraries return a fitted copy
            model = fitted if fitted is not None and hasattr(fitted, str(self.sample)) else made
            sample = functools.partial(self.sample, model) if callable(self.sample) else getattr(model, self.sample)
            return sample(self.rows, **_own(self.sample_arguments))
        except ImportError:  # the environment lacks a package, which says nothing about the dataset
            raise
        except BaseException as error:
            if self.raises or not _outcomes.of_code(error) or _outcomes.of_machine(error):
                raise
            return {"raised": type(error).__name__, "message": _outcomes.message_of(error)[:200]}


def _own(value: Any) -> Any:
    """Return a copy of nested lists and dicts; copies of generators would repeat their numbers."""
    if type(value) is dict:
        return {name: _own(part) for name, part in value.items()}
    return [_own(part) for part in value] if type(value) is list else value


def called(call: str, arguments: Any, beside: str = "", raises: bool = False) -> Generator:
    check_call(call)
    given = dict(arguments or {})
    check_keys(given)
    module, _, name = call.partition(":")
    found = _module(module, beside)
    if not hasattr(found, name):
        raise LookupError(module + " has no " + name)
    if _worker.is_standard(str(getattr(getattr(found, name), "__module__", ""))):
        raise LookupError(name + " belongs to Python's standard library, so it could run arguments as code")
    own, search = given.pop("make", None), {key: given.pop(key) for key in SEARCH if key in given}
    return Generator(getattr(found, name), given.pop("schema"), own, search=search, raises=raises, **given)


def check_call(call: str) -> None:
    """Raise LookupError unless a text is the address of a class."""
    module, _, name = call.partition(":")
    if not module or not name or name.startswith("_"):
        raise LookupError(
            "call must be MODULE:CLASS, such as dpmm.pipelines.mst:MSTPipeline, or FILE.py:CLASS, got " + repr(call)
        )


def check_keys(given: JsonObject) -> None:
    """Raise LookupError unless arguments have a schema and no unknown key."""
    known = (*KEYS, *SEARCH)
    if not set(given) <= set(known) or not given.get("schema"):
        raise LookupError("arguments must have schema, and may have " + ", ".join(known[1:]) + f"; got {sorted(given)}")


def _module(name: str, beside: str) -> Any:
    """Import a module, or run a file.  The name of the file's module depends on its content, as the file may change."""
    if not name.endswith(".py"):
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if not beside or error.name != name.split(".")[0]:
                raise
            place = name.replace(".", "/") + ".py"
            raise LookupError(
                f"there is no module {name}, but a file beside the config; write call: {place}:CLASS"
            ) from None
    path = os.path.abspath(os.path.join(beside, name))
    if not os.path.isfile(path):
        raise LookupError("the file " + name + " does not exist in " + (beside or os.getcwd()))
    if _worker.is_standard_file(path):
        raise LookupError(name + " is a file of Python's standard library, so it could run arguments as code")
    with open(path, "rb") as file:
        digest = hashlib.sha256(os.fsencode(path) + b"\0" + file.read()).hexdigest()[:16]
    key = "_dpaudit_generator_" + os.path.basename(name)[:-3] + "_" + digest
    return sys.modules[key] if key in sys.modules else _worker.from_file(key, path)


def facts(made: Generator, d_in: Any = 1) -> JsonObject:
    thing = made.make(**_own(made.arguments))
    problems: list[str] = []
    epsilon = _parameter(made, thing, "epsilon", problems)
    delta = _parameter(made, thing, "delta", problems)
    return {
        "schema": {name: list(entries) for name, entries in made.schema.items()},
        "search": made.search,
        "name": type(thing).__name__ if made.name == "<lambda>" else made.name,
        "epsilon": epsilon,
        "delta": delta,
        "unreadable": "; ".join(problems),
        "version": _version(made.library),
    }


def _parameter(made: Generator, thing: object, name: str, problems: list[str]) -> float | None:
    """Return epsilon or delta, of the arguments, of the attributes of the object, or of the defaults."""
    defaults = _defaults(made.make)
    if made.make is not type(thing):  # a function may pass any value to the class
        defaults = {**dict.fromkeys(_defaults(type(thing))), **defaults}
    attributes = {name: getattr(thing, name)} if hasattr(thing, name) else {}
    places = [("argument", made.arguments), ("attribute", attributes), ("default of the argument", defaults)]
    unreadable = ""
    for place, values in places:
        if name not in values:
            continue
        value = values[name]
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            return _upper(value)
        if callable(value) and place == "attribute":  # a method, which is no parameter
            continue
        kind = "" if value is None else f" of type {type(value).__name__}"
        unreadable = unreadable or f"the {place} {name} is {str(value)[:80]!r}{kind}, which is no number"
        if value is not None:  # with None, the object may choose the value, and state it in its attribute
            break
    if unreadable:
        problems.append(unreadable)
    elif name == "delta":
        similar = [other for other in {**defaults, **made.arguments} if "delta" in other.lower()]
        problems += [f"the argument {other} may be the delta of the claim" for other in similar]
    return None


def _upper(value: Any) -> float:
    """Return the larger of a number and its decimal text: numpy.float32(1e-5) is slightly below 1e-5."""
    exact = float(value)
    try:
        return max(exact, float(str(value)))
    except ValueError:  # a fraction such as 1/3
        return exact


def _defaults(make: Any) -> JsonObject:
    """Return the defaults of the parameters of a class or function; None for a parameter without a default."""
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError):  # for example a class of a compiled module
        return {}
    return {name: None if one.default is one.empty else one.default for name, one in parameters.items()}


@functools.lru_cache(maxsize=None)  # noqa: UP033  (Python 3.8)
def _version(module: str) -> str:
    try:
        names = metadata.packages_distributions().get(module, [module])  # Python 3.10 or later
        return names[0] + " " + metadata.version(names[0])
    except Exception:  # a class of a script, or an older Python
        file = getattr(sys.modules.get(module), "__file__", None)
        return os.path.basename(file) if file else module or "unknown"


def sample(made: Generator, dataset: Dataset, n: int) -> list[Output]:
    outputs = []
    for _ in range(n):
        output = made.run(dataset)
        with contextlib.suppress(Exception):  # the caller refuses what cannot be copied, or detaches a tensor
            output = copy.deepcopy(output)  # the next run may overwrite a buffer in which the output lies
        outputs.append(output)
    return outputs
