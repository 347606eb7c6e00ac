"""What Python code reads from outside of its process, where earlier runs may have left something."""

from __future__ import annotations

import os
from importlib.machinery import all_suffixes
from pathlib import Path

from dpaudit.mechanisms.modules import of_library


class Outside:
    """Notices what Python code reads from outside of its process: a hook for `sys.addaudithook`."""

    def __init__(self) -> None:
        self.running = False  # or still being loaded, when any file may be read, unless it can be written as well
        self.found = ""  # the first thing, in words

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.found:
            return
        if event == "open":
            path, _, flags = arguments
            way = flags & os.O_ACCMODE if isinstance(flags, int) else os.O_RDONLY
            if isinstance(path, str | bytes) and (way == os.O_RDWR or (self.running and way == os.O_RDONLY)):
                name = os.fsdecode(path)
                self.found = "" if _part_of_python(name) else f"read the file {ascii(name)[:200]}"
        elif event == "sqlite3.connect":
            self.found = "opened a database"
        elif event == "socket.connect":
            self.found = "connected to a server"
        elif self.running and event in ("subprocess.Popen", "os.system", "os.posix_spawn"):
            self.found = "started a program"


def _part_of_python(name: str) -> bool:
    """Whether a file is a module, belongs to an installed package, or is made by the system."""
    path = Path(os.path.abspath(name))
    of_system = any(path.is_relative_to(folder) for folder in ("/dev", "/proc", "/sys", "/etc", "/usr/share"))
    return of_system or path.suffix in (*all_suffixes(), ".pth") or of_library(path)


outside = Outside()
"""Of this process, if `sampling.fresh_process` started it and made this its audit hook."""
