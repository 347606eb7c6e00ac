"""Reads and writes lock files, which list the packages of an environment with the SHA-256 of each distribution file.

The first lines are comments that state the format, the version of Python and the requirements.  Each other line is a
requirement with a hash.  A lock may come from a stranger, so other lines, such as options of an installer, are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dpaudit.mechanisms.requirements import check_version

FORMAT = "# dpaudit-lock/1"
_LINE = re.compile(  # installers would replace ${NAME} by the value of a variable
    r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:==[A-Za-z0-9.!+_-]+| @ (?:https?|file):[^\s$]+) --hash=(sha256:[0-9a-f]{64})"
)


class Archive(NamedTuple):
    """The file from which a package is installed."""

    version: str
    sha256: str
    url: str  # the URL in the requirement, or "" without a URL


@dataclass(frozen=True)
class Lock:
    """The exact packages of an environment."""

    python_version: str
    requires: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The content of the lock file."""
        head = (
            FORMAT,
            "# Exact packages of an audit.  `dpaudit run --locked` installs these and no others.",
            f"# python: {self.python_version}",
            f"# requires: {json.dumps(self.requires)}",
        )
        return "\n".join((*head, *self.lines, ""))

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of each package's file, by package name."""
        return {match[1]: match[2] for match in map(_LINE.fullmatch, self.lines) if match}


def lock_of(python_version: str, requires: Sequence[str], files: Mapping[str, Archive]) -> Lock:
    """Return the lock with these files of packages; raise ValueError if it is not valid."""
    lines = tuple(
        f"{name}{f' @ {url}' if url else f'=={version}'} --hash=sha256:{sha256}"
        for name, (version, sha256, url) in sorted(files.items())
    )
    return read_lock(Lock(python_version, tuple(requires), lines).text)


def read_lock(text: str) -> Lock:
    """Read the content of a lock file."""
    first, *rest = text.split("\n")
    if first != FORMAT:
        raise ValueError(f"1: the line must be {FORMAT!r}, the format of lock files, got {first!r:.80}")
    stated = dict(line[2:].split(": ", 1) for line in rest if line.startswith(("# python: ", "# requires: ")))
    for number, line in enumerate(rest, 2):
        if line and not line.startswith("# ") and not _LINE.fullmatch(line):
            example = "NAME==VERSION --hash=sha256:..."
            raise ValueError(
                f"{number}: the line must be a package with its hash, such as {example}, got {line!r:.100}"
            )
    try:
        version, requires = check_version(stated["python"]), json.loads(stated["requires"])
        return Lock(version, tuple(map(str, requires)), tuple(filter(_LINE.fullmatch, rest)))
    except (LookupError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"1: the file must state `# python: ...` and `# requires: [...]`: {error}") from None
