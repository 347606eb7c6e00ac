"""Programs that answer requests over pipes, and stay alive between them."""

from __future__ import annotations

import atexit
import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path

from dpaudit.mechanisms import guardian
from dpaudit.mechanisms.protocol import MechanismError

TIMEOUT = 600.0  # seconds of silence that are borne if the user names no other limit
MAX_ANSWER_BYTES = 2**31  # of one answer; a program that says more is ended before it fills the memory
_LOOK = 1.0  # seconds after which it is looked whether a silent program has died
_KEPT = 4  # programs that stay alive between requests, in each process of ours
_PATIENCE = 1.0  # seconds a program has to end by itself when its stdin is closed
_PIECE = 1 << 18  # bytes read at once
_STDERR_KEPT = 1 << 16  # bytes
_STDERR_LINES = 20

Finished = Callable[[bytearray], int]
"""Bytes that the complete answer at the head of a buffer has; 0 if it is not complete."""


class Child:
    """One running program.  POSIX only.

    Not a thread reads or writes for it: `exchange` serves all three pipes at once, so neither side can block the other.
    The program has a session of its own: Ctrl-C reaches it through us only, and its children end with it.
    """

    def __init__(
        self, command: Sequence[str], *, name: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        """`name`: what messages call it.  `env`: variables besides those of this process."""
        self.name = name
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._heard = bytearray()  # of stdout, not yet part of an answer
        self._stderr = bytearray()
        self._ended = False
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=cwd,
                env=None if env is None else {**os.environ, **env},
                start_new_session=True,
            )
        except OSError as error:
            raise MechanismError(f"{name} could not be started: {error.strerror}: {error.filename}") from None
        guardian.watch(self._process.pid)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)

    @property
    def usable(self) -> bool:
        """Whether it was started by this process (not by one we are a fork of) and not ended by it."""
        return self._owner == os.getpid() and not self._ended

    def exchange(self, request: bytes, finished: Finished, *, timeout: float | None, awaited: str) -> bytes:
        """The answer to `request`, as far as `finished` says it goes.

        `timeout`: seconds of waiting for it.  MechanismError if the program dies, is silent for longer, or had said
        more than it was asked before; it is ended then.  `awaited`: what the answer would have held, for the message.
        """
        with self._lock:
            try:
                return self._exchange(request, finished, timeout, awaited)
            except BaseException:  # also Ctrl-C: an answer that comes later must not be taken for another's
                self._end(_PATIENCE / 10)
                raise

    def failed(self, what: str) -> MechanismError:
        """The error that says `what` the program did, with the end of its stderr.  Ends the program."""
        with self._lock:
            self._end(_PATIENCE / 10)
            return self._error(what, empty="")

    def close(self) -> None:
        """End the program: first by closing its stdin, then by force."""
        with self._lock:
            self._end(_PATIENCE)

    def _exchange(self, request: bytes, finished: Finished, timeout: float | None, awaited: str) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        if self._heard:
            raise self._error(f"printed more than its answer on stdout: {shown(self._heard)}")
        deadline = None if timeout is None else time.monotonic() + timeout
        left = memoryview(request)
        with selectors.DefaultSelector() as pipes:
            pipes.register(self._process.stdin, selectors.EVENT_WRITE)
            pipes.register(self._process.stdout, selectors.EVENT_READ)
            pipes.register(self._process.stderr, selectors.EVENT_READ)
            while True:
                ready = self._ready(pipes, deadline, timeout, awaited)
                for key, _ in ready:
                    if key.fileobj is self._process.stdin:
                        try:
                            left = left[os.write(key.fd, left) :]
                        except BlockingIOError:
                            pass
                        except BrokenPipeError:  # it has ended; what it said on stdout and stderr comes first
                            left = left[:0]
                        if not left:
                            pipes.unregister(key.fileobj)
                    elif key.fileobj is self._process.stderr:
                        if not self._read_stderr():
                            pipes.unregister(key.fileobj)
                    else:
                        piece = os.read(key.fd, _PIECE)
                        self._heard += piece
                        size = finished(self._heard)
                        if len(self._heard) > MAX_ANSWER_BYTES and not size:
                            raise self._error(
                                f"sent more than {MAX_ANSWER_BYTES / 2**30:g} GiB in one answer, and was ended; return "
                                "smaller outputs, or fewer at once"
                            )
                        if size:
                            answer = bytes(memoryview(self._heard)[:size])
                            del self._heard[:size]
                            return answer
                        if not piece:
                            raise self._error(f"{self._ending()} while {awaited} was awaited{self._cut_off()}")

    def _ready(
        self, pipes: selectors.BaseSelector, deadline: float | None, timeout: float | None, awaited: str
    ) -> list[tuple[selectors.SelectorKey, int]]:
        """The pipes that can be used, after `_LOOK` seconds at most.  MechanismError if the program died or is late."""
        wait = _LOOK if deadline is None else deadline - time.monotonic()
        ready = pipes.select(min(wait, _LOOK)) if wait > 0 else []
        if ready:
            return ready
        if self._process.poll() is not None:
            if last := pipes.select(0):  # it answered, or closed its pipes, just before it ended
                return last
            raise self._error(
                f"{self._ending()} while {awaited} was awaited (a process that it started holds its stdout)"
            )
        if deadline is not None and wait <= _LOOK:
            raise self._error(
                f"was silent for {timeout:g} s while {awaited} was awaited, and was ended; if it is only slow, "
                "raise the timeout"
            )
        return ready

    def _cut_off(self) -> str:
        return f"; the beginning of its answer: {shown(self._heard)}" if self._heard else ""

    def _ending(self) -> str:
        """How the program, which has closed its stdout, came to its end."""
        try:
            status = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return "closed its stdout"
        if status >= 0:
            return f"ended with exit status {status}"
        try:
            return f"was killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"was killed by signal {-status}"

    def _read_stderr(self) -> bool:
        """Read what is there; whether more may come."""
        assert self._process.stderr is not None
        try:
            piece = os.read(self._process.stderr.fileno(), _PIECE)
        except BlockingIOError:
            return True
        self._stderr += piece
        del self._stderr[:-_STDERR_KEPT]
        return bool(piece)

    def _error(self, what: str, empty: str = " (its stderr is empty)") -> MechanismError:
        assert self._process.stderr is not None
        if not self._process.stderr.closed:
            before = -1
            while len(self._stderr) != before and len(self._stderr) < _STDERR_KEPT:
                before = len(self._stderr)
                self._read_stderr()
        return MechanismError(f"{self.name} {what}{_quoted(self._stderr) or empty}")

    def _end(self, patience: float) -> None:
        if not self.usable:
            return
        self._ended = True
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # also children it left behind
            os.killpg(self._process.pid, signal.SIGKILL)
        guardian.leave(self._process.pid)
        self._process.wait()
        if not self._process.stderr.closed:
            self._read_stderr()
        self._process.stdout.close()
        self._process.stderr.close()


def _quoted(stderr: bytes | bytearray) -> str:
    """The end of what a program wrote on stderr, as the end of a message."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return "".join(
        ["\n  the end of its stderr:", *(f"\n    {line}" for line in lines[-_STDERR_LINES:])] if lines else []
    )


def shown(text: bytes | bytearray, most: int = 200) -> str:
    """The beginning of what a program said, quoted, on one line."""
    head = bytes(text[:most]).decode("utf-8", "replace")
    return repr(head) + (f" and {len(text) - most} bytes more" if len(text) > most else "")


def named(command: Sequence[str]) -> str:
    """A command as it would be typed."""
    return shlex.join(command)


_running: OrderedDict[Hashable, Child] = OrderedDict()
_running_lock = threading.Lock()


def running(key: Hashable, start: Callable[[], Child]) -> Child:
    """The program that runs under `key` in this process; started if there is none.

    Mechanisms are sent to workers anew with every task, and a program is dear to start: so programs belong to the
    process, not to the mechanism object.  The least recently used one is closed when there are too many.
    """
    with _running_lock:
        child = _running.pop(key, None)
        if child is None or not child.usable:
            while len(_running) >= _KEPT:
                _running.popitem(last=False)[1].close()
            child = start()
        _running[key] = child
        return child


def close(key: Hashable) -> None:
    """End the program that runs under `key`, if any."""
    with _running_lock:
        child = _running.pop(key, None)
    if child is not None:
        child.close()


@atexit.register
def close_all() -> None:
    """End all programs of this process."""
    with _running_lock:
        while _running:
            _running.popitem()[1].close()
