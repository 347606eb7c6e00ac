"""Runs programs that answer requests over pipes and stay alive between requests."""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import re
import resource
import selectors
import signal
import subprocess
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from dpaudit.running.foreign import LONGEST, MechanismError, advice, check_supported
from dpaudit.text import MAX_FILE_BYTES
from dpaudit.values import Output

TIMEOUT = 600.0  # default limit, in seconds, for an answer of a program
_KEPT = 4  # maximum number of programs that one process keeps alive between requests
_PATIENCE = 1.0  # seconds that a program has to end after its stdin is closed
_PIECE = 1 << 18  # maximum number of bytes in one read
_STDERR_KEPT = 1 << 16  # number of bytes at the start and at the end of stderr that are kept
_STDERR_COLUMNS = 500  # maximum number of characters that a message quotes from each line
_ABOUT_MEMORY = re.compile("memory|alloc", re.IGNORECASE)
_ABOUT_ERROR = re.compile(r"error|exception|panic|fatal", re.IGNORECASE)
SILENCE = 4.0  # seconds without a first answer after which `exchange` asks why

Finished = Callable[[bytearray, int], int]
"""A function of a buffer and of the size it had before, which returns the size of the answer, or 0 if incomplete."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a mechanism in another process."""

    output: Output
    raised: tuple[str, str] | None  # type and message of the exception that is the outcome of the run, if there is one
    seconds: float  # running time of the run, >= 0
    clock: str  # one of CLOCKS


class Child:
    """One running program in its own session.  `exchange` serves all pipes at once, so that no side blocks."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        name: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        memory: int | None = None,
        limited: bool = False,
        hint: str = "",
    ) -> None:
        """Start the program."""
        self.name, self._memory, self._hint = name, memory, hint
        self._owner, self._ended, self._answered = os.getpid(), False, False
        self._lock, self._doubtful = threading.Lock(), math.inf
        self._heard = bytearray()  # bytes of stdout that are not yet part of an answer
        self._stderr = bytearray()
        variables = None if env is None else {**os.environ, **env}
        try:
            if memory is not None:
                check_supported()
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=cwd,
                env=variables,
                start_new_session=True,
            )
            if memory is not None and not limited:
                resource.prlimit(self._process.pid, resource.RLIMIT_AS, (memory, memory))
        except OSError as error:
            raise MechanismError(f"{name} could not be started: {error.strerror}: {error.filename}") from None
        pipes = self._process.stdin, self._process.stdout, self._process.stderr
        self._stdin, self._stdout, self._errors = map(_without_blocking, pipes)

    @property
    def usable(self) -> bool:
        """Whether this process itself started the program and has not ended the program."""
        return self._owner == os.getpid() and not self._ended

    def exchange(
        self,
        request: bytes,
        finished: Finished | None,
        *,
        timeout: float | None,
        awaited: str,
        silent: Callable[[], str] = str,
    ) -> bytes:
        """Send a request and return the answer; without `finished`, end the input, and return the whole output.

        `silent` is called if there is no first answer for some seconds; it returns why there will be none, or "".
        """
        with self._lock:
            try:
                answer = self._exchange(request, finished, timeout, awaited, silent)
                self._answered = True
                return answer
            except BaseException:  # also Ctrl-C: a late answer must not be read as the answer to the next request
                self._end(_PATIENCE / 10)
                raise

    def failed(self, what: str) -> MechanismError:
        """End the program, and return an error that quotes the end of its stderr."""
        with self._lock:
            self._end(_PATIENCE / 10)
            return self._error(what, empty="", about_memory=_ABOUT_MEMORY.search(what) is not None)

    def close(self) -> None:
        """End the program: first close its stdin, then kill the process group."""
        with self._lock:
            self._end(_PATIENCE)

    def status(self, timeout: float | None) -> int:
        """Return the exit status of a program whose output has ended; negative if a signal ended it."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise self.failed(f"closed its stdout, but did not end within {timeout:g} s and was killed") from None

    def _exchange(
        self, request: bytes, finished: Finished | None, timeout: float | None, awaited: str, silent: Callable[[], str]
    ) -> bytes:
        if self._heard:
            raise self._error(f"printed more than its answer on stdout: {quoted_start(self._heard)}")
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        self._doubtful = math.inf if self._answered else time.monotonic() + SILENCE
        left = memoryview(request)
        with selectors.DefaultSelector() as pipes:
            pipes.register(self._stdin, selectors.EVENT_WRITE)
            pipes.register(self._stdout, selectors.EVENT_READ)
            pipes.register(self._errors, selectors.EVENT_READ)
            while True:
                ready = self._ready(pipes, deadline, silent)
                if not ready and time.monotonic() >= deadline:
                    raise self._error(
                        f"did not answer within {timeout:g} s (expected: {awaited}) and was killed; if the program is "
                        f"just slow, increase the timeout{self._hint}"
                    )
                for key in ready:
                    if key.fileobj is self._stdin:
                        try:
                            left = left[os.write(key.fd, left) :]
                        except BlockingIOError:
                            pass
                        except BrokenPipeError:  # the program has ended, but the loop still reads its stdout and stderr
                            left = left[:0]
                        if not left:
                            pipes.unregister(key.fileobj)
                            if finished is None:
                                self._stdin.close()
                    elif key.fileobj is self._errors:
                        if not self._read_stderr():
                            pipes.unregister(key.fileobj)
                    else:
                        piece, before = os.read(key.fd, _PIECE), len(self._heard)
                        self._heard += piece
                        if finished is None and len(self._heard) > MAX_FILE_BYTES:
                            raise self._error(f"printed more than {MAX_FILE_BYTES:,} bytes, the limit of one output")
                        size = len(self._heard) * (not piece) if finished is None else finished(self._heard, before)
                        if size or (finished is None and not piece):
                            answer = bytes(memoryview(self._heard)[:size])
                            del self._heard[:size]
                            return answer
                        if not piece:
                            began = f"; the answer began with {quoted_start(self._heard)}" if self._heard else ""
                            ended = f"{self._ending()} while dpaudit waited for {awaited}"
                            raise self._error(f"{ended}{began}", about_memory=True)

    def _ready(
        self, pipes: selectors.BaseSelector, deadline: float, silent: Callable[[], str]
    ) -> list[selectors.SelectorKey]:
        """Wait for a pipe, at most until the deadline; without a first answer for some seconds, ask `silent` why."""
        wait = max(0.0, min(deadline, self._doubtful) - time.monotonic())
        ready = [key for key, _ in pipes.select(min(wait, LONGEST))]
        if time.monotonic() >= self._doubtful:
            self._doubtful, why = math.inf, "" if self._heard else silent()
            ready = [key for key, _ in pipes.select(0)]
            if why and not any(key.fileobj is self._stdout for key in ready):
                raise self._error(why)
        return ready

    def _ending(self) -> str:
        """Return a predicate about a program that closed its stdout, such as "was killed by SIGKILL"."""
        try:
            status = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return "closed its stdout"
        if status >= 0:
            return f"ended with exit status {status}"
        names = {int(number): number.name for number in signal.Signals}
        return f"was killed by {names.get(-status, f'signal {-status}')}"

    def _read_stderr(self) -> bool:
        """Read the available stderr, and return whether more may follow."""
        try:
            piece = os.read(self._errors.fileno(), _PIECE)
        except BlockingIOError:
            return True
        self._stderr += piece
        del self._stderr[_STDERR_KEPT:-_STDERR_KEPT]
        return bool(piece)

    @property
    def said(self) -> str:
        """What stderr says, after a semicolon: its first line, the line of an error, and its last line; "" if empty."""
        lines = self._stderr.decode("utf-8", "replace").strip().splitlines()
        about = next((line for line in lines if _ABOUT_ERROR.search(line)), "")
        chosen = dict.fromkeys(line.strip() for line in [*lines[:1], about, *lines[-1:]] if line)
        quoted = [line if len(line) <= _STDERR_COLUMNS else f"{line[:_STDERR_COLUMNS]}…" for line in chosen]
        return f"; its stderr: {' … '.join(quoted)}" if quoted else ""

    def _error(self, what: str, empty: str = " (its stderr is empty)", about_memory: bool = False) -> MechanismError:
        if not self._errors.closed:
            before = -1
            while len(self._stderr) != before and len(self._stderr) < _STDERR_KEPT:
                before = len(self._stderr)
                self._read_stderr()
        remedy = f"; {advice(self._memory)}" if about_memory and self._memory is not None else ""
        return MechanismError(f"{self.name} {what}{remedy}{self.said or empty}")

    def _end(self, patience: float) -> None:
        if not self.usable:
            return
        self._ended = True
        self._stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # also kills all children in the group
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if not self._errors.closed:
            self._read_stderr()
        self._stdout.close()
        self._errors.close()


def quoted_start(text: bytes | bytearray) -> str:
    """Return the first 200 bytes of a program's output as one quoted line."""
    head = bytes(text[:200]).decode("utf-8", "replace")
    return repr(head) + (f" and {len(text) - 200} more bytes" if len(text) > 200 else "")


def _without_blocking(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    os.set_blocking(pipe.fileno(), False)
    return pipe


_running: OrderedDict[Hashable, Child] = OrderedDict()
_running_lock = threading.Lock()


@atexit.register
def close_all() -> None:
    """End all programs of this process."""
    with _running_lock:
        while _running:
            _running.popitem()[1].close()


class Program:
    """A mechanism whose process stays alive between calls."""

    def start(self) -> None:
        """Start the process now, and raise MechanismError if this fails."""
        self._child()

    def close(self) -> None:
        """End this process's instance of the program.  The next call restarts the program."""
        with _running_lock:
            child = _running.pop(self._key, None)
        if child is not None:
            child.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _key(self) -> Hashable:
        raise NotImplementedError

    def _started(self) -> Child:
        raise NotImplementedError

    def _child(self) -> Child:
        """Return this process's program.  It is no part of the object, which each task of a worker copies."""
        with _running_lock:
            child = _running.pop(self._key, None)
            if child is None or not child.usable:
                while len(_running) >= _KEPT:
                    _running.popitem(last=False)[1].close()
                child = self._started()
            _running[self._key] = child
            return child
