"""Mechanisms that run in another Python, with packages of their own."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import numpy as np

from dpaudit.mechanisms import wire, worker
from dpaudit.mechanisms.environments import environment
from dpaudit.mechanisms.processes import MAX_ANSWER_BYTES, TIMEOUT, Child, close, running
from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.values import Dataset, Foreign, Parameters, RawOutputs


@dataclass(frozen=True, kw_only=True)
class IsolatedMechanism:
    """`PythonMechanism` in a private environment: see `environments` for how it is made, `worker` for what runs there.

    The function there gets a numpy Generator as its rng if numpy is there, else a random.Random.  Before every call the
    global generators of random, numpy and torch are seeded too.  Libraries with a secure generator of their own cannot
    be seeded; for them runs differ from audit to audit.  The file may import only what is in its environment: not
    dpaudit, so a claim it states is text, as for `parse_claim`.

    One worker process runs in every process that runs trials, from the first use on.
    """

    address: str  # module:object or file.py:object
    requires: Sequence[str] = ()  # requirements, as for pip
    python_version: str | None = None  # "3.11" or "3.11.7"; that of this process if None
    params: Parameters | None = None  # if given, the object is a factory called once with them
    batched: bool = False
    folder: Path = field(default_factory=Path)  # what a relative file path is relative to
    timeout: float | None = TIMEOUT  # seconds without an answer after which the worker is given up; None: no limit

    @property
    def packages(self) -> dict[str, str]:
        """Name and version of all that is installed in the environment, which is built if there is none."""
        return dict(environment(self.requires, self.python_version).packages)

    @property
    def claim(self) -> str | None:
        """The text of the mechanism's attribute `claim`, if it has one."""
        found: str | None = _answered(self._child(), {"do": "claim"}, self.timeout, "the claim")["claim"]
        return found

    def start(self) -> None:
        """Build the environment and load the mechanism now.  MechanismError says what failed."""
        self._child()

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> RawOutputs:
        """n outputs.  MechanismError if the mechanism raises, its process dies or is silent, or n are not returned."""
        child = self._child()
        seed = int(rng.integers(2**63))
        request = {"do": "sample", "dataset": dataset, "n": n, "seed": seed}
        answer = _answered(child, request, self.timeout, f"an answer with {n} outputs")
        self.__dict__["changed_dataset"] = bool(answer.get("changed"))
        outputs = answer["outputs"]
        if len(outputs) != n:
            raise child.failed(f"returned {len(outputs)} outputs instead of {n}")
        found: RawOutputs = outputs
        return found

    def close(self) -> None:
        """End the worker in this process; it is started again when it is needed."""
        close(self._key)

    def __enter__(self) -> IsolatedMechanism:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def _about(self) -> dict[str, object]:
        params = None if self.params is None else dict(self.params)
        return {
            "address": self.address,
            "folder": str(self.folder.resolve()),
            "params": params,
            "batched": self.batched,
        }

    @property
    def _key(self) -> Hashable:
        return (wire.frame(self._about), tuple(self.requires), self.python_version)

    def _child(self) -> Child:
        return running(self._key, self._started)

    def _started(self) -> Child:
        module, _, found = self.address.rpartition(":")
        if not module or not found:
            raise MechanismError(f"must read package.module:object or file.py:object, got {self.address!r}")
        python = environment(self.requires, self.python_version).python
        where = ", ".join(self.requires) or f"Python {self.python_version}"
        child = Child(
            # -I: nothing of this process's Python settings, user packages or current folder gets in
            [str(python), "-I", "-u", "-B", worker.__file__],
            name=f"{self.address} (with {where})",
            cwd=self.folder,
        )
        try:
            _answered(child, {"do": "load", **self._about}, self.timeout, "the mechanism")
        except BaseException:
            child.close()
            raise
        return child


def _answered(child: Child, request: dict[str, object], timeout: float | None, awaited: str) -> dict[str, Foreign]:
    try:
        frame = wire.frame(request)
    except wire.Unsendable as error:
        raise MechanismError(f"the dataset cannot be sent to {child.name}: {error}") from None
    answer = child.exchange(frame, _framed, timeout=timeout, awaited=awaited)
    announced = wire.HEADER.unpack_from(answer)[0]
    if not 0 <= announced <= MAX_ANSWER_BYTES:
        raise child.failed(
            f"announced an answer of {announced:,} bytes; at most {MAX_ANSWER_BYTES:,} are read: return smaller outputs"
        )
    try:
        found = wire.unframe(answer[wire.HEADER.size :])
    except ValueError as error:
        raise child.failed(f"sent an answer that cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise child.failed(f"sent an answer of type {type(found).__name__}")
    if "error" in found:
        raise child.failed(f"raised {found['error']}{_indented(found['traceback'])}")
    return found


def _framed(heard: bytearray) -> int:
    if len(heard) < wire.HEADER.size:
        return 0
    announced = int(wire.HEADER.unpack_from(heard)[0])
    if not 0 <= announced <= MAX_ANSWER_BYTES:
        return len(heard)  # `_answered` says what is wrong
    size = wire.HEADER.size + announced
    return int(size) if len(heard) >= size else 0


def _indented(text: str) -> str:
    return "".join(f"\n    {line}" for line in text.splitlines())
