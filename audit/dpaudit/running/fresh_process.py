"""Runs a mechanism in new processes, which execute this module, and whose memory holds nothing of earlier runs.

A run does not count if Python code in it reads a file that another process wrote after the audit began.
"""

from __future__ import annotations

import functools
import importlib
import io
import operator
import os
import pickle
import random
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.running import Batched, CommandMechanism, IsolatedMechanism, MechanismError, Service
from dpaudit.running.fingerprint import address, module_file
from dpaudit.running.foreign import memory_limited
from dpaudit.running.mechanisms import PythonMechanism, resolved
from dpaudit.running.outcomes import in_words
from dpaudit.running.processes import Child
from dpaudit.running.runs import Outcome, Runs
from dpaudit.running.streams import seed_global_randomness
from dpaudit.running.wire import HEADER, frame, frame_size, own_streams, received, unframe
from dpaudit.values import Parameters

_LOCK, _REENTRANT_LOCK = type(threading.Lock()), type(threading.RLock())
Made = tuple[Outcome, Outcome]  # the outcomes of the runs of one process on d0 and on d1


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
        with suppress(ImportError):
            module = importlib.import_module(self.module)
            if str(module_file(self.module)) == self.file:
                return operator.attrgetter(self.name)(module)
        return PythonMechanism(f"{self.file}:{self.name}", folder=Path("/")).loaded


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy of a mechanism, made before its first run."""

    content: bytes

    @property
    def loaded(self) -> object:
        """The copy."""
        return pickle.loads(self.content)  # safe, because this process wrote the content


def sent(mechanism: object) -> object:
    """Return a form of the mechanism for new processes. Call this function before the first run."""
    if isinstance(mechanism, CommandMechanism | IsolatedMechanism):
        return mechanism
    if isinstance(mechanism, Service):
        raise NotPossible("a new process would ask the same service")
    if isinstance(mechanism, PythonMechanism):
        return replace(mechanism, folder=mechanism.folder.resolve())
    # If a module holds the plain function, and other code made the batched mechanism, the mechanism has no name.
    module, name, value = address(mechanism.function if isinstance(mechanism, Batched) else mechanism) or ("", "", None)
    if value is mechanism and (file := module_file(module)) is not None:
        return ByName(module, name, str(file))
    try:
        return Copied(_copy(mechanism))
    except Exception as error:  # pickling runs code of the mechanism's class, which may raise any exception
        raise NotPossible(f"the mechanism cannot be sent to a new process ({in_words(error)})") from None


def _copy(mechanism: object) -> bytes:
    """Pickle a mechanism with new seeds for its generators on loading, free locks and empty caches."""

    class Pickler(_cloudpickle().Pickler):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, np.random.BitGenerator) or type(obj) in (random.Random, np.random.RandomState):
                return _seeded, (type(obj),)
            if isinstance(obj, _LOCK | _REENTRANT_LOCK):
                return threading.Lock if isinstance(obj, _LOCK) else threading.RLock, ()
            if isinstance(obj, functools._lru_cache_wrapper) and (address(obj) or (0, 0, None))[2] is not obj:
                return _cached, (obj.__wrapped__, obj.cache_parameters())
            return super().reducer_override(obj)

    file = io.BytesIO()
    Pickler(file).dump(mechanism)
    return file.getvalue()


def _seeded(kind: type) -> Any:
    """Return a random generator with a seed from the global state of `random`."""
    seed = random.getrandbits(128)
    return kind(np.random.MT19937(seed)) if kind is np.random.RandomState else kind(seed)


def _cached(function: Callable[..., Any], parameters: Parameters) -> Any:
    return functools.lru_cache(**parameters)(function)


def made_in_new_processes(tasks: Sequence[tuple[Runs, Runs]], since: float) -> Iterator[Made]:
    """Make the runs of each task in a new process, and yield the outcomes in the order of the tasks."""
    mechanism = tasks[0][0].mechanism
    if isinstance(mechanism, CommandMechanism | IsolatedMechanism):  # one process at a time
        for runs0, runs1 in tasks:
            mechanism.close()
            try:
                made = _checked((runs0(), runs1()))
            finally:
                mechanism.close()
            yield made
        return
    with ThreadPoolExecutor(min(len(tasks), os.cpu_count() or 1)) as pool:
        yield from pool.map(lambda task: _in_a_new_process(task[0], task[1], since), tasks)


def _in_a_new_process(runs0: Runs, runs1: Runs, since: float) -> Made:
    try:
        content: bytes = _cloudpickle().dumps((runs0, runs1, since))
    except Exception as error:
        raise NotPossible(f"a dataset cannot be sent to a new process ({in_words(error)})") from None
    folders = [path or os.getcwd() for path in sys.path if isinstance(path, str)]
    # Without -P, Python would search the working folder first, and a module in it could hide another.
    command = [sys.executable, "-P", "-m", "dpaudit.running.fresh_process"]
    try:
        child = Child(command, name="a new process", env={"PYTHONPATH": os.pathsep.join(folders)})
        try:
            answer = child.exchange(frame(content), frame_size, timeout=None, awaited="its outcomes")
        finally:
            child.close()
    except MechanismError as error:
        raise NotPossible(" ".join(str(error).split())[:300]) from None
    return _checked(pickle.loads(unframe(answer[HEADER.size :])))  # safe, because this module wrote it


def _checked(made: Made | str) -> Made:
    """Return the outcomes, or raise an error with the reason why they do not count."""
    if isinstance(made, str):
        raise NotPossible(made)
    if failure := made[0].failure or made[1].failure:
        raise NotPossible(f"in a new process the mechanism {failure}")
    return made


def _cloudpickle() -> Any:
    """Import cloudpickle.  joblib 1.6 and later require this package, and earlier versions contain it."""
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        return importlib.import_module("joblib.externals.cloudpickle")


class _Reads:
    """An audit hook for `sys.addaudithook` that records the first file that another process wrote during the audit."""

    def __init__(self, since: float) -> None:
        self.since, self.file, self._own = since, "", set[str]()

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        path, _, flags = arguments if event == "open" and not self.file else (None, None, None)
        if not isinstance(path, str | bytes) or not isinstance(flags, int):
            return
        with suppress(OSError, ValueError):
            name, access = os.path.abspath(os.fsdecode(path)), flags & os.O_ACCMODE
            code = name.endswith((".py", ".pyc")) or name.startswith(("/dev/", "/proc/", "/sys/"))
            if access != os.O_RDONLY and flags & (os.O_TRUNC | os.O_EXCL):
                self._own.add(name)
            elif access != os.O_WRONLY and not code and name not in self._own:
                about = os.stat(name)
                if stat.S_ISREG(about.st_mode) and about.st_mtime >= self.since:
                    self.file = name


def _made(runs: Sequence[Runs], since: float, hook: Callable[[_Reads], None]) -> Made | str:
    mechanism = runs[0].mechanism
    if isinstance(mechanism, ByName | Copied):
        seed_global_randomness(runs[0].seed, "loaded", runs[0].start)
        mechanism = mechanism.loaded
    resolved(mechanism)
    reads = _Reads(since)
    hook(reads)
    made0, made1 = (replace(side, mechanism=mechanism)() for side in runs)
    if reads.file:
        return f"a run read the file {ascii(reads.file)[:200]}, which another process wrote during the audit"
    return made0, made1


def _main() -> None:
    requests, answers = own_streams()
    task = unframe(received(requests) or b"")
    try:
        runs0, runs1, since = pickle.loads(task)  # safe, because the parent process wrote the task
        with memory_limited(runs0.execution.memory):
            made = _made((runs0, runs1), since, sys.addaudithook)
    except BaseException as error:
        made = f"in a new process the mechanism raised {in_words(error)}"
    try:
        content = pickle.dumps(made)
    except Exception as error:  # pickling runs code of the output's class, which may raise any exception
        content = pickle.dumps(f"an output cannot be sent back from a new process ({in_words(error)})")
    answers.write(frame(content))
    answers.flush()


if __name__ == "__main__":
    # Import the module by name, because pickled objects refer to its classes by that name and not by __main__.
    from dpaudit.running import fresh_process as fresh

    fresh._main()
    os._exit(0)  # threads of the mechanism could delay a usual end
