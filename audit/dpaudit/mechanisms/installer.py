"""Installs packages into a new environment, and checks that the installation is complete."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dpaudit.mechanisms.neutral_folder import TimedOut, completed
from dpaudit.mechanisms.protocol import MechanismError
from dpaudit.mechanisms.requirements import unmet
from dpaudit.values import Foreign

_SHOWN = 15  # number of final lines of a failed installer that a message quotes

_RUNNER = "__pip-runner__.py"  # the file of pip that implements `pip --python`

# Words of pip and uv for a server that cannot be reached or that fails.
_NETWORK = re.compile(
    r"(?i)connection (?:aborted|broken|error|refused|reset|timed out)|(?:connect|read|operation) ?timed? ?out"
    r"|max retries exceeded|name resolution|name or service not known|dns error|network is unreachable"
    r"|no route to host|error sending request|cannot connect to proxy|\b5\d\d server error|server error \(5\d\d"
)

# Installers indent what a package prints while it is built, and dpaudit indents all quoted lines by four spaces.
_OF_PACKAGE = re.compile(r"^ {8}.*", re.M)
# pip runs itself to install the build dependencies of a package, so what is indented below this line is from pip.
_BUILD_DEPENDENCIES = re.compile(r"^ {4,7}× (?:pip subprocess to install|installing) build dependencies\b", re.M | re.I)

# The script reads RECORD, because `Distribution.files` omits missing files from Python 3.12 on.
_LIST = """
import csv, importlib.metadata as m, json
found = {}
for d in m.distributions():
    names = [row[0] for row in csv.reader((d.read_text("RECORD") or "").splitlines()) if row]
    gone = [name for name in names if not name.endswith(".pyc") and not d.locate_file(name).exists()]
    found[d.metadata["Name"]] = [d.version, gone[:3]]
print(json.dumps(found, sort_keys=True))
"""


class Archive(NamedTuple):
    """The file from which a package was installed."""

    version: str
    sha256: str
    url: str  # the URL in the requirement, or "" without a URL


def pip_of(base: str, python: Path) -> list[str]:
    """Return a pip command that installs for `python`.

    If `base` has pip 22.3 or later, the command uses this pip.  It starts the runner of `pip --python` directly where
    possible, because `pip --python` would load pip twice.  Otherwise, a new pip is installed for `python` first.
    """
    options = ["--disable-pip-version-check", "--no-input"]
    # This command replaces `pip --version`, which would load all of pip.
    about = completed([base, "-I", "-c", "import pip; print(pip.__version__, pip.__path__[0], sep='\\n')"])
    version, _, folder = about.stdout.strip().partition("\n")
    if about.returncode == 0 and tuple(map(int, re.findall(r"\d+", version)[:2])) >= (22, 3):
        runner = Path(folder, _RUNNER)
        if runner.is_file():
            return [str(python), "-I", str(runner), *options]
        return [base, "-I", "-m", "pip", *options, "--python", str(python)]
    run([str(python), "-I", "-m", "ensurepip"], "making an environment with pip")
    return [str(python), "-I", "-m", "pip", *options]


def check_installed(python: Path, wanted: Sequence[str], version: str) -> dict[str, str]:
    """Return the versions of all packages in an environment, by name."""
    found = json.loads(run([str(python), "-I", "-c", _LIST], "listing the packages"))
    packages = {name: str(about[0]) for name, about in found.items()}
    if missing := unmet(wanted, packages, version):
        raise MechanismError(
            f"the installer reported success, but the environment lacks {', '.join(missing)}.  A setting such as "
            "target, prefix or dry-run may have sent the packages elsewhere: see `pip config list` and the variables "
            "PIP_* and UV_*"
        )
    if gone := [f"{name} ({', '.join(about[1])})" for name, about in found.items() if about[1]]:
        raise MechanismError(f"the installer reported success, but files of these packages are missing: {gone[0]}")
    return packages


def archives(report: Path) -> dict[str, Archive]:
    """Return the files from which packages were installed, by name."""
    try:
        items = json.loads(report.read_text(encoding="utf-8"))["install"]
        found = {item["metadata"]["name"]: _archive(item) for item in items}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}
    return {name: archive for name, archive in found.items() if archive is not None}


def _archive(item: Foreign) -> Archive | None:
    download = item["download_info"]
    about = download.get("archive_info") or {}
    sha256 = (about.get("hashes") or {}).get("sha256") or str(about.get("hash", "")).removeprefix("sha256=")
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        return None
    return Archive(str(item["metadata"]["version"]), sha256, str(download["url"]) if item["is_direct"] else "")


def is_network_failure(reason: str) -> bool:
    """Whether the message of a failed installation shows that the network failed, which may be temporary.

    Only words of the installer count, because a package may print any words while it is built.
    """
    own = reason if _BUILD_DEPENDENCIES.search(reason) else _OF_PACKAGE.sub("", reason)
    return reason.startswith("installing ") and _NETWORK.search(own) is not None


def run(command: list[str], what: str) -> str:
    """Run a command, and return its stdout."""
    try:
        done = completed(command)
    except TimedOut as error:
        raise MechanismError(f"{what} failed: {error}") from None
    if done.returncode != 0:
        printed = (done.stdout + done.stderr).strip("\n").rstrip()
        # a line keeps its indentation although a package may print other separators of lines, such as form feeds
        lines = [" ".join(line.splitlines()) for line in printed.split("\n")[-_SHOWN:]] if printed else []
        said = "\n".join(f"    {line}" for line in lines) or "    (nothing)"
        names = [Path(part).name for part in command]
        who = "pip" if _RUNNER in names else names[names.index("-m") + 1] if "-m" in names else names[0]
        raise MechanismError(f"{what} failed; {who} printed:\n{said}")
    return done.stdout
