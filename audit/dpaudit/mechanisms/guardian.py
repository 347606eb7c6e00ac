"""Kills the programs of this process if the process dies without ending them, e.g. by `kill -9`.

A small shell reads the process groups of these programs from a pipe.  When this process ends for any reason, the pipe
ends, and the shell kills the remaining groups.  The shell needs no library, and runs in a separate session, so that
neither Ctrl-C nor a closed terminal stops it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading

_SCRIPT = """
trap '' HUP INT QUIT TERM
groups=' '
while read -r what group; do
    case $what in
        watch) groups="$groups$group ";;
        leave) groups="${groups%% "$group" *} ${groups#* "$group" }";;
    esac
done
for group in $groups; do kill -s KILL -- "-$group" 2> /dev/null; done
"""


class _Guardian:
    """The guardian shell of this process.  A fork of this process starts another shell."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._shell: subprocess.Popen[bytes] | None = None

    def write(self, what: str, group: int, *, start: bool) -> None:
        with self._lock, contextlib.suppress(OSError):
            if start and (self._shell is None or self._owner != os.getpid() or self._shell.poll() is not None):
                self._owner = os.getpid()
                self._shell = subprocess.Popen(
                    ["/bin/sh", "-c", _SCRIPT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    start_new_session=True,
                )
            if self._shell is not None and self._owner == os.getpid() and self._shell.stdin is not None:
                self._shell.stdin.write(f"{what} {group}\n".encode())


_guardian = _Guardian()


def watch(group: int) -> None:
    """Have a process group killed when this process ends.  The call has no effect on a system without /bin/sh."""
    _guardian.write("watch", group, start=True)


def leave(group: int) -> None:
    """Forget a group that has been killed, before its leader is reaped and its number may be used again."""
    _guardian.write("leave", group, start=False)
