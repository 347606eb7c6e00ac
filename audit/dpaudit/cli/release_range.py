"""Selects the releases that `dpaudit bisect` considers, from those that the package index lists."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from packaging.version import Version

from dpaudit.config import ConfigError
from dpaudit.mechanisms.releases import Releases, released
from dpaudit.text.printable import shortened
from dpaudit.text.spelling import nearest

UNSUPPORTED = "not for every Python of the audits"
_LISTED = 6  # number of releases that a message names


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRange:
    """The releases of a package between two ends, from old to new."""

    versions: tuple[str, ...]
    left_out: dict[str, str]
    unread: tuple[str, ...] = ()


def release_range(
    package: str, python_versions: Collection[str | None], oldest: str | None, newest: str | None
) -> ReleaseRange:
    """Ask the package index for the releases of a package, and select those between two ends."""
    lists = [released(package, version) for version in sorted(python_versions, key=str)]
    first, last = _end("--from", oldest, package, lists), _end("--to", newest, package, lists)
    if first is not None and last is not None and first > last:
        raise ConfigError(f"--from {first} is newer than --to {last}; exchange them")
    known: list[set[Version]] = [{*one.final, *one.left_out} for one in lists]
    listed = set[Version]().union(*known, *(one.unsupported for one in lists))
    kinds = dict.fromkeys(listed.intersection(*known) ^ listed, UNSUPPORTED)
    kinds |= {version: kind for one in lists for version, kind in one.left_out.items()}
    inside = [v for v in sorted(listed) if (first is None or first <= v) and (last is None or v <= last)]
    chosen = [v for v in inside if v not in kinds or v in (first, last)]
    if not chosen:
        raise ConfigError(
            f"{package} has no final release from {first or 'the first'} to {last or 'the latest'} that is not yanked; "
            "name pre-releases or yanked releases with --from and --to"
        )
    return ReleaseRange(
        versions=tuple(map(str, chosen)),
        left_out={str(v): kinds[v] for v in inside if v not in chosen},
        unread=tuple(dict.fromkeys(message for one in lists for message in one.unread)),
    )


def _end(option: str, given: str | None, package: str, lists: Collection[Releases]) -> Version | None:
    """Return the release that an option names, as the index writes it; None if the option is missing."""
    if given is None:
        return None
    known = sorted(set.intersection(*({*one.final, *one.left_out} for one in lists)))
    try:
        wanted = Version(given)
    except ValueError:  # no version, or a number with more digits than Python reads
        raise ConfigError(f"{option} must be a version such as {known[-1]}, got {shortened(given, 40)!r}") from None
    found = next((version for version in known if version == wanted), None)
    if found is None:
        names = [str(version) for version in known]
        meant = nearest(given, names)
        few = names if len(names) <= _LISTED else [*names[: _LISTED // 2], "...", *names[-_LISTED // 2 :]]
        raise ConfigError(
            f"{option} {wanted}: {package} has no such release for the Python of the audits"
            + (f"; did you mean {meant}?" if meant else ".")
            + f"  The releases are {', '.join(few)}."
        )
    return found
