"""A file of finished audits, with which an interrupted benchmark can be resumed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

Row = dict[str, float]  # what one audit found


class Store:
    """A file of finished audits with one JSON object on each line.

    If the last line is incomplete because the command was killed while it wrote, the line is removed from the file.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.done: dict[str, Row] = {}
        if path and path.exists():
            content = path.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            if whole != content:
                path.write_bytes(whole)
            for line in whole.decode("utf-8").splitlines():
                row = json.loads(line)
                self.done[row.pop("key")] = row

    def row(self, key: str, make: Callable[[], Row]) -> Row:
        """Return the audit with the given key, which is made if it is not in the file."""
        if key not in self.done:
            self.add(key, make())
        return self.done[key]

    def add(self, key: str, row: Row) -> None:
        """Write a finished audit to the file."""
        self.done[key] = row
        if self.path:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, **row}) + "\n")
