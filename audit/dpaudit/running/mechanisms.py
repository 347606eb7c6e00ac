"""Mechanisms: their interface, and those that an address names, in this process or in a private environment."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from dpaudit.running import wire, worker
from dpaudit.running.environments import Environment, Lock, environment, existing_environment
from dpaudit.running.foreign import (
    ENVIRONMENT,
    MechanismError,
    RunTimeout,
    advice,
    current_folder,
    foreign_code,
    memory_limited,
    timeout_after,
)
from dpaudit.running.outcomes import raised
from dpaudit.running.processes import TIMEOUT, Child, Program, Run
from dpaudit.running.requirements import this_version
from dpaudit.running.worker import checked_file, from_file, misfit, object_named
from dpaudit.text import masked_values, nearest
from dpaudit.values import Dataset, Parameters, RawOutputs

BatchFunction = Callable[[Dataset, int, np.random.Generator], RawOutputs]
"""A function `(dataset, n, rng)` that returns n independent outputs: a sequence of length n or an array of n rows."""


@runtime_checkable
class Mechanism(Protocol):
    """A randomised mechanism that makes many runs in one call."""

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        """Return n independent outputs.

        Args:
            dataset: A copy of the dataset, which the mechanism may change.
            n: Number of outputs.
            rng: The random generator for these runs.  The mechanism must not keep the generator after the call.

        Returns:
            A sequence of length n, or an array of n rows.
        """
        ...


@dataclass(frozen=True, slots=True)
class Batched:
    """A mechanism made from a function `(dataset, n, rng)` that returns n outputs in one call."""

    function: BatchFunction

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        """Return the n independent outputs that the function returns."""
        return self.function(dataset, n, rng)

    def __call__(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        return self.function(dataset, n, rng)

    @property
    def supports(self) -> Any:
        """The attribute `supports` of the function; None if it has none."""
        return getattr(self.function, "supports", None)


def batched(function: BatchFunction) -> Batched:
    """Decorate a function that returns n outputs in one call.

    Args:
        function: A function `(dataset, n, rng)`, which must sample the n outputs independently.
    """
    return Batched(function)


def samples(mechanism: object) -> TypeGuard[Mechanism]:
    """Whether a mechanism makes many runs in one call.  It may forward its members by `__getattr__`."""
    return hasattr(mechanism, "sample")


@dataclass(frozen=True)
class PythonMechanism:
    """A mechanism that is named by an address, and that each process loads before the first use."""

    address: str
    params: Parameters | None = None
    batched: bool = False
    folder: Path = field(default_factory=Path)
    timeout: float | None = None
    memory: int | None = None
    named: str = ""
    code: str = ""
    interactive: bool = False  # whether it opens sessions; then it may be a class
    moved_to: str = field(
        default="", init=False, repr=False, compare=False
    )  # working directory after loading, if changed

    @cached_property
    def loaded(self) -> Any:
        """The mechanism object.  All exceptions of the user's code, even `SystemExit`, become a MechanismError."""
        before = current_folder()
        try:
            with foreign_code(), memory_limited(self.memory), timeout_after(self.timeout) as timeout:
                return timeout(self._load)
        except KeyboardInterrupt:
            raise
        except MechanismError as error:
            if self.memory is not None and isinstance(error.__cause__, MemoryError):
                raise MechanismError(f"{error}; {advice(self.memory)}") from error
            raise
        except BaseException as error:
            raise MechanismError(f"loading {self.address} {_did(error)}") from error
        finally:
            if (moved := current_folder()) != before:
                self.__dict__["moved_to"] = moved
                with suppress(OSError):
                    os.chdir(before)

    def _load(self) -> Any:
        module = _module(_module_name(self.address), self.folder)
        try:
            loaded = object_named(self.address, module)
        except LookupError as error:
            raise MechanismError(str(error)) from None
        if self.params is not None:
            try:
                loaded = loaded(**self.params)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # includes SystemExit
                call = f"calling {self.address} with params {masked_values(dict(self.params))}"
                reason = f"{f'making {self.named}' if self.named else call} {_did(error)}"
                if isinstance(error, TypeError) and inspect.isfunction(loaded):
                    reason += "; with params, the object must be a class, or a function that returns the mechanism"
                raise MechanismError(reason) from error
        if not self.interactive and (problem := misfit(loaded, self.batched)):
            raise MechanismError(f"{self.address} {problem}")
        return Batched(loaded) if self.batched and not samples(loaded) else loaded

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "loaded"}


def _module_name(address: str) -> str:
    module, _, name = address.rpartition(":")
    if not module or not name:
        raise MechanismError(f"the address must read package.module:object or file.py:object, got {address!r}")
    return module


def _module(name: str, folder: Path) -> ModuleType:
    try:
        if not name.endswith(".py"):
            return importlib.import_module(name)
        try:
            path = Path(checked_file(name, str(folder.resolve()))).resolve()
        except LookupError as error:
            raise MechanismError(str(error)) from None
        # The same name in every process, and another one after an edit of the file.
        digest = hashlib.sha256(os.fsencode(path) + b"\0" + path.read_bytes())
        key = f"_dpaudit_mechanism_{path.stem}_{digest.hexdigest()[:16]}"
        if key not in sys.modules:
            from_file(key, str(path))
        return sys.modules[key]
    except (MechanismError, KeyboardInterrupt):
        raise
    except BaseException as error:  # includes SystemExit: a script without a `__main__` guard may call sys.exit()
        hint, top = "", name.split(".")[0]
        if isinstance(error, ModuleNotFoundError) and error.name == top:
            installed = {module.name for module in pkgutil.iter_modules()} - sys.stdlib_module_names
            if (folder / f"{name}.py").is_file():
                hint = f"; did you mean the file {name}.py?  Write {name}.py:OBJECT"
            elif meant := nearest(top, sorted(installed), cutoff=0.8):
                hint = f"; did you mean {meant}?"
        raise MechanismError(f"importing {name} {_did(error)}{hint}") from error


def _did(error: BaseException) -> str:
    return f"{error}" if isinstance(error, RunTimeout) else f"raised {raised(error)}"


def resolved(mechanism: object) -> object:
    """Return the mechanism to call, and load a mechanism that is named by an address."""
    return mechanism.loaded if isinstance(mechanism, PythonMechanism) else mechanism


@dataclass(frozen=True, kw_only=True)
class IsolatedMechanism(Program):
    """A mechanism that runs in a private environment and is named by an address.

    Each process that runs trials starts one worker process in this environment.  The rng of the mechanism is a numpy
    Generator if the environment has numpy, and a random.Random otherwise.  Before each call, the worker also seeds the
    global generators of random, numpy and torch; libraries with their own secure generator cannot be seeded.

    The mechanism's file can import only packages of the environment, without dpaudit, so a claim in it must be a text.

    Args:
        address: `module:object` or `file.py:object`.
        requires: Requirements in the syntax of pip.
        python_version: "3.11" or "3.11.7".  None means the version of this process.
        params: Arguments of a factory.  If given, the object is a factory, which is called once to get the mechanism.
        batched: Whether the mechanism makes many runs in one call.
        folder: The folder to which a file path in the address is relative.
        timeout: The worker is killed after this number of seconds without an answer.  None means no limit.
        memory: Maximum memory of the worker, in bytes, beyond what it uses before it loads the mechanism (Linux only).
        lock: The exact packages of the environment.  None leaves the choice of versions to the installer.
        interpreter: The Python of an existing environment, in which nothing is installed.
        named: Name of the mechanism in results; "" for the address.
        code: Address of the audited code, if the mechanism is a class of dpaudit that calls this code.
    """

    address: str
    requires: Sequence[str] = ()
    python_version: str | None = None
    params: Parameters | None = None
    batched: bool = False
    folder: Path = field(default_factory=Path)
    timeout: float | None = TIMEOUT
    memory: int | None = None
    lock: Lock | None = None
    interpreter: Path | None = None
    named: str = ""
    code: str = ""

    def with_memory(self, memory: int | None) -> IsolatedMechanism:
        """Return the same mechanism with another memory limit."""
        return self if memory == self.memory else replace(self, memory=memory)

    @property
    def packages(self) -> dict[str, str]:
        """Versions of all packages in the environment, by name.  A missing environment is built first."""
        return dict(self._environment.packages)

    @property
    def installed(self) -> Lock | None:
        """The exact packages in the environment with their hashes, or None if the hashes are unknown."""
        return self._environment.lock

    @property
    def _environment(self) -> Environment:
        if self.interpreter is not None:
            return existing_environment(self.interpreter)
        return environment(self.requires, self.python_version, self.lock)

    @property
    def claim(self) -> str | None:
        """The text of the mechanism's attribute `claim`, or None if the attribute does not exist."""
        claim: str | None = self._about_object["claim"]
        return claim

    @property
    def calls_many(self) -> bool:
        """Whether one call of the object in the environment makes many runs.  The property loads the object."""
        return bool(self._about_object["batched"])

    @property
    def _about_object(self) -> dict[str, Any]:
        return answer_of(self._child(), {"do": "about"}, self.timeout, "facts about the mechanism")

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        """Return n outputs of the mechanism, for which `rng` chooses the seed of the worker.

        MechanismError if the dataset has no encoding (see `wire`), the mechanism raises an exception or does not return
        n outputs, or the worker dies or times out.
        """
        request = {"do": "sample", "dataset": dataset, "n": n, "seed": int(rng.integers(2**63))}
        answer = answer_of(self._child(), request, self.timeout, f"an answer with {n} outputs")
        self.__dict__["changed_dataset"] = answer["changed"]
        outputs: RawOutputs = answer["outputs"]
        return outputs

    def run(self, datasets: Sequence[Dataset], index: int, rng: np.random.Generator, *, outcomes: bool = False) -> Run:
        """Make one run on `datasets[index]`, with n = 1 if it takes n; the worker measures the time around the call.

        The worker copies all datasets before the run, so that its memory does not depend on `index`.  If `outcomes`, an
        exception is the outcome of the run, unless the machine has run out of memory, disk space or file handles.
        Other exceptions raise MechanismError as for `sample`.
        """
        seed = int(rng.integers(2**63))
        request = {"do": "run", "datasets": list(datasets), "index": index, "seed": seed, "outcomes": outcomes}
        answer = answer_of(self._child(), request, self.timeout, "an output and its time")
        self.__dict__["changed_dataset"] = answer["changed"]
        return Run(answer["output"], answer["raised"], answer["seconds"], ENVIRONMENT)

    @property
    def _about(self) -> dict[str, object]:
        params = None if self.params is None else dict(self.params)
        folder = str(self.folder.resolve())
        return {"address": self.address, "folder": folder, "params": params, "batched": self.batched}

    @property
    def _key(self) -> Hashable:
        return (
            wire.frame(self._about),
            tuple(self.requires),
            self.python_version,
            self.memory,
            self.lock,
            self.interpreter,
        )

    def _started(self) -> Child:
        _module_name(self.address)  # raises an error before an environment is built
        python = self._environment.python
        where = ", ".join(self.requires) or f"Python {self.interpreter or self.python_version or this_version()}"
        bytecode = ["-X", f"pycache_prefix={self._environment.bytecode}"] if self._environment.bytecode else ["-B"]
        child = Child(
            # -I ignores this process's Python settings, user packages and current folder.
            [str(python), "-I", "-u", *bytecode, worker.__file__],
            name=f"{self.named or self.address} (with {where})",
            cwd=self.folder,
            memory=self.memory,
            limited=True,
        )
        try:
            answer_of(child, {"do": "load", "memory": self.memory, **self._about}, self.timeout, "the mechanism")
        except BaseException:
            child.close()
            raise
        return child


def answer_of(child: Child, request: dict[str, object], timeout: float | None, awaited: str) -> dict[str, Any]:
    """Send a request to a worker and return its answer."""
    try:
        frame = wire.frame(request)
    except wire.Unsendable as error:
        raise MechanismError(f"the dataset cannot be sent to {child.name}: {error}") from None
    answer = child.exchange(frame, wire.frame_size, timeout=timeout, awaited=awaited)
    try:
        content: dict[str, Any] = wire.unframe(answer[wire.HEADER.size :])
    except ValueError as error:
        raise child.failed(f"sent an answer that cannot be read: {error}") from None
    if "error" in content:
        lines = "".join(f"\n    {line}" for line in content["traceback"].splitlines()[-20:])
        raise child.failed(f"raised {content['error']}{lines}") from MechanismError(content["error"])
    return content
