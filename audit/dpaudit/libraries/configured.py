"""Makes subjects from configs, which name a library, a function of the library and its arguments."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.libraries.generator_calls import ROWS, call_words
from dpaudit.libraries.inside.start import FACTS
from dpaudit.mechanisms.forks import only_this_process
from dpaudit.mechanisms.isolated import IsolatedMechanism
from dpaudit.mechanisms.locks import Lock
from dpaudit.mechanisms.processes import TIMEOUT
from dpaudit.mechanisms.protocol import MechanismError, in_words
from dpaudit.mechanisms.python import PythonMechanism
from dpaudit.mechanisms.timeout import RunTimeout, timeout_after
from dpaudit.pairs.pair import Pair
from dpaudit.values import Foreign, JsonObject

SWEPT = ("opendp", "diffprivlib", "pydp", "smartnoise_sql", "tumult")
"""The libraries whose constructors a sweep can list."""

GENERATORS = "synthesizer"
"""The name in configs for all generators of synthetic tables."""

LIBRARIES = (*SWEPT, GENERATORS)
"""The libraries whose objects a config can name."""

_INSIDE = Path(__file__).parent / "inside"


@dataclass(frozen=True, kw_only=True)
class LibraryCall:
    """A call that makes an object of a library."""

    library: str
    call: str
    arguments: Foreign = None
    d_in: Foreign = 1
    beside: str = ""
    raises: bool = False

    @property
    def params(self) -> JsonObject:
        """The arguments of `inside.start.Called`."""
        options = {"beside": self.beside, "raises": self.raises}
        about = {"library": self.library, "call": self.call, "arguments": self.arguments, "d_in": self.d_in}
        return about | {name: value for name, value in options.items() if value}

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

    @property
    def folder(self) -> Path:
        """The folder to which the address in a private environment is relative."""
        return _INSIDE

    def address(self, *, isolated: bool) -> str:
        """Return the address of the class that makes the object, in this process or in a private environment."""
        return "start.py:Called" if isolated else "dpaudit.libraries.inside.start:Called"


@dataclass(frozen=True, slots=True)
class Private:
    """A private environment; see `mechanisms.isolated.IsolatedMechanism`."""

    requires: Sequence[str]
    python_version: str | None = None
    lock: Lock | None = None


@dataclass(frozen=True)
class Read:
    """The claim and the pairs of an object.  The claim is read when it is needed, because the config may give it."""

    library: Foreign
    facts: JsonObject
    pairs: Sequence[Pair]

    @cached_property
    def claim(self) -> TradeoffFunction:
        """The claim."""
        found: TradeoffFunction = self.library.claim_of(self.facts)
        return found


def read(called: LibraryCall, environment: Private | None = None, timeout: float | None = TIMEOUT) -> Read:
    """Make an object and read its claim and pairs."""
    return _read(json.dumps(called.params), environment, timeout)


@functools.lru_cache(maxsize=256)
def _read(params: str, environment: Private | None, timeout: float | None) -> Read:
    called = LibraryCall(**json.loads(params))
    facts = _facts(called, environment, timeout)
    library = importlib.import_module(f"dpaudit.libraries.{called.library}")
    return Read(library, facts, library.pairs_of(facts))


def check_fits(mechanism: Foreign, pair: Pair) -> None:
    """Refuse a generator that cannot be fitted to either table of a pair."""
    library = importlib.import_module(f"dpaudit.libraries.{GENERATORS}")
    loaded = mechanism.loaded if isinstance(mechanism, PythonMechanism) else mechanism
    outputs: list[Foreign] = []
    for dataset in (pair.d0, pair.d1):
        try:
            with _same_folder(), only_this_process(), timeout_after(mechanism.timeout) as timeout:
                outputs += timeout(loaded.sample, copy.deepcopy(dataset), 1, np.random.default_rng(0))
        except KeyboardInterrupt:
            raise
        except RunTimeout as error:
            raise MechanismError(f"fitting {mechanism.named}: {error}") from error
        except BaseException as error:  # includes SystemExit: with `failures: stop`, exceptions are not outputs
            outputs.append(error)
    first = outputs[0]
    if isinstance(first, BaseException) and isinstance(outputs[1], BaseException):
        raise MechanismError(
            f"{mechanism.named} raised {in_words(first)} for both tables of the pair {pair}"
        ) from first
    library.refuse_failures(mechanism.named, outputs, pair)


@contextlib.contextmanager
def _same_folder() -> Iterator[None]:
    """Restore the working directory, from which an audit would start otherwise, without the warning about a change."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # the folder no longer exists
            stack.enter_context(contextlib.chdir(os.getcwd()))
        yield


def _facts(called: LibraryCall, environment: Private | None, timeout: float | None) -> JsonObject:
    """Return the facts about the object, which the mechanism gives instead of an output, and the call as JSON.

    In an environment, the worker of the mechanism goes on, so that an audit of the mechanism does not start another.
    """
    if environment is None:
        made = PythonMechanism(called.address(isolated=False), called.params, timeout=timeout, named=called.named)
        try:
            with _same_folder():
                found: JsonObject = made.loaded.facts()
        except (SystemExit, GeneratorExit) as error:  # a mechanism must not end this process
            raise MechanismError(f"making {called.named or called.call} raised {in_words(error)}") from error
    else:
        mechanism = IsolatedMechanism(
            address=called.address(isolated=True),
            requires=environment.requires,
            python_version=environment.python_version,
            lock=environment.lock,
            params=called.params,
            folder=called.folder,
            timeout=timeout,
            named=called.named,
        )
        (found,) = mechanism.sample(FACTS, 1, np.random.default_rng(0))
    return {**found, "config": json.dumps(called.params)}
