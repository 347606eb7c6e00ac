"""Makes subjects from configs, which name a library, a function of the library and its arguments."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpaudit.claims import TradeoffFunction
from dpaudit.libraries.inside.start import FACTS
from dpaudit.mechanisms.isolated import IsolatedMechanism
from dpaudit.mechanisms.locks import Lock
from dpaudit.mechanisms.processes import TIMEOUT
from dpaudit.mechanisms.python import PythonMechanism
from dpaudit.pairs.pair import Pair
from dpaudit.values import Foreign, JsonObject

SWEPT = ("opendp", "diffprivlib", "pydp", "smartnoise_sql", "tumult")
"""The libraries whose constructors a sweep can list."""

LIBRARIES = (*SWEPT, "synthesizer")
"""The libraries whose objects a config can name; `synthesizer` stands for all generators of synthetic tables."""

_INSIDE = Path(__file__).parent / "inside"


@dataclass(frozen=True, kw_only=True)
class LibraryCall:
    """A call that makes an object of a library.

    Args:
        library: One of `LIBRARIES`.
        call: The function or the class of the library.
        arguments: Its arguments as plain values.
        d_in: Distance of neighbouring datasets.
    """

    library: str
    call: str
    arguments: Foreign = None
    d_in: Foreign = 1

    @property
    def params(self) -> JsonObject:
        """The arguments of `inside.start.Called`."""
        return {"library": self.library, "call": self.call, "arguments": self.arguments, "d_in": self.d_in}

    @property
    def folder(self) -> Path:
        """The folder to which the address in a private environment is relative."""
        return _INSIDE

    def address(self, *, isolated: bool) -> str:
        """Return the address of the class that makes the object, in this process or in a private environment."""
        return "start.py:Called" if isolated else "dpaudit.libraries.inside.start:Called"


@dataclass(frozen=True, slots=True)
class Private:
    """A private environment; see `mechanisms.isolated.IsolatedMechanism`.

    Args:
        requires: Requirements in the syntax of pip.
        python_version: Version of Python; None for the version of this process.
        lock: The exact packages; None leaves the choice to the installer.
    """

    requires: Sequence[str]
    python_version: str | None = None
    lock: Lock | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """The claim and the pairs of an object.

    Args:
        claim: The claim.
        pairs: Pairs of neighbouring datasets.
        source: The origin of the claim.
    """

    claim: TradeoffFunction
    pairs: Sequence[Pair]
    source: str


def read(called: LibraryCall, environment: Private | None = None, timeout: float | None = TIMEOUT) -> Read:
    """Make an object and read its claim and pairs.

    Args:
        called: The call that makes the object.
        environment: The private environment in which the library is installed; None for this process.
        timeout: Seconds to wait for an answer of the environment, or for the object in this process; None means no
            limit.

    Raises:
        MechanismError: If the object cannot be made.
        UnknownSubject: If the claim or the pairs cannot be read.
    """
    return _read(json.dumps(called.params), environment, timeout)


@functools.lru_cache(maxsize=256)
def _read(params: str, environment: Private | None, timeout: float | None) -> Read:
    called = LibraryCall(**json.loads(params))
    facts = _facts(called, environment, timeout)
    library = importlib.import_module(f"dpaudit.libraries.{called.library}")
    return Read(library.claim_of(facts), library.pairs_of(facts), library.source_of(facts))


def _facts(called: LibraryCall, environment: Private | None, timeout: float | None) -> JsonObject:
    """Return the facts about the object, which the mechanism gives instead of an output, and the call as JSON.

    In an environment, the worker of the mechanism goes on, so that an audit of the mechanism does not start another.
    """
    if environment is None:
        found: JsonObject = PythonMechanism(
            called.address(isolated=False), called.params, timeout=timeout
        ).loaded.facts()
    else:
        mechanism = IsolatedMechanism(
            address=called.address(isolated=True),
            requires=environment.requires,
            python_version=environment.python_version,
            lock=environment.lock,
            params=called.params,
            folder=called.folder,
            timeout=timeout,
        )
        (found,) = mechanism.sample(FACTS, 1, np.random.default_rng(0))
    return {**found, "config": json.dumps(called.params)}
