"""Runs mechanisms that are programs in any language."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import TracebackType

import numpy as np

from dpaudit.mechanisms.json_values import from_json, to_json
from dpaudit.mechanisms.processes import TIMEOUT, Child, close, named, running, shown
from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.mechanisms.raised import message_of, of_machine
from dpaudit.mechanisms.timing import OUTSIDE, REPORTED, Run, seconds_of
from dpaudit.settings.memory import check_memory
from dpaudit.values import Dataset, JsonObject, Output

SEEDS = 2**53  # upper limit of seeds (exclusive); a JSON reader with float64 numbers reads smaller seeds exactly


@dataclass(frozen=True, init=False)
class CommandMechanism:
    """A mechanism that is a program and answers each JSON line with one JSON line.

    The program reads `{"dataset": ..., "n": 1000, "seed": 12345}` from stdin and answers `{"outputs": [...]}` with n
    independent outputs, or `{"error": "..."}`.  It then waits for the next request until its stdin ends.  An answer may
    also hold the running time of each output in seconds, as `"seconds": [...]`.  Only audits with `observe_time` read
    these times, and their requests have n = 1.  The module `json_values` defines how NaN, inf and bytes are written.
    If the program fails, the error message shows its stderr.

    The audit's random generator chooses the seed.  The audit is reproducible if the program takes all its randomness
    from a generator with this seed.

    Each process that runs trials starts the program once, without a shell, before its first trial.  A word `$NAME` or
    `--option=$NAME` gets the value of an environment variable then, which no file records.

    Args:
        command: The program and its arguments.
        timeout: The program is killed after this number of seconds without an answer.  None means no limit.
        cwd: The working directory of the program.  A relative path to the program is relative to this directory.
        env: Environment variables in addition to the inherited ones.
        memory: Maximum address space of the program, as bytes or as text such as "2 GB".  None means no limit.  The
            limit works on Linux only.

    Raises:
        ValueError: If `command` is not a list of text, or `timeout` is not positive.
    """

    command: tuple[str, ...]
    timeout: float | None
    cwd: Path | None
    env: tuple[tuple[str, str], ...]
    memory: int | None

    def __init__(
        self,
        command: Sequence[str],
        *,
        timeout: float | None = TIMEOUT,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        memory: int | str | None = None,
    ) -> None:
        if isinstance(command, str) or not command or not all(isinstance(word, str) for word in command):
            raise ValueError(f"command must be a list of the program and its arguments, got {command!r}")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be > 0 seconds, got {timeout}")
        object.__setattr__(self, "command", tuple(command))
        object.__setattr__(self, "timeout", timeout)
        object.__setattr__(self, "cwd", None if cwd is None else Path(cwd))
        object.__setattr__(self, "env", tuple(sorted((env or {}).items())))
        object.__setattr__(self, "memory", check_memory(memory))

    def with_memory(self, memory: int | None) -> CommandMechanism:
        """Return the same program with another memory limit."""
        return CommandMechanism(self.command, timeout=self.timeout, cwd=self.cwd, env=dict(self.env), memory=memory)

    @property
    def address(self) -> str:
        """The command line, with apparent secrets masked."""
        return named(self.command)

    def start(self) -> None:
        """Start the program now.

        Raises:
            MechanismError: If the program cannot be started.
        """
        self._child()

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Sequence[Output]:
        """Return n outputs of the program.

        Args:
            dataset: The dataset, which must have a JSON form (see `json_values`).
            n: Number of outputs.
            rng: The random generator that chooses the program's seed.

        Raises:
            MechanismError: If the dataset has no JSON form, or if the program dies, times out, reports an error or
                does not answer with n outputs.
        """
        return self._answered(dataset, n, rng)[1]

    def run(self, datasets: Sequence[Dataset], index: int, rng: np.random.Generator, *, outcomes: bool = False) -> Run:
        """Make one run, and return the time that the program reports, or else the time from request to answer.

        Args:
            datasets: Datasets.  The one that is used must have a JSON form (see `json_values`).
            index: Index of the dataset for the run.
            rng: The random generator that chooses the program's seed.
            outcomes: Whether an error that the program reports is the outcome of the run, unless the program says that
                it has run out of memory.  In this case, the program's own time is ignored.

        Raises:
            MechanismError: As for `sample`, except for errors that are outcomes.  The error is also raised if the
                program reports something other than a time.
        """
        found, (output,), elapsed = self._answered(datasets[index], 1, rng, outcomes)
        if isinstance(output, _Reported):
            return Run(None, ("error", message_of(output)), elapsed, OUTSIDE)
        if outcomes or "seconds" not in found:
            return Run(output, None, elapsed, OUTSIDE)
        times = found["seconds"]
        try:
            if not isinstance(times, list) or len(times) != 1:
                got = f"{len(times)} numbers" if isinstance(times, list) else f"a value of type {type(times).__name__}"
                raise ValueError(f"the answer to a request with n = 1 must hold one number in a list, got {got}")
            return Run(output, None, seconds_of(times[0]), REPORTED)
        except ValueError as error:
            raise self._child().failed(f'reported wrong "seconds": {error}') from None

    def _answered(
        self, dataset: Dataset, n: int, rng: np.random.Generator, outcomes: bool = False
    ) -> tuple[JsonObject, list[Output], float]:
        """Return the program's answer, its n outputs, and the time from request to answer in seconds.

        With `outcomes`, an error that the program reports takes the place of the outputs.
        """
        seed = int(rng.integers(SEEDS))
        try:
            request = to_json({"dataset": dataset, "n": n, "seed": seed})
        except TypeError as error:
            raise MechanismError(f"the dataset cannot be sent to {self.address}: {error}") from None
        child, line = self._child(), f"{request}\n".encode()
        began = perf_counter()
        answer = child.exchange(line, EndOfLine(), timeout=self.timeout, awaited=f"a line with {n} outputs")
        elapsed = perf_counter() - began
        try:
            found = from_json(answer)
        except (ValueError, RecursionError) as error:
            raise child.failed(f"answered with a line that is not JSON ({error}): {shown(answer)}") from None
        if isinstance(found, dict) and "error" in found:
            reported = _Reported(found["error"])
            if not outcomes or of_machine(reported, self.memory is not None):
                raise child.failed(f"reported: {reported}")
            return found, [reported], elapsed
        outputs = found.get("outputs") if isinstance(found, dict) else None
        if not isinstance(outputs, list):
            raise child.failed(f'must answer {{"outputs": [...]}} or {{"error": "..."}}, got {shown(answer)}')
        if len(outputs) != n:
            raise child.failed(f"returned {len(outputs)} outputs instead of {n}")
        return found, outputs, elapsed

    def close(self) -> None:
        """End this process's instance of the program.  The next call of `sample` restarts the program."""
        close(self._key)

    def __enter__(self) -> CommandMechanism:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def _key(self) -> Hashable:
        return (self.command, self.cwd, self.env, self.memory)

    def _child(self) -> Child:
        return running(self._key, self._started)

    def _started(self) -> Child:
        env = dict(self.env) or None
        words = [_with_variable(word, {**os.environ, **dict(self.env)}) for word in self.command]
        return Child(words, name=self.address, cwd=self.cwd, env=env, memory=self.memory, hint=_BUFFERS)


def _with_variable(word: str, variables: Mapping[str, str]) -> str:
    named = re.fullmatch(r"(-[\w-]+=)?\$([A-Za-z_]\w*)", word)
    if named is None:
        return word
    if named[2] not in variables:
        raise MechanismError(f"the command needs the environment variable {named[2]}, which is not set")
    return f"{named[1] or ''}{variables[named[2]]}"


class _Reported(Exception):
    """An error that the program reports."""


_BUFFERS = "; if the program buffers its input or output, let it read line by line, and flush stdout after each answer"


class EndOfLine:
    """Finds the end of a line in a growing buffer, reading each byte once."""

    def __init__(self) -> None:
        self._searched = 0

    def __call__(self, heard: bytearray) -> int:
        """Return the number of bytes in the line, or 0 if the line is incomplete."""
        found = heard.find(b"\n", self._searched) + 1
        self._searched = len(heard)
        return found
