"""The commands that repeat a failed test as the session was started, whatever the layout of the project."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a session of pytest was started, and how."""

    here: Path  # the folder in which it was started
    root: Path  # pytest's rootdir, to which the ids of tests are relative
    options: Sequence[str] = ()  # without which pytest would find other settings, or another rootdir
    by_module: bool = True  # started with `python -m pytest`, which puts `here` on the path of imports
    python: Path = Path(sys.executable)

    @classmethod
    def of(cls, config: Any) -> Layout:
        """Return the layout of a session from its `pytest.Config`."""
        here, root, ini = config.invocation_params.dir, config.rootpath, config.inipath
        settings = here if ini is None else ini.parent
        options = [] if settings == here else ["-c", os.path.relpath(ini, here)]
        if root != settings:
            options += ["--rootdir", os.path.relpath(root, here)]
        return cls(here=here, root=root, options=options, by_module=str(here) in sys.path or "" in sys.path)

    def address(self, node: str, file: Path) -> tuple[Path, str]:
        """Return the folder for the commands, and the id of a test in it: a replay runs only tests below its folder."""
        folder = next((one for one in (self.here, self.root) if file.is_relative_to(one)), file.parent)
        _, colons, name = node.partition("::")
        return folder, f"{os.path.relpath(file, folder)}{colons}{name}"

    def commands(self, node: str, file: Path, seed: int, kept: str) -> list[str]:
        """Return the commands that make the same runs, new ones, and a replay of the result in the file `kept`."""
        folder, test = self.address(node, file)
        start, options = ("", self.options) if folder == self.here else (f"cd {shlex.quote(str(folder))} && ", ())
        below = self.python.is_relative_to(folder)  # an environment that need not be active, as of tox
        python = shlex.quote(os.path.relpath(self.python, folder)) if below else "python"
        tools = Path(python).parent
        pytest, dpaudit = (
            f"{python} -m {name}" if self.by_module else str(tools / name) for name in ("pytest", "dpaudit")
        )
        chosen = f"PYTEST_ADDOPTS={shlex.quote(shlex.join(options))} " if options else ""
        again = shlex.join([*options, test, "--dpaudit-seed", str(seed)])
        lines = [f"same runs: {start}{pytest} {again} (new runs: {seed + 1})"]
        if kept:
            result = shlex.quote(os.path.relpath(kept, folder))
            lines.append(f"fresh runs: {start}{chosen}{dpaudit} replay {result}")
        return lines
