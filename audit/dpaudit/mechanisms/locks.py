"""Reads and writes lock files, which list the packages of an environment with the SHA-256 of each distribution file.

The first lines are comments that state the format, the version of Python and the requirements.  Each other line is a
requirement of pip with a hash.  A lock may come from an untrusted source, so every other form of line, for example an
option of pip, is refused.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from dpaudit.mechanisms.installer import Archive
from dpaudit.mechanisms.interpreters import check_version
from dpaudit.mechanisms.requirements import parsed_requirement, project_name

FORMAT = "# dpaudit-lock/1"
_LINE = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,99})(?:==([A-Za-z0-9.!+_-]{1,100})| @ (\S{1,2000})) --hash=sha256:([0-9a-f]{64})"
)
_MAX_PACKAGES = 2_000  # limits the time to read a lock to a second; environments have far fewer packages
_EXAMPLE = "NAME==VERSION --hash=sha256:..."


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
        found = [match for line in self.lines if (match := _LINE.fullmatch(line))]
        return {match[1]: f"sha256:{match[4]}" for match in found}


def lock_of(
    python_version: str, requires: Sequence[str], packages: Mapping[str, str], files: Mapping[str, Archive]
) -> Lock | None:
    """Return the lock of a new environment."""
    known = {project_name(name): (name, archive) for name, archive in files.items()}
    if {project_name(name): version for name, version in packages.items()} != {
        project: archive.version for project, (_, archive) in known.items()
    }:
        return None
    lines = tuple(
        f"{name} @ {archive.url} --hash=sha256:{archive.sha256}"
        if archive.url
        else f"{name}=={archive.version} --hash=sha256:{archive.sha256}"
        for name, archive in (known[project] for project in sorted(known))
    )
    lock = Lock(python_version, tuple(requires), lines)
    try:
        return read_lock(lock.text)
    except ValueError:  # for example, the requirements do not name the URL of a package
        return None


def read_lock(text: str) -> Lock:
    """Read the content of a lock file."""
    lines = text.split("\n")
    if lines[0] != FORMAT:
        raise ValueError(f"1: the line must be {FORMAT!r}, the format of lock files, got {lines[0]!r:.80}")
    version, requires = "", None  # both precede the packages, because the lines of packages are checked against them
    urls: frozenset[str] = frozenset()
    found: list[str] = []
    for number, line in enumerate(lines[1:], 2):
        try:
            if line.startswith(("# python: ", "# requires: ")) and found:
                raise ValueError("`# python: ...` and `# requires: [...]` must precede the packages")
            if line.startswith("# python: "):
                if version:
                    raise ValueError("the version of Python is stated twice")
                version = check_version(line.removeprefix("# python: "))
            elif line.startswith("# requires: "):
                if requires is not None:
                    raise ValueError("the requirements are stated twice")
                requires, urls = _requires(line.removeprefix("# requires: "))
            elif line and not line.startswith("# "):
                if len(found) == _MAX_PACKAGES:
                    raise ValueError(f"more than {_MAX_PACKAGES:,} packages are not allowed")
                found.append(_checked(line, urls))
        except ValueError as error:
            raise ValueError(f"{number}: {error}") from None
    if not version or requires is None:
        raise ValueError("1: the file must state `# python: ...` and `# requires: [...]`")
    projects = [project_name(line.partition(" --hash")[0]) for line in found]
    if twice := [project for project, count in Counter(projects).items() if count > 1]:
        raise ValueError(f"1: the package {twice[0]} is listed twice")
    return Lock(version, requires, tuple(found))


def _requires(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the requirements and the URLs in the requirements."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError("the requirements must be a JSON list of texts")
    if len(found) > _MAX_PACKAGES:
        raise ValueError(f"more than {_MAX_PACKAGES:,} requirements are not allowed")
    return tuple(found), frozenset(url for one in found if (url := parsed_requirement(one).url))


def _checked(line: str, urls: Set[str]) -> str:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"the line must be a package with its hash, such as {_EXAMPLE}, got {line!r:.100}")
    parsed_requirement(line.partition(" --hash")[0])
    if "${" in line:
        raise ValueError("the line must not name an environment variable (${...}), which pip would insert")
    if match[3] and match[3] not in urls:
        raise ValueError(f"the line names the URL {match[3]:.100}, which the requirements do not name")
    return line
