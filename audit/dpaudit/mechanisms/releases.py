"""Lists the releases of a package that pip can install, in the indexes and folders that pip is configured with."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import Version

from dpaudit.mechanisms.installer import run
from dpaudit.mechanisms.interpreters import find_interpreter, this_version
from dpaudit.mechanisms.neutral_folder import completed
from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.text.leftovers import temporary_folder
from dpaudit.text.masking import masked

_OPTIONS = ("--disable-pip-version-check", "--no-input")
_OLDEST_PIP = (21, 2)  # the first pip with the command `pip index versions`
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
    """Ask pip for the releases of a package.

    pip reads the indexes, folders and credentials of its own settings, as it does when it builds an environment.
    Releases that need another Python are listed only in `unsupported`.
    """
    version = python_version or this_version()
    with temporary_folder() as folder:
        python = _with_pip(find_interpreter(version), Path(folder))
        asked = completed([python, "-I", "-c", _SCRIPT, "index", "versions", *_OPTIONS, "--pre", "-vv", package])
    lines = (asked.stdout + asked.stderr).splitlines()
    names = _listed(lines, "Available versions: ")
    unread = tuple(dict.fromkeys(filter(None, map(_failure, lines))))
    if not names and unread:
        raise MechanismError(
            f"the package index could not be read: {unread[0]}.  Check the network, and the settings of pip "
            "(`pip config list`, PIP_INDEX_URL, PIP_PROXY)"
        )
    if not names and asked.returncode != 0 and any("No matching distribution found" in line for line in lines):
        raise NoSuchPackage(
            f"pip finds no release of {package} for Python {version}.  Check the name, and the index that "
            "`pip config list` shows"
        )
    if not names:
        said = "\n".join(f"    {line}" for line in lines[-5:]) or "    (nothing)"
        raise MechanismError(f"pip did not list the releases of {package}; it printed:\n{said}")
    found = _sorted(names, set(_listed(lines, "Yanked versions: ")), unread)
    unsupported = set(filter(None, map(_version, _listed(lines, "Unsupported versions: "))))
    return replace(found, unsupported=frozenset(unsupported.difference(found.final, found.left_out)))


def _with_pip(base: str, folder: Path) -> str:
    """Return a Python with pip: the interpreter itself, or a new environment if its pip is missing or too old."""
    about = completed([base, "-I", "-c", "import pip; print(pip.__version__)"])
    if about.returncode == 0 and tuple(map(int, re.findall(r"\d+", about.stdout)[:2])) >= _OLDEST_PIP:
        return base
    run([base, "-I", "-m", "venv", str(folder)], "making an environment with pip")
    return str(folder / "bin" / "python")


def _listed(lines: list[str], title: str) -> list[str]:
    found = next((line.removeprefix(title) for line in lines if line.startswith(title)), "")
    return [name for name in found.split(", ") if name]


def _failure(line: str) -> str:
    """Return why an index could not be read, or "" for other lines.  A page that does not exist is an answer."""
    found = re.search(r"Could not fetch URL (\S+?/): (.*?)(?: - skipping)?$", line.strip())
    if found is None or found[2].startswith(("404 ", "410 ")):
        return ""
    return masked(f"{found[1]}: {found[2]}")[:_SHOWN]


def _version(name: str) -> Version | None:
    try:
        return Version(name)
    except ValueError:  # a name from before PEP 440, which newer versions of pip do not install, or too many digits
        return None


def _sorted(names: list[str], yanked: set[str], unread: tuple[str, ...]) -> Releases:
    final, left_out = [], {}
    for name in names:
        if (version := _version(name)) is None:
            continue
        if name in yanked:
            left_out[version] = "yanked"
        elif version.is_prerelease:
            left_out[version] = "pre-release"
        else:
            final.append(version)
    return Releases(final=tuple(sorted(final)), left_out=dict(sorted(left_out.items())), unread=unread)
