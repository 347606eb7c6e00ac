"""Reads and checks package requirements (PEP 508), such as those in `requires:` of a config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from dpaudit.text.masking import masked

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".egg")
_MAX_CHARACTERS = (
    2_000  # maximum length of a requirement; a requirement with a URL usually has a few hundred characters
)


def project_name(requirement: str) -> str:
    """Return the normalised project name of a PEP 508 requirement."""
    from packaging.utils import canonicalize_name

    return str(canonicalize_name(parsed_requirement(requirement).name))


def pinned_version(requirement: str) -> tuple[str, str] | None:
    """Return the name and version of a requirement `name==version`, or None for any other requirement.

    A requirement with extras, markers, URLs, wildcards or further conditions does not have this form.
    """
    parsed = parsed_requirement(requirement)
    exact = [one.version for one in parsed.specifier if one.operator == "==" and not one.version.endswith(".*")]
    plain = len(parsed.specifier) == 1 and not (parsed.extras or parsed.marker or parsed.url)
    return (parsed.name, exact[0]) if plain and exact else None


def is_bare_name(requirement: str) -> bool:
    """Whether a requirement is only the name of a project, without extras, versions, markers or a URL."""
    parsed = parsed_requirement(requirement)
    return not (parsed.specifier or parsed.extras or parsed.marker or parsed.url)


def is_version(found: str, wanted: str) -> bool:
    """Whether two texts name the same version by PEP 440, including the local part, such as "+cpu"."""
    from packaging.version import Version

    try:
        return Version(found) == Version(wanted)
    except ValueError:  # no version, or a number with more digits than Python reads
        return False


def wrong_version(packages: Mapping[str, str], package: str, version: str) -> str:
    """Say that an environment holds another version of a package than the installer was asked for; "" if it does not.

    `x==1.0` also allows the local version 1.0+cpu.
    """
    found = next((found for name, found in packages.items() if project_name(name) == project_name(package)), None)
    if found is not None and is_version(found, version):
        return ""
    have = f"{package} {found}" if found else f"no {package}"
    return f"the installer was asked for {package} {version}, but the environment has {have}"


def with_extras(requirement: str, replaced: str) -> str:
    """Return a requirement `name==version` with the extras of the requirement that it replaces.

    Another requirement, or a requirement with extras, is returned unchanged.
    """
    extras = sorted(parsed_requirement(replaced).extras)
    pinned = pinned_version(requirement)
    return f"{pinned[0]}[{','.join(extras)}]=={pinned[1]}" if extras and pinned else requirement


def parsed_requirement(requirement: str) -> Requirement:
    """Parse a requirement into its parts."""
    from urllib.parse import urlsplit

    from packaging.requirements import InvalidRequirement, Requirement

    try:
        if len(requirement) > _MAX_CHARACTERS:
            raise InvalidRequirement(f"the requirement has more than {_MAX_CHARACTERS:,} characters")
        if "\n" in requirement:
            raise InvalidRequirement("the requirement has more than one line")
        parsed = Requirement(requirement)
    except (InvalidRequirement, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f'a requirement must read like "opendp==0.14.2", got {requirement!r:.200}: {reason}') from None
    if parsed.url and "@" in urlsplit(parsed.url).netloc:
        raise ValueError(
            f"the URL of {parsed.name} holds a user name or password, which results and lock files would record; "
            "put the credentials into a .netrc file"
        )
    if parsed.url and masked(parsed.url) != parsed.url:
        raise ValueError(
            f"the URL of {parsed.name} holds what looks like an access token, which results and lock files would "
            f"record: {masked(parsed.url)}; use a URL without a token, such as the URL of a downloaded file"
        )
    _check_file(parsed)
    return parsed


def _check_file(parsed: Requirement) -> None:
    """Refuse file names in place of project names, and paths that depend on the current folder."""
    from urllib.parse import urlsplit

    if parsed.name.lower().endswith(_ARCHIVES):
        raise ValueError(
            f"{parsed.name} is the name of a file and not of a project; write NAME @ file:///FOLDER/{parsed.name}"
        )
    parts = urlsplit(parsed.url or "https:")
    if parts.scheme == "file" and (parts.netloc not in ("", "localhost") or not parts.path.startswith("/")):
        raise ValueError(
            f"the URL of {parsed.name} must be absolute, such as file:///FOLDER/FILE, got {parsed.url!r:.200}"
        )
    if not parts.scheme:
        raise ValueError(f"the URL of {parsed.name} must begin with https:// or file:///, got {parsed.url!r:.200}")


def unmet(requires: Iterable[str], installed: Mapping[str, str], python_version: str) -> list[str]:
    """Return the requirements that an environment does not meet."""
    from packaging.utils import canonicalize_name
    from packaging.version import Version

    versions = {str(canonicalize_name(name)): version for name, version in installed.items()}
    minor = ".".join(python_version.split(".")[:2])
    python = {"python_version": minor, "python_full_version": python_version, "extra": ""}
    missing = []
    for requirement in requires:
        try:
            one = parsed_requirement(requirement)
            if one.marker is not None and not one.marker.evaluate(python):
                continue
            version = versions.get(str(canonicalize_name(one.name)))
            if version is None or not one.specifier.contains(Version(version), prereleases=True):
                missing.append(requirement)
        except ValueError:
            continue
    return missing
