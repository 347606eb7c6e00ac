"""Runs a mechanism in new processes, whose memory holds no data of earlier runs.

Each process makes a few runs, often one run on each dataset, and ends.  The process is neither a fork nor a worker that
has run the mechanism before.  It executes this module, which reads a pickled task from stdin and writes the answer to
stdout.

Caches outside the process, such as files, remain.  So a run proves nothing if it reads a file, connects to a server or
starts a program, because these may supply results of earlier runs.  `sampling.outside` detects such code in Python.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from dpaudit.mechanisms import Batched, CommandMechanism, IsolatedMechanism, MechanismError
from dpaudit.mechanisms.fingerprint import Unknowable, fingerprint
from dpaudit.mechanisms.held import held_numbers
from dpaudit.mechanisms.literals import drawn_perhaps
from dpaudit.mechanisms.memory import memory_limited
from dpaudit.mechanisms.modules import address, module_file
from dpaudit.mechanisms.protocol import in_words
from dpaudit.mechanisms.python import PythonMechanism
from dpaudit.mechanisms.stateless import portable
from dpaudit.outputs import Timed
from dpaudit.sampling.detached import Dataset
from dpaudit.sampling.outside import outside
from dpaudit.sampling.runs import ExecutionSettings, Runs, resolved
from dpaudit.values import Foreign, Output

Answer = TypeVar("Answer")

Place = tuple[str | int, ...]
"""The keys and indices that lead to a part of an output.  The empty tuple leads to the whole output."""

_MAX_NUMBERS, _MAX_PARTS, _MAX_DEPTH = 1_000, 100, 4


class NotPossible(Exception):
    """Raised if the mechanism cannot be run in a new process.  The message states the reason."""


@dataclass(frozen=True, slots=True)
class ByName:
    """A function or object of a module that a new process imports by name."""

    module: str
    name: str
    file: str  # the module's file

    @property
    def loaded(self) -> object:
        """The object, loaded from `file` if importing the module by its name would not give this file."""
        try:
            found: object = importlib.import_module(self.module)
        except ImportError:
            found = None
        if found is None or str(module_file(self.module)) != self.file:
            return PythonMechanism(f"{self.file}:{self.name}", folder=Path("/")).loaded
        for part in self.name.split("."):
            found = getattr(found, part)
        return found


def sent(mechanism: object) -> object:
    """Return a form of the mechanism for a new process, without the state from runs in this process.

    Raises:
        NotPossible: If the parameters cannot be distinguished from state that earlier runs left.
    """
    if isinstance(mechanism, CommandMechanism | IsolatedMechanism):
        return mechanism
    if isinstance(mechanism, PythonMechanism):
        return replace(mechanism, folder=mechanism.folder.resolve())
    if (named := _by_name(mechanism)) is not None:
        return named
    if portable(mechanism):
        if names := drawn_perhaps(mechanism):
            raise NotPossible(
                f"the source does not define {', '.join(names)} as a literal, so the mechanism may hold noise that "
                "was sampled only once.  Write parameters as literals, such as SCALE = 0.5, or put the mechanism into "
                "a file and name it in a config as FILE.py:OBJECT"
            )
        return mechanism
    raise NotPossible(
        "a copy of the mechanism may hold results of earlier runs.  Put the mechanism into a file and name it in a "
        "config as FILE.py:OBJECT, or switch the cache off"
    )


def _by_name(mechanism: object) -> ByName | None:
    function = mechanism.function if isinstance(mechanism, Batched) else mechanism
    if (known := address(function)) is None:
        return None
    module, name, found = known
    file = module_file(module)
    if file is None or (found is not mechanism and found is not function):
        return None
    if isinstance(mechanism, Batched) and found is not mechanism:
        return None  # the module holds the plain function, and other code made the batched mechanism
    return ByName(module, name, str(file))


def outputs_in_a_fresh_process(
    mechanism: Foreign,
    datasets: Sequence[Foreign],
    seeds: Sequence[int],
    execution: ExecutionSettings,
    *,
    timeout: float,
    paths: Sequence[Sequence[Sequence[Place]]],
) -> list[list[list[str]]]:
    """Run the mechanism once on each dataset, all in one new process.

    Args:
        mechanism: The value that `sent` returned.
        datasets: The datasets, in the order of the runs.
        seeds: One seed for each run.
        execution: The execution settings of the audit.
        timeout: The process is killed after this number of seconds.
        paths: For each dataset, lists of paths to the requested parts.  The path () stands for the whole output.
            The result has the same shape as `paths`, with a fingerprint in place of each path.

    Raises:
        NotPossible: If the process could not make the runs.  The message states the reason.
    """
    runs = [
        Runs(mechanism, Dataset(dataset), seed, 0, 0, 0, 1, execution)
        for dataset, seed in zip(datasets, seeds, strict=True)
    ]
    found: list[list[list[str]]] = _in_a_fresh_process(_made, runs, paths, timeout=timeout)
    return found


@dataclass(frozen=True, slots=True)
class Twin:
    """The outcome of runs in a new process."""

    outputs: list[list[str]]  # fingerprints of the outputs, one list for each `Runs`
    # numbers held after these runs (before them, if each run adds one) and also after a repetition; none for programs
    kept: Counter[float]


def twin_in_a_fresh_process(runs: Sequence[Runs], *, timeout: float) -> Twin:
    """Repeat runs in a new process.

    Args:
        runs: The runs of a mechanism that `sent` returned.
        timeout: The process is killed after this number of seconds.

    Raises:
        NotPossible: If the process could not make the runs.  The message states the reason.
    """
    found: Twin = _in_a_fresh_process(_twin, runs, timeout=timeout)
    return found


def values_in_a_fresh_process(runs: Sequence[Runs], *, timeout: float) -> list[Foreign]:
    """Return the first output of each item of `runs`, with the arguments and errors of `twin_in_a_fresh_process`."""
    found: list[Output] = _in_a_fresh_process(_values, runs, timeout=timeout)
    return found


def _in_a_fresh_process(ask: Callable[..., Answer], runs: Sequence[Runs], *more: object, timeout: float) -> Answer:
    mechanism = runs[0].mechanism
    if isinstance(mechanism, CommandMechanism | IsolatedMechanism):
        mechanism.close()
        try:
            return ask(runs, *more)
        finally:
            mechanism.close()
    try:
        task: bytes = _cloudpickle().dumps((ask, runs, more))
    except Exception as error:
        raise NotPossible(
            f"the mechanism or a dataset cannot be sent to a new process ({type(error).__name__}: {error})"
        ) from None
    found: Answer = _answer(task, timeout)
    return found


def _cloudpickle() -> Foreign:
    """Import cloudpickle.  joblib 1.6 and later require this package, and earlier versions contain it."""
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        return importlib.import_module("joblib.externals.cloudpickle")


def _answer(task: bytes, timeout: float) -> Foreign:
    folders = [path or os.getcwd() for path in sys.path if isinstance(path, str)]
    try:
        done = subprocess.run(
            # Without -P, Python would search the working folder first, and a module in it could hide another module.
            [sys.executable, "-P", "-m", "dpaudit.sampling.fresh_process"],
            input=task,
            capture_output=True,
            timeout=timeout,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        )
    except subprocess.TimeoutExpired:
        raise NotPossible(f"a run in a new process took longer than {timeout:.0f} s") from None
    try:
        found = pickle.loads(done.stdout)  # safe, because this module wrote the answer
    except Exception:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise NotPossible(f"a new process failed: {' '.join(last) or done.returncode}") from None
    if isinstance(found, str):
        raise NotPossible(found)
    return found


def _made(runs: Sequence[Runs], parts: Sequence[Sequence[Sequence[Place]]]) -> list[list[list[str]]]:
    outputs = _values(runs)
    return [
        [[told_apart(part_of(output, path)) for path in some] for some in asked]
        for output, asked in zip(outputs, parts, strict=True)
    ]


def _values(runs: Sequence[Runs]) -> list[Output]:
    return [_outputs(one)[0] for one in runs]


def _twin(runs: Sequence[Runs]) -> Twin:
    program = isinstance(runs[0].mechanism, CommandMechanism | IsolatedMechanism)
    mechanism = _here(runs[0].mechanism)
    loaded = Counter[float]() if program else held_numbers(mechanism)
    outputs = [[told_apart(output) for output in _outputs(one)] for one in runs]
    if program:
        return Twin(outputs, Counter())
    held = held_numbers(mechanism)
    for one in runs:
        _outputs(replace(one, seed=one.seed + 1))
    later = held_numbers(mechanism)
    a_history = (later - held).total() >= sum(one.stop - one.start for one in runs)  # whether each run adds a number
    return Twin(outputs, (loaded if a_history else held) & later)


def _here(mechanism: object) -> object:
    return mechanism.loaded if isinstance(mechanism, ByName) else mechanism


def _outputs(runs: Runs) -> list[Output]:
    """Make the runs in this process, and raise NotPossible if a run fails or accesses possible data of earlier runs."""
    mechanism = _here(runs.mechanism)
    resolved(mechanism)
    outside.running = True
    outcome = replace(runs, mechanism=mechanism)()
    outside.running = False
    if outside.found:
        raise NotPossible(
            f"a run in a new process {outside.found}, which may hold results of earlier runs.  Switch off a "
            "cache.  Load other data when the mechanism is loaded, not in a run"
        )
    if outcome.failure:
        raise NotPossible(f"in a new process the mechanism {outcome.failure}")
    return [output.output if isinstance(output, Timed) else output for output in outcome.outputs]


def parts_of(output: Output) -> dict[Place, Output]:
    """Return the innermost parts of a list, tuple, dict or array by their paths.

    At most 100 parts are returned, or 1,000 numbers if the output is an array with one axis.
    """
    if isinstance(output, np.ndarray) and output.ndim == 1 and not output.dtype.hasobject:
        return {(i,): number for i, number in enumerate(output[:_MAX_NUMBERS])}
    found: dict[Place, Output] = {}

    def look(value: object, path: Place) -> None:
        if len(found) >= _MAX_PARTS:
            return
        if isinstance(value, np.ndarray) and value.ndim == 1 and not value.dtype.hasobject:
            found.update({(*path, i): item for i, item in enumerate(value[: _MAX_PARTS - len(found)])})
        elif len(path) < _MAX_DEPTH and type(value) is dict:
            for key, item in value.items():
                if type(key) in (str, int):
                    look(item, (*path, key))
        elif len(path) < _MAX_DEPTH and isinstance(value, list | tuple):
            for i, item in enumerate(value):
                look(item, (*path, i))
        elif path and (value is None or isinstance(value, bool | int | float | str | bytes | np.generic)):
            found[path] = value

    look(output, ())
    return found


def part_of(output: Output, path: Place) -> Output:
    """Return the part of the output at this path, or `Missing` if there is no such part."""
    for step in path:
        try:
            output = output[step]
        except Exception:  # the class of the output may raise any exception
            return Missing
    return output


class Missing:
    """A placeholder for a part that an output does not have."""


def told_apart(output: Output) -> str:
    """Return a text that is equal for equal outputs in any process."""
    output = output.output if isinstance(output, Timed) else output
    try:
        return fingerprint(output)
    except Unknowable:
        return repr(output)


def _packed(answer: object) -> bytes:
    try:
        return pickle.dumps(answer)
    except Exception as error:  # pickling runs code of the output's class, which may raise any exception
        return pickle.dumps(f"an output cannot be sent back ({type(error).__name__}: {error})")


def _main() -> None:
    own_out = os.dup(1)
    os.dup2(2, 1)  # text that the mechanism prints must not mix with the answer
    sys.addaudithook(outside)
    try:
        ask, runs, more = pickle.loads(sys.stdin.buffer.read())  # safe, because the parent process wrote the task
        with memory_limited(runs[0].execution.memory):
            answer: object = ask(runs, *more)
    except (NotPossible, MechanismError) as error:
        answer = str(error)
    except BaseException as error:
        answer = f"the mechanism raised {in_words(error)}"
    with os.fdopen(own_out, "wb") as stream:
        stream.write(_packed(answer))


if __name__ == "__main__":
    # Import the module by name, because pickled objects refer to its classes by that name and not by __main__.
    from dpaudit.sampling import fresh_process as fresh

    fresh._main()
