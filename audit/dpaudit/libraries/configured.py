"""Makes subjects from configs, which name a library, a function of the library and its arguments."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.libraries.inside.start import FACTS
from dpaudit.libraries.inside.synthesizer import SEARCH, TABLES, check_call, check_keys
from dpaudit.pairs.pair import Pair
from dpaudit.pairs.search import SearchPairs, bounds_or_list, is_date, read_schema
from dpaudit.running.environments import Lock
from dpaudit.running.foreign import MechanismError, RunTimeout, timeout_after
from dpaudit.running.mechanisms import IsolatedMechanism, PythonMechanism, resolved
from dpaudit.running.outcomes import in_words
from dpaudit.running.processes import TIMEOUT
from dpaudit.running.worker import is_standard
from dpaudit.text import masked_values, one_line, shortened
from dpaudit.values import JsonObject

SWEPT = ("opendp", "diffprivlib", "pydp", "smartnoise_sql", "tumult")
"""The libraries whose constructors a sweep can list."""

GENERATORS = "synthesizer"  # the name in configs for all generators of synthetic tables

LIBRARIES = (*SWEPT, GENERATORS)  # the libraries whose objects a config can name

ROWS = 100  # number of rows of a synthetic table, if none is given

GENERATED_PAIRS = 6
"""Maximum number of pairs of a generator, because all pairs of an audit share its trials, and fits are slow."""


@dataclass(frozen=True, kw_only=True)
class LibraryCall:
    """A call that makes an object of a library."""

    library: str
    call: str
    arguments: Any = None
    d_in: Any = 1
    beside: str = ""
    raises: bool = False

    folder: ClassVar[Path] = Path(__file__).parent / "inside"
    """The folder to which the address in a private environment is relative."""

    @property
    def params(self) -> JsonObject:
        """The arguments of `inside.start.Called`."""
        options = {name: value for name, value in (("beside", self.beside), ("raises", self.raises)) if value}
        return {"library": self.library, "call": self.call, "arguments": self.arguments, "d_in": self.d_in, **options}

    @property
    def named(self) -> str:
        """The called object in results; "" for libraries whose package is the audited code."""
        if self.library != GENERATORS:
            return ""
        given = self.arguments if isinstance(self.arguments, dict) else {}
        return call_words(self.call, given.get("make") or {}, given.get("rows", ROWS))

    @property
    def code(self) -> str:
        """The address of the audited code; "" for libraries whose package is the audited code."""
        if self.library != GENERATORS:
            return ""
        return str(Path(self.beside) / self.call) if self.call.partition(":")[0].endswith(".py") else self.call

    def address(self, *, isolated: bool) -> str:
        """Return the address of the class that makes the object, in this process or in a private environment."""
        return "start.py:Called" if isolated else "dpaudit.libraries.inside.start:Called"


@dataclass(frozen=True)
class Private:
    """A private environment; see `running.IsolatedMechanism`."""

    requires: Sequence[str]
    python_version: str | None = None
    lock: Lock | None = None
    interpreter: Path | None = None


@dataclass(frozen=True)
class Read:
    """The claim and the pairs of an object.  Each is read when it is needed, because the config may give it."""

    library: Any
    facts: JsonObject

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        pairs: Sequence[Pair] = self.library.pairs_of(self.facts)
        return pairs

    @cached_property
    def claim(self) -> TradeoffFunction:
        claim: TradeoffFunction = self.library.claim_of(self.facts)
        return claim


def read(called: LibraryCall, environment: Private | None = None, timeout: float | None = TIMEOUT) -> Read:
    """Make an object whose claim and pairs can be read."""
    return _read(json.dumps(called.params), environment, timeout)


@functools.lru_cache(maxsize=256)
def _read(params: str, environment: Private | None, timeout: float | None) -> Read:
    called = LibraryCall(**json.loads(params))
    if environment is None:
        made = PythonMechanism(called.address(isolated=False), called.params, timeout=timeout, named=called.named)
        try:
            with contextlib.chdir("."):  # a constructor may change the working directory
                facts: JsonObject = made.loaded.facts()
        except (SystemExit, GeneratorExit) as error:  # a mechanism must not end this process
            raise MechanismError(f"making {called.named or called.call} raised {in_words(error)}") from error
    else:
        mechanism = IsolatedMechanism(
            address=called.address(isolated=True),
            params=called.params,
            folder=called.folder,
            timeout=timeout,
            named=called.named,
            **vars(environment),
        )
        (facts,) = mechanism.sample(FACTS, 1, np.random.default_rng(0))
    facts = {**facts, "config": params}
    return Read(importlib.import_module(f"dpaudit.libraries.{called.library}"), facts)


def check_fits(mechanism: Any, pair: Pair) -> None:
    """Refuse a generator that cannot be fitted to either table of a pair."""
    loaded: Any = resolved(mechanism)
    outputs: list[Any] = []
    for dataset in (pair.d0, pair.d1):
        try:
            with contextlib.chdir("."), timeout_after(mechanism.timeout) as timeout:
                outputs += timeout(loaded.sample, copy.deepcopy(dataset), 1, np.random.default_rng(0))
        except KeyboardInterrupt:
            raise
        except RunTimeout as error:
            raise MechanismError(f"fitting {mechanism.named}: {error}") from error
        except BaseException as error:  # includes SystemExit: with `failures: stop`, exceptions are not outputs
            outputs.append(error)
    if all(isinstance(output, BaseException) for output in outputs):
        raise MechanismError(
            f"{mechanism.named} raised {in_words(outputs[0])} for both tables of the pair {pair}"
        ) from outputs[0]
    importlib.import_module(f"dpaudit.libraries.{GENERATORS}").refuse_failures(mechanism.named, outputs, pair)


def call_words(call: str, make: Mapping[str, Any], rows: int) -> str:
    """Return the name of a generator in results, such as `generators:Copies(epsilon=1.0), 20 rows`."""
    masked: Any = masked_values(dict(make))
    given = ", ".join(f"{name}={value!r}" for name, value in masked.items())
    return f"{call}({shortened(one_line(given))}), {rows} rows"


def pairs_from(schema: Mapping[str, Any], search: JsonObject) -> list[Pair]:
    columns = {name: bounds_or_list(entries) for name, entries in read_schema(schema).items()}
    settings = {"relation": "add_remove", "most": GENERATED_PAIRS, **search}
    return list(SearchPairs(schema=columns, tiny=True, **settings))


def file_beside(call: str, folder: Path) -> bool:
    """Whether a call names a file in a folder, or a module whose file is in the folder."""
    module = call.partition(":")[0]
    return module.endswith(".py") or (folder / f"{module.replace('.', '/')}.py").is_file()


_KINDS: Mapping[str, tuple[type, str]] = {
    **dict.fromkeys(("make", "fit_arguments", "sample_arguments"), (dict, "a mapping")),
    **dict.fromkeys(("fit", "sample"), (str, "the name of a method")),
    **dict.fromkeys(("rows", "most"), (int, "a whole number")),
    "out_of_domain": (bool, "true or false"),
}


def check_config(call: str, arguments: Any) -> None:
    try:
        check_call(call)
        if is_standard(module := call.partition(":")[0]):
            raise LookupError(f"call must not name a module of Python's standard library, got {module}")
        if not isinstance(arguments, dict):
            raise LookupError("arguments must be a mapping with schema")
        check_keys(arguments)
    except LookupError as error:
        raise ValueError(str(error.args[0])) from None
    for key, (kind, needed) in _KINDS.items():
        value = arguments.get(key)
        if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise ValueError(f"arguments: {key} must be {needed}, got {value!r}")
    if (table := arguments.get("table", TABLES[0])) not in TABLES:
        raise ValueError(f"arguments: table must be frame, rows or columns, got {table!r}")
    if (relation := arguments.get("relation", "add_remove")) not in ("add_remove", "replace_one"):
        raise ValueError(f"arguments: relation must be add_remove or replace_one, got {relation!r}")
    try:
        pairs_from(arguments["schema"], {key: arguments[key] for key in SEARCH if key in arguments})
    except ValueError as error:
        raise ValueError(f"arguments: {error}") from None
    for column, entries in arguments["schema"].items():
        if any(map(is_date, entries)):
            raise ValueError(f"arguments: schema: {column} has dates; quote them, so that they are texts")
    try:
        json.dumps(arguments)
    except TypeError:
        raise ValueError("arguments must hold texts, numbers, lists and mappings only, and no dates") from None
