"""Runs mechanisms that are programs in any language, with these forms for values that JSON cannot express:

    NaN, inf, any float exactly     {"$float": "nan"}, {"$float": "-inf"}, {"$float": "0x1.8p+1"}
    bytes                           {"$bytes": "<base64>"}

Requests use `$float` only for NaN and inf.  Answers may also use the bare words NaN, Infinity and -Infinity.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import json
import math
import os
import re
import tempfile
from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from dpaudit.running.foreign import OUTSIDE, REPORTED, MechanismError, Status
from dpaudit.running.outcomes import message_of, of_machine
from dpaudit.running.processes import SILENCE, TIMEOUT, Child, Program, Run, quoted_start
from dpaudit.settings import check_memory
from dpaudit.text import masked_command
from dpaudit.values import Dataset, Json, JsonObject, Output

SEEDS = 2**53  # upper limit of seeds (exclusive); a JSON reader with float64 numbers reads smaller seeds exactly
SMALL_SEEDS = 2**31 - 1  # upper limit of {seed}: some awks and shells take larger seeds for this one
_FILLED = re.compile(r"\{(seed|dataset|dataset\.json|dataset\.csv)\}")  # parts of words that a one-shot run replaces


@dataclass(frozen=True, init=False)
class CommandMechanism(Program):
    """A mechanism that is a program and answers each JSON line with one JSON line.

    The program reads `{"dataset": ..., "n": 1000, "seed": 12345}` from stdin and answers `{"outputs": [...]}` with n
    independent outputs, or `{"error": "..."}`, until its stdin ends.  For audits with `observe_time`, whose requests
    have n = 1, an answer may hold `"seconds": [...]`.  NaN and bytes are written as `{"$float": "nan"}` and `{"$bytes":
    "<base64>"}`.  If the program fails, the error message shows its stderr.

    The audit's random generator chooses the seed, so the audit is reproducible if the program takes all randomness from
    it.

    Each process that runs trials starts the program once, without a shell.  Then a word `$NAME` or `--option=$NAME`
    gets the value of an environment variable, which no file records.

    With `one_shot`, each run is a process of its own: it reads the dataset as JSON from stdin and prints its output.
    Words of the command may hold `{seed}`, a fresh seed, and `{dataset}` or `{dataset.csv}`, the path of a new file
    with the dataset, in place of stdin.  `read_output` says how the output is read.

    Args:
        command: The program and its arguments.
        one_shot: Whether the program makes one run and ends.
        timeout: The program is killed after this number of seconds without an answer.  None means no limit.
        cwd: The working directory of the program, to which its path may be relative.
        env: Environment variables in addition to the inherited ones.
        memory: Maximum address space of the program, as bytes or as text such as "2 GB" (Linux only).  None: no limit.

    Raises:
        ValueError: If `command` is not a list of text, or `timeout` is not positive.
    """

    command: tuple[str, ...]
    one_shot: bool
    timeout: float | None
    cwd: Path | None
    env: tuple[tuple[str, str], ...]
    memory: int | None

    def __init__(
        self,
        command: Sequence[str],
        *,
        one_shot: bool = False,
        timeout: float | None = TIMEOUT,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        memory: int | str | None = None,
    ) -> None:
        if isinstance(command, str) or not command or not all(isinstance(word, str) for word in command):
            raise ValueError(f"command must be a list of the program and its arguments, got {command!r}")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be > 0 seconds, got {timeout}")
        if not one_shot and (filled := _FILLED.search(" ".join(command))):
            raise ValueError(f"{filled[0]} in the command is replaced for each run, which needs one_shot: true")
        object.__setattr__(self, "command", tuple(command))
        object.__setattr__(self, "one_shot", one_shot)
        object.__setattr__(self, "timeout", timeout)
        object.__setattr__(self, "cwd", None if cwd is None else Path(cwd))
        object.__setattr__(self, "env", tuple(sorted((env or {}).items())))
        object.__setattr__(self, "memory", check_memory(memory))

    def with_memory(self, memory: int | None) -> CommandMechanism:
        """Return the same program with another memory limit."""
        return CommandMechanism(
            self.command,
            one_shot=self.one_shot,
            timeout=self.timeout,
            cwd=self.cwd,
            env=dict(self.env),
            memory=memory,
        )

    @property
    def address(self) -> str:
        """The command line, with apparent secrets masked."""
        return masked_command(self.command)

    def sample(self, dataset: Dataset, n: int, rng: np.random.Generator) -> Sequence[Output]:
        """Return n outputs of the program.

        Args:
            dataset: The dataset, which must have a JSON form.
            n: Number of outputs.
            rng: The random generator that chooses the program's seed.

        Raises:
            MechanismError: If the dataset has no JSON form, or if the program dies, times out, reports an error or
                does not answer with n outputs.
            Status: If a one-shot program ends with an exit status other than 0.
        """
        if self.one_shot:
            return [self._one_run(dataset, int(rng.integers(SMALL_SEEDS))) for _ in range(n)]
        return self._answered(dataset, n, rng)[1]

    def start(self) -> None:
        """Start the program now, unless each run starts it; raise MechanismError if it cannot be started."""
        if self.one_shot:
            self._words()
        else:
            self._child()

    def _one_run(self, dataset: Dataset, seed: int) -> Output:
        """Start the program for one run, and return what it printed."""
        named = {match[1] for match in map(_FILLED.search, self.command) if match} - {"seed"}
        with tempfile.TemporaryDirectory(prefix="dpaudit-") if named else nullcontext() as folder:
            values = {"seed": str(seed)}
            for name in named:
                file = Path(folder or "", name if "." in name else f"{name}.json")
                values[name] = str(file)
                file.write_text(self._sent(dataset, csv=file.suffix == ".csv"), encoding="utf-8")
            words = [_FILLED.sub(lambda found: values[found[1]], word) for word in self._words()]
            request = b"" if named else f"{self._sent(dataset)}\n".encode()
            child = Child(words, name=self.address, cwd=self.cwd, env=dict(self.env), memory=self.memory)
            try:
                text = child.exchange(request, None, timeout=self.timeout, awaited="its output")
                status = child.status(self.timeout)
                if status < 0:
                    raise child.failed(f"was killed by signal {-status}")
            finally:
                child.close()
        if status > 0:
            error = Status(f"exit status {status}")
            error.add_note(f" of {self.address}{child.said}")
            raise error
        return read_output(text.decode("utf-8", "replace"))

    def _sent(self, value: Any, *, csv: bool = False) -> str:
        """Return a value as JSON, or a dataset as CSV."""
        try:
            return _as_csv(as_json(value)) if csv else json.dumps(as_json(value), allow_nan=False)
        except TypeError as error:
            raise MechanismError(f"the dataset cannot be sent to {self.address}: {error}") from None

    def run(self, datasets: Sequence[Dataset], index: int, rng: np.random.Generator, *, outcomes: bool = False) -> Run:
        """Make one run, and return the time that the program reports, or else the time from request to answer.

        Args:
            datasets: Datasets.  The one that is used must have a JSON form.
            index: Index of the dataset for the run.
            rng: The random generator that chooses the program's seed.
            outcomes: Whether an error that the program reports is the outcome of the run, unless the program says that
                it has run out of memory.  In this case, the program's own time is ignored.

        Raises:
            MechanismError: As for `sample`, except for errors that are outcomes.  The error is also raised if the
                program reports something other than a time.
        """
        answer, (output,), elapsed = self._answered(datasets[index], 1, rng, outcomes)
        if isinstance(output, _Reported):
            return Run(None, ("error", message_of(output)), elapsed, OUTSIDE)
        if outcomes or "seconds" not in answer:
            return Run(output, None, elapsed, OUTSIDE)
        times = answer["seconds"]
        seconds: Any = times[0] if isinstance(times, list) and len(times) == 1 else None
        if type(seconds) not in (int, float) or not 0 <= seconds < 1e300:
            allowed = "a list with one finite number >= 0, as n = 1"
            raise self._child().failed(f'reported wrong "seconds": they must be {allowed}, got {times!r:.100}')
        return Run(output, None, float(seconds), REPORTED)

    def _answered(
        self, dataset: Dataset, n: int, rng: np.random.Generator, outcomes: bool = False
    ) -> tuple[JsonObject, list[Output], float]:
        """Return the program's answer, its outputs or (with `outcomes`) the error that it reports, and the seconds."""
        request = self._sent({"dataset": dataset, "n": n, "seed": int(rng.integers(SEEDS))})
        child, line = self._child(), f"{request}\n".encode()
        began = perf_counter()
        text = child.exchange(
            line,
            lambda heard, before: heard.find(b"\n", before) + 1,
            timeout=self.timeout,
            awaited=f"a line with {n} outputs",
            silent=lambda: self._waits_for_the_end(line),
        )
        elapsed = perf_counter() - began
        try:
            answer: Json = json.loads(text, object_hook=read_special)
        except (ValueError, RecursionError) as error:
            raise child.failed(f"answered with a line that is not JSON ({error}): {quoted_start(text)}") from None
        if isinstance(answer, dict) and "error" in answer:
            reported = _Reported(answer["error"])
            if not outcomes or of_machine(reported, self.memory is not None):
                raise child.failed(f"reported: {reported}")
            return answer, [reported], elapsed
        outputs = answer.get("outputs") if isinstance(answer, dict) else None
        if not isinstance(outputs, list):
            one_shot = "; if it prints only its output and ends, add one_shot: true"
            raise child.failed(
                f'must answer {{"outputs": [...]}} or {{"error": "..."}}, got {quoted_start(text)}{one_shot}'
            )
        if len(outputs) != n:
            raise child.failed(f"returned {len(outputs)} outputs instead of {n}")
        return answer, outputs, elapsed

    @property
    def _key(self) -> Hashable:
        return (self.command, self.cwd, self.env, self.memory)

    def _waits_for_the_end(self, line: bytes) -> str:
        """Say so if another process of this program prints only its output after the end of its input.

        A program that answers requests may just start slowly, so it is awaited.
        """
        try:
            child = self._started()
            try:
                text = child.exchange(line, None, timeout=SILENCE, awaited="its end")
            finally:
                child.close()
        except MechanismError:
            return ""
        printed = read_output(text.decode("utf-8", "replace"))
        if printed is None or (isinstance(printed, dict) and not printed.keys().isdisjoint(("outputs", "error"))):
            return ""
        return "reads its input to the end before it answers: if it makes one run and ends, add one_shot: true"

    def _words(self) -> list[str]:
        """Return the words of the command with the values of the environment variables that they name."""
        variables, words = {**os.environ, **dict(self.env)}, []
        for word in self.command:
            named = re.fullmatch(r"(-[\w-]+=)?\$([A-Za-z_]\w*)", word)
            if named is not None and named[2] not in variables:
                raise MechanismError(f"the command needs the environment variable {named[2]}, which is not set")
            words.append(word if named is None else f"{named[1] or ''}{variables[named[2]]}")
        return words

    def _started(self) -> Child:
        hint = (
            "; if the program buffers its input or output, let it read line by line, and flush stdout after each answer"
        )
        return Child(self._words(), name=self.address, cwd=self.cwd, env=dict(self.env), memory=self.memory, hint=hint)


class _Reported(Exception):
    """An error that the program reports."""


def read_output(text: str) -> Output:
    """Return what a one-shot program printed: a JSON value, or else one entry for each line; None for nothing.

    A line is a JSON value, a number such as `.5` or `nan`, or a text.  Several words of a line are a list of these, so
    that a number after a label is a number.
    """
    try:
        return json.loads(text, object_hook=read_special)
    except (ValueError, RecursionError):
        lines = [_read_line(line) for line in text.splitlines() if line.strip()]
    return lines[0] if len(lines) == 1 else lines or None


def _read_line(line: str) -> Output:
    words: list[Output] = []
    for word in [line] if line.lstrip()[:1] in ("{", "[", '"') else line.replace(",", " ").split():
        value: Output = word
        for read in (lambda text: json.loads(text, object_hook=read_special), float):
            with suppress(ValueError, RecursionError):
                value = read(word)
                break
        words.append(value)
    return words[0] if len(words) == 1 else words


def _as_csv(dataset: Any) -> str:
    """Return a table of records with a header, a list of rows, or a list of numbers, one on each line."""
    rows, header = dataset if isinstance(dataset, list) else [dataset], None
    if isinstance(dataset, dict) and all(isinstance(column, list) for column in dataset.values()):
        header, rows = list(dataset), list(zip(*dataset.values(), strict=True))
    elif rows and all(isinstance(row, dict) and _FLOAT not in row for row in rows):
        header, rows = list(rows[0]), [[row.get(name) for name in rows[0]] for row in rows]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for row in [header, *rows] if header else rows:
        cells = row if isinstance(row, list | tuple) else [row]
        writer.writerow([cell.get(_FLOAT, cell) if isinstance(cell, dict) else cell for cell in cells])
    return file.getvalue()


_FLOAT, _BYTES = "$float", "$bytes"


def as_json(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {_FLOAT: repr(float(value))}
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"keys must be text, got {wrong[0]!r}")
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if hasattr(value, "columns") and hasattr(value, "to_dict"):  # data frames of pandas and polars
        return {str(name): as_json(value[name].to_list()) for name in value.columns}
    raise TypeError(f"a {type(value).__qualname__} has no JSON form")


def read_special(found: dict[str, object]) -> object:
    key, text = next(iter(found.items()), ("", None))
    if len(found) != 1 or key not in (_FLOAT, _BYTES) or not isinstance(text, str):
        return found
    try:
        return float.fromhex(text) if key == _FLOAT else base64.b64decode(text, validate=True)
    except (ValueError, OverflowError, binascii.Error) as error:
        raise ValueError(f"{key} {text[:60]!r}: {error}") from None
