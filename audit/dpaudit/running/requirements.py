"""Reads package requirements (PEP 508), runs uv, and lists releases with pip, with the user's settings for both."""

from __future__ import annotations

import configparser
import contextlib
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from uv import find_uv_bin

from dpaudit.running.foreign import MechanismError
from dpaudit.text import masked, open_foreign

OLDEST = (3, 8)  # the oldest Python version that worker.py supports
_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".egg")

# Settings of pip, and the variables with which uv takes them, except UV_NO_INDEX.  Other settings of uv, such as
# UV_DEFAULT_INDEX, have priority over these variables.
_OF_PIP = {
    "index-url": "UV_INDEX_URL",
    "extra-index-url": "UV_EXTRA_INDEX_URL",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "constraint": "UV_CONSTRAINT",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
_OF_INDEXES = {"UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_STRATEGY", *list(_OF_PIP.values())[:5]}
_CREDENTIALS = re.compile(r"(?<=//)[^/\s]*@")  # a new password does not change the index

# Words of uv for a server that cannot be reached or that fails.  Only lines of uv itself count: it indents what a
# package prints while it is built by at least eight spaces.
_NETWORK = re.compile(
    r"^ {4,7}\S.*(?:error sending request|dns error|tunnel error|timed out|connection (?:refused|reset|closed)"
    r"|server error \(5\d\d|network was disabled)",
    re.M | re.I,
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
    versions = [one.version for one in parsed.specifier if one.operator == "==" and not one.version.endswith(".*")]
    plain = len(parsed.specifier) == 1 and not (parsed.extras or parsed.marker or parsed.url)
    return (parsed.name, versions[0]) if plain and versions else None


def is_bare_name(requirement: str) -> bool:
    """Whether a requirement is only the name of a project, without extras, versions, markers or a URL."""
    parsed = parsed_requirement(requirement)
    return not (parsed.specifier or parsed.extras or parsed.marker or parsed.url)


def wrong_version(packages: Mapping[str, str], package: str, version: str) -> str:
    """Say that an environment holds another version than the installer was asked for; x==1.0 allows 1.0+cpu."""
    there = next((there for name, there in packages.items() if project_name(name) == project_name(package)), None)
    if there is not None and Version(there) == Version(version):
        return ""
    have = f"{package} {there}" if there else f"no {package}"
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

    def met(parsed: Requirement) -> bool:
        if parsed.marker is not None and not parsed.marker.evaluate(python):
            return True
        try:
            return parsed.specifier.contains(versions[str(canonicalize_name(parsed.name))], prereleases=True)
        except (KeyError, InvalidVersion):
            return False

    return [requirement for requirement in requires if not met(parsed_requirement(requirement))]


def run_uv(words: Sequence[str], what: str, stdin: str = "") -> str:
    """Run uv outside of all projects, and return its stdout."""
    env = variables()
    no_index = words[0] == "pip" and env.get("UV_NO_INDEX", "").lower() in ("1", "true", "yes", "on", "t", "y")
    command = [find_uv_bin(), *words, *(["--no-index"] if no_index else [])]
    if env.get("UV_CONFIG_FILE"):
        env["UV_CONFIG_FILE"] = os.path.abspath(env["UV_CONFIG_FILE"])
    if "--require-hashes" in words:  # uv refuses constraints, which have no hashes
        env.pop("UV_CONSTRAINT", None)
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, errors="replace", env=env, cwd="/")
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip("\n").rstrip().split("\n")[-15:]
        said = "\n".join(f"    {' '.join(line.splitlines())}" for line in lines)
        raise MechanismError(f"{what} failed; uv printed:\n{said}")
    return done.stdout


def is_network_failure(reason: str) -> bool:
    """Whether the message of a failed installation shows that the network failed, which may be temporary."""
    return reason.startswith("installing ") and _NETWORK.search(reason) is not None


def index_settings() -> dict[str, str]:
    """Return the settings that choose the packages, without the credentials in URLs."""
    settings = {name: value for name, value in variables().items() if name in _OF_INDEXES} | _uv_files()
    return {name: _CREDENTIALS.sub("", value) for name, value in settings.items()}


def variables() -> dict[str, str]:
    """Return the environment variables for uv: those of this process, and settings of pip that these leave open."""
    settings = _pip_settings()
    if any("index" in text for text in _uv_files().values()):
        settings = {name: value for name, value in settings.items() if "index" not in name}
    found = {_OF_PIP[name]: " ".join(value.split()) for name, value in settings.items() if value.strip()}
    if "UV_EXTRA_INDEX_URL" in found:
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # the choice of pip
    if "UV_FIND_LINKS" in found:
        found["UV_FIND_LINKS"] = found["UV_FIND_LINKS"].replace(" ", ",")
    return found | {**os.environ}


def pip_variables() -> dict[str, str]:
    """Return the environment variables with which pip reads the indexes that uv reads, except those of `uv.toml`."""
    found = variables()
    extra = f"{found.get('UV_INDEX', '')} {found.get('UV_EXTRA_INDEX_URL', '')}"
    settings = {
        "PIP_INDEX_URL": found.get("UV_DEFAULT_INDEX") or found.get("UV_INDEX_URL"),
        "PIP_EXTRA_INDEX_URL": re.sub(r"(?<!\S)[\w-]+=(?=\w+:)", "", extra).strip(),  # uv also takes NAME=URL
        "PIP_FIND_LINKS": found.get("UV_FIND_LINKS", "").replace(",", " "),
        "PIP_NO_INDEX": found.get("UV_NO_INDEX"),
    }
    return found | {name: value for name, value in settings.items() if value}


def _pip_settings() -> dict[str, str]:
    """Return the settings in `_OF_PIP` from pip's files and variables."""
    parser = configparser.RawConfigParser()
    home, mac = os.path.expanduser("~"), "Library/Application Support"
    folders = [*_settings_folders(), f"/{mac}", f"{home}/{mac}"]
    named = os.environ.get("PIP_CONFIG_FILE", "")
    files = [f"{folder}/pip/pip.conf" for folder in folders]
    files = ["/etc/pip.conf", *files, f"{home}/.pip/pip.conf", f"{sys.prefix}/pip.conf", named]
    try:
        parser.read([] if named == os.devnull else files, encoding="utf-8")
    except (configparser.Error, ValueError) as error:
        raise MechanismError(f"the settings of pip cannot be read: {error}") from None
    settings = [
        item for section in filter(parser.has_section, ("global", "install")) for item in parser[section].items()
    ]
    settings += [(name[4:].lower(), value) for name, value in os.environ.items() if name.startswith("PIP_")]
    return {key: value for name, value in settings if (key := name.replace("_", "-")) in _OF_PIP}


def _uv_files() -> dict[str, str]:
    """Return the content of the settings files of uv."""
    named = os.environ.get("UV_CONFIG_FILE")
    files = [Path(named)] if named else [Path(folder, "uv", "uv.toml") for folder in (*_settings_folders(), "/etc")]
    return {str(file): file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file()}


def _settings_folders() -> list[str]:
    """Return the folders in which programs keep their settings; the later ones have priority."""
    system = (os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    return [*system, os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")]


# Lists releases like `pip index versions`, but also yanked ones, and prints which are yanked, and which have no file
# for this Python, unless this pip has other internals.
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


# Why an index could not be read.  A page that does not exist (404, 410) is an answer.
_UNREAD = re.compile(r"Could not fetch URL (\S+?/): (?!404 |410 )(.*?)(?: - skipping)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Releases:
    """The releases of a package that pip finds for one version of Python, from old to new."""

    final: tuple[Version, ...]
    left_out: dict[Version, str]
    unread: tuple[str, ...] = ()
    unsupported: frozenset[Version] = frozenset()


def released(package: str, python_version: str | None = None) -> Releases:
    """Ask pip for the releases of a package, in the indexes from which uv installs it."""
    if find_spec("pip") is None:
        raise MechanismError(f"pip lists the releases, but {sys.executable} has no pip; run `python -m ensurepip`")
    python = python_version or this_version()
    options = ("--disable-pip-version-check", "--no-input", "--pre", "-vv", "--python-version", python)
    command, env = [sys.executable, "-I", "-c", _SCRIPT, "index", "versions", *options, package], pip_variables()
    asked = subprocess.run(command, input="", capture_output=True, text=True, errors="replace", env=env, cwd="/")
    lines = (asked.stdout + asked.stderr).splitlines()
    matches = map(_UNREAD.search, map(str.strip, lines))
    unread = tuple(dict.fromkeys(masked(f"{match[1]}: {match[2]}")[:300] for match in matches if match))
    available, yanked, unsupported = (_versions(lines, kind) for kind in ("Available", "Yanked", "Unsupported"))
    if available:
        left_out = {
            version: "yanked" if version in yanked else "pre-release"
            for version in sorted(available)
            if version in yanked or version.is_prerelease
        }
        final = tuple(version for version in sorted(available) if version not in left_out)
        return Releases(final=final, left_out=left_out, unread=unread, unsupported=frozenset(unsupported - available))
    if unread:
        raise MechanismError(
            f"the package index could not be read: {unread[0]}.  Check the network, and the settings of pip "
            "(`pip config list`, PIP_INDEX_URL, PIP_PROXY)"
        )
    if any("No matching distribution found" in line for line in lines):
        raise MechanismError(
            f"pip finds no release of {package} for Python {python}.  Check the name, and the index that "
            "`pip config list` shows"
        )
    said = "\n".join(f"    {line}" for line in lines[-5:]) or "    (nothing)"
    raise MechanismError(f"pip did not list the releases of {package}; it printed:\n{said}")


def _versions(lines: list[str], kind: str) -> set[Version]:
    """Return the versions that pip lists, except names from before PEP 440, and numbers with too many digits."""
    title, versions = f"{kind} versions: ", set()
    for name in next((line.removeprefix(title) for line in lines if line.startswith(title)), "").split(", "):
        with contextlib.suppress(ValueError):
            versions.add(Version(name))
    return versions
