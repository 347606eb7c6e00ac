"""Lists the releases of a package that pip can install, in the indexes and folders that pip is configured with."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec

from packaging.version import Version

from dpaudit.mechanisms.installer import pip_variables
from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.mechanisms.requirements import this_version
from dpaudit.text.masking import masked

_SHOWN = 300  # maximum number of characters of pip's message about an index

# `pip index versions` leaves out yanked releases.  The script lists yanked releases too.  It also prints which releases
# are yanked, and which have no file for this Python.  If this pip has other internals, the script only does what
# `pip index versions` does.
_SCRIPT = """
import sys
try:
    from pip._internal.index.package_finder import PackageFinder
    find = PackageFinder.find_all_candidates
    def found(self, name):
        self._allow_yanked = True
        all_ = find(self, name)
        kept = {str(one.version) for one in all_ if not one.link.is_yanked}
        every = {str(one.version) for one in all_}
        print("Yanked versions: " + ", ".join(sorted(every - kept)))
        skipped = [one for one in getattr(self, "_logged_links", ()) if isinstance(one, tuple) and len(one) == 3]
        other = {why.partition(" ")[0] for _, kind, why in skipped if kind.name == "requires_python_mismatch"}
        files = [link.filename for link, kind, _ in skipped if kind.name == "platform_mismatch"]
        other |= {file.split("-")[1] for file in files if file.endswith(".whl")}
        print("Unsupported versions: " + ", ".join(sorted(other - every)))
        return all_
    PackageFinder.find_all_candidates = found
except (ImportError, AttributeError):
    pass
from pip._internal.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


class NoSuchPackage(MechanismError):
    """Raised if all indexes could be read, and none has a release of the package for this Python."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Releases:
    """The releases of a package that pip finds for one version of Python, from old to new."""

    final: tuple[Version, ...]
    left_out: dict[Version, str]
    unread: tuple[str, ...] = ()
    unsupported: frozenset[Version] = frozenset()


def released(package: str, python_version: str | None = None) -> Releases:
    """Ask pip for the releases of a package, in the indexes from which uv installs it.

    Releases that need another Python are listed only in `unsupported`.
    """
    if find_spec("pip") is None:
        raise MechanismError(f"pip lists the releases, but {sys.executable} has no pip; run `python -m ensurepip`")
    version = python_version or this_version()
    options = ("--disable-pip-version-check", "--no-input", "--pre", "-vv", "--python-version", version)
    command = [sys.executable, "-I", "-c", _SCRIPT, "index", "versions", *options, package]
    asked = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env=pip_variables(),
        cwd="/",
    )
    lines = (asked.stdout + asked.stderr).splitlines()
    names = _listed(lines, "Available versions: ")
    unread = tuple(dict.fromkeys(filter(None, map(_failure, lines))))
    if not names and unread:
        raise MechanismError(
            f"the package index could not be read: {unread[0]}.  Check the network, and the settings of pip "
            "(`pip config list`, PIP_INDEX_URL, PIP_PROXY)"
        )
    if not names and any("No matching distribution found" in line for line in lines):
        raise NoSuchPackage(
            f"pip finds no release of {package} for Python {version}.  Check the name, and the index that "
            "`pip config list` shows"
        )
    if not names:
        said = "\n".join(f"    {line}" for line in lines[-5:]) or "    (nothing)"
        raise MechanismError(f"pip did not list the releases of {package}; it printed:\n{said}")
    yanked = _versions(_listed(lines, "Yanked versions: "))
    kinds = {
        one: "yanked" if one in yanked else "pre-release" if one.is_prerelease else ""
        for one in sorted(_versions(names))
    }
    return Releases(
        final=tuple(one for one, kind in kinds.items() if not kind),
        left_out={one: kind for one, kind in kinds.items() if kind},
        unread=unread,
        unsupported=frozenset(_versions(_listed(lines, "Unsupported versions: ")) - kinds.keys()),
    )


def _listed(lines: list[str], title: str) -> list[str]:
    found = next((line.removeprefix(title) for line in lines if line.startswith(title)), "")
    return [name for name in found.split(", ") if name]


def _failure(line: str) -> str:
    """Return why an index could not be read, or "" for other lines.  A page that does not exist is an answer."""
    found = re.search(r"Could not fetch URL (\S+?/): (.*?)(?: - skipping)?$", line.strip())
    if found is None or found[2].startswith(("404 ", "410 ")):
        return ""
    return masked(f"{found[1]}: {found[2]}")[:_SHOWN]


def _versions(names: list[str]) -> set[Version]:
    """Return the valid ones: names from before PEP 440, and numbers with too many digits, are left out."""
    found = set()
    for name in names:
        with contextlib.suppress(ValueError):
            found.add(Version(name))
    return found
