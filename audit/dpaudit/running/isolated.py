"""Runs mechanisms in another Python interpreter with other packages."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.running import wire, worker
from dpaudit.running.environments import Environment, environment
from dpaudit.running.processes import TIMEOUT, Child, Program
from dpaudit.running.protocol import ENVIRONMENT, MechanismError, Run
from dpaudit.running.requirements import Lock, this_version
from dpaudit.values import Dataset, Parameters, RawOutputs


@dataclass(frozen=True, kw_only=True)
class IsolatedMechanism(Program):
    """A mechanism that runs in a private environment and is named by an address.

    The program `worker` runs in this environment.  The mechanism gets a numpy Generator as its rng if the environment
    has numpy, and a random.Random otherwise.  Before each call, the worker also seeds the global generators of random,
    numpy and torch.  Libraries with their own secure generator cannot be seeded, so their outputs differ.

    The mechanism's file can import only packages of the environment, which does not contain dpaudit.  So a claim in the
    file must be a text for `parse_claim`.

    Each process that runs trials starts one worker process before its first trial.

    Args:
        address: `module:object` or `file.py:object`.
        requires: Requirements in the syntax of pip.
        python_version: "3.11" or "3.11.7".  None means the version of this process.
        params: Arguments of a factory.  If given, the object is a factory, which is called once to get the mechanism.
        batched: Whether the mechanism makes many runs in one call.
        folder: The folder to which a file path in the address is relative.
        timeout: The worker is killed after this number of seconds without an answer.  None means no limit.
        memory: Maximum memory of the worker, in bytes.  The memory that the worker uses before it loads the mechanism
            does not count.  None means no limit.  The limit works on Linux only.
        lock: The exact packages of the environment.  None leaves the choice of versions to the installer.
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
        return environment(self.requires, self.python_version, self.lock)

    @property
    def claim(self) -> str | None:
        """The text of the mechanism's attribute `claim`, or None if the attribute does not exist."""
        found: str | None = self._about_object["claim"]
        return found

    @property
    def calls_many(self) -> bool:
        """Whether one call of the object in the environment makes many runs.  The property loads the object."""
        return bool(self._about_object["batched"])

    @property
    def _about_object(self) -> dict[str, Any]:
        return answer_of(self._child(), {"do": "about"}, self.timeout, "facts about the mechanism")

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        """Return n outputs of the mechanism.

        Args:
            dataset: The dataset, which must have an encoding (see `wire`).
            n: Number of outputs.
            rng: The random generator that chooses the seed of the worker.

        Raises:
            MechanismError: If the dataset has no encoding, or if the mechanism raises an exception or does not return n
                outputs.  The error is also raised if the worker dies or times out.
        """
        request = {"do": "sample", "dataset": dataset, "n": n, "seed": int(rng.integers(2**63))}
        answer = answer_of(self._child(), request, self.timeout, f"an answer with {n} outputs")
        self.__dict__["changed_dataset"] = answer["changed"]
        outputs: RawOutputs = answer["outputs"]
        return outputs

    def run(self, datasets: Sequence[Dataset], index: int, rng: np.random.Generator, *, outcomes: bool = False) -> Run:
        """Make one run, whose time the worker measures around the call of the mechanism.

        A mechanism that makes many runs in one call is called with n = 1.

        Args:
            datasets: Datasets, which must have an encoding (see `wire`).  The worker copies all of them in this order
                before the run, so that the state of its memory does not depend on `index`.
            index: Index of the dataset for the run.
            rng: The random generator that chooses the seed of the worker.
            outcomes: Whether an exception is the outcome of the run, unless it says that the machine has run out of
                memory, disk space or file handles.

        Raises:
            MechanismError: As for `sample`, except for exceptions that are outcomes.
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
        return (wire.frame(self._about), tuple(self.requires), self.python_version, self.memory, self.lock)

    def _started(self) -> Child:
        module, _, found = self.address.rpartition(":")
        if not module or not found:
            raise MechanismError(f"the address must read package.module:object or file.py:object, got {self.address!r}")
        python = self._environment.python
        where = ", ".join(self.requires) or f"Python {self.python_version or this_version()}"
        child = Child(
            # -I ignores this process's Python settings, user packages and current folder.
            [str(python), "-I", "-u", "-B", worker.__file__],
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
        found: dict[str, Any] = wire.unframe(answer[wire.HEADER.size :])
    except ValueError as error:
        raise child.failed(f"sent an answer that cannot be read: {error}") from None
    if "error" in found:
        lines = "".join(f"\n    {line}" for line in found["traceback"].splitlines())
        raise child.failed(f"raised {found['error']}{lines}") from MechanismError(found["error"])
    return found
