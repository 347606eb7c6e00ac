"""Reads and checks package requirements (PEP 508), versions of Python, and lock files.

A lock file lists the packages of an environment with the SHA-256 of each distribution file.  Its first lines are
comments that state the format, the version of Python and the requirements.  Each other line is a requirement with a
hash.  A lock may come from a stranger, so other lines, such as options of an installer, are refused.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from dpaudit.running.protocol import MechanismError
from dpaudit.text import masked, open_foreign

OLDEST = (3, 8)  # the oldest Python version that worker.py supports
FORMAT = "# dpaudit-lock/1"
_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".egg")
_LINE = re.compile(  # installers would replace ${NAME} by the value of a variable
    r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:==[A-Za-z0-9.!+_-]+| @ (?:https?|file):[^\s$]+) --hash=(sha256:[0-9a-f]{64})"
)


def check_version(version: str) -> str:
    """Return the Python version of an environment unchanged if it is valid."""
    if not re.fullmatch(r"3\.[0-9]{1,3}(\.[0-9]{1,3})?", version):
        raise ValueError(f'python_version must read like "3.11" or "3.11.7", got {version!r}')
    if tuple(map(int, version.split(".")))[:2] < OLDEST:
        raise ValueError(f"python_version must be {OLDEST[0]}.{OLDEST[1]} or later, got {version!r}")
    return version


def this_version() -> str:
    """Return the version of the running Python, e.g. "3.11"."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def normalised(requires: Sequence[str]) -> list[str]:
    """Return requirements in the form in which environments are compared: sorted, with single spaces."""
    return sorted(" ".join(requirement.split()) for requirement in requires)


def project_name(requirement: str) -> str:
    """Return the normalised project name of a PEP 508 requirement."""
    return str(canonicalize_name(parsed_requirement(requirement).name))


def pinned_version(requirement: str) -> tuple[str, str] | None:
    """Return the name and version of a requirement that is only `name==version`, or None for any other requirement."""
    parsed = parsed_requirement(requirement)
    exact = [one.version for one in parsed.specifier if one.operator == "==" and not one.version.endswith(".*")]
    plain = len(parsed.specifier) == 1 and not (parsed.extras or parsed.marker or parsed.url)
    return (parsed.name, exact[0]) if plain and exact else None


def is_bare_name(requirement: str) -> bool:
    """Whether a requirement is only the name of a project, without extras, versions, markers or a URL."""
    parsed = parsed_requirement(requirement)
    return not (parsed.specifier or parsed.extras or parsed.marker or parsed.url)


def wrong_version(packages: Mapping[str, str], package: str, version: str) -> str:
    """Say that an environment holds another version than the installer was asked for; x==1.0 allows 1.0+cpu."""
    found = next((found for name, found in packages.items() if project_name(name) == project_name(package)), None)
    if found is not None and Version(found) == Version(version):
        return ""
    have = f"{package} {found}" if found else f"no {package}"
    return f"the installer was asked for {package} {version}, but the environment has {have}"


def with_extras(requirement: str, replaced: str) -> str:
    """Return a requirement `name==version` with the extras of the requirement that it replaces."""
    extras = sorted(parsed_requirement(replaced).extras)
    pinned = pinned_version(requirement)
    return f"{pinned[0]}[{','.join(extras)}]=={pinned[1]}" if extras and pinned else requirement


def parsed_requirement(requirement: str) -> Requirement:
    """Parse a requirement into its parts."""
    try:
        if "\n" in requirement:
            raise InvalidRequirement("the requirement has more than one line")
        parsed = Requirement(requirement)
    except (InvalidRequirement, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f'a requirement must read like "opendp==0.14.2", got {requirement!r:.200}: {reason}') from None
    if parsed.name.lower().endswith(_ARCHIVES):
        raise ValueError(
            f"{parsed.name} is the name of a file and not of a project; write NAME @ file:///FOLDER/{parsed.name}"
        )
    if parsed.url and masked(parsed.url) != parsed.url:
        raise ValueError(
            f"the URL of {parsed.name} holds a user name, password or token, which results and lock files would "
            f"record: {masked(parsed.url)}; put the credentials into a .netrc file"
        )
    if parsed.url and not re.match(r"(?!file:)[\w+]+://|file:///", parsed.url):
        raise ValueError(
            f"the URL of {parsed.name} must be absolute, such as https://... or file:///FOLDER/FILE, got "
            f"{parsed.url!r:.200}"
        )
    return parsed


def local_hashes(requires: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each required local file, by requirement, because a name does not determine the content."""
    found = {}
    for requirement in requires:
        parts = urlsplit(parsed_requirement(requirement).url or "")
        if parts.scheme != "file":
            continue
        try:
            with open_foreign(unquote(parts.path)) as stream:  # a stranger's result may name any file
                found[requirement] = f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
        except (OSError, ValueError) as error:  # ValueError: the name contains a null byte
            reason = getattr(error, "strerror", None) or error
            raise MechanismError(f"{requirement} cannot be read: {reason}") from None
    return found


def unmet(requires: Iterable[str], installed: Mapping[str, str], python_version: str) -> list[str]:
    """Return the requirements that an environment does not meet."""
    versions = {str(canonicalize_name(name)): version for name, version in installed.items()}
    minor = ".".join(python_version.split(".")[:2])
    python = {"python_version": minor, "python_full_version": python_version, "extra": ""}

    def met(one: Requirement) -> bool:
        if one.marker is not None and not one.marker.evaluate(python):
            return True
        try:
            return one.specifier.contains(versions[str(canonicalize_name(one.name))], prereleases=True)
        except (KeyError, InvalidVersion):
            return False

    return [requirement for requirement in requires if not met(parsed_requirement(requirement))]


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
        about = "# Exact packages of an audit.  `dpaudit run --locked` installs these and no others."
        stated = f"# python: {self.python_version}", f"# requires: {json.dumps(self.requires)}"
        return "\n".join((FORMAT, about, *stated, *self.lines, ""))

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
    for number, line in enumerate(rest, 2):
        if line and not line.startswith("# ") and not _LINE.fullmatch(line):
            words = "the line must be a package with its hash, such as NAME==VERSION --hash=sha256:..."
            raise ValueError(f"{number}: {words}, got {line!r:.100}")
    stated = dict(line[2:].split(": ", 1) for line in rest if line.startswith(("# python: ", "# requires: ")))
    try:
        version, requires = check_version(stated["python"]), json.loads(stated["requires"])
        return Lock(version, tuple(map(str, requires)), tuple(filter(_LINE.fullmatch, rest)))
    except (LookupError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"1: the file must state `# python: ...` and `# requires: [...]`: {error}") from None
