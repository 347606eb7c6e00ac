"""Restores the exact packages of an audit's environment from the result, so that a replay measures the same code."""

from __future__ import annotations

from dataclasses import replace

from dpaudit.config import PlannedAudit
from dpaudit.mechanisms.environments import cached_environment, normalised
from dpaudit.mechanisms.installer import Archive
from dpaudit.mechanisms.interpreters import this_version
from dpaudit.mechanisms.locks import Lock, lock_of
from dpaudit.mechanisms.requirements import parsed_requirement, project_name, unmet
from dpaudit.result.provenance import Provenance

UNLOCKED = "the replay did not use the exact packages of the audit, but packages that the installer chose"


def with_lock_of(planned: PlannedAudit, about: Provenance) -> tuple[PlannedAudit, str]:
    """Return an audit whose environment holds the packages of a result, with the same hashes.

    A cached environment for the same requirements is used if its packages have the same hashes.
    """
    mechanism = planned.config.mechanism
    if not mechanism.isolated or not (mechanism.requires or about.mechanism_packages):
        return planned, ""
    if not about.mechanism_hashes:
        return planned, f"{UNLOCKED}: the result has no hashes of the audit's packages"
    version = mechanism.python_version or this_version()
    if mechanism.python_version is None and not f"{about.python or version}.".startswith(f"{version}."):
        return planned, f"{UNLOCKED}: the audit ran with Python {about.python}, and this is {version}"
    packages = dict(about.mechanism_packages or {})
    if missing := unmet(mechanism.requires or (), packages, version):
        return planned, f"{UNLOCKED}: the packages in the result do not meet the audit's requirement {missing[0]}"
    lock = _lock(about, version, mechanism.requires or ())
    if lock is None:
        return planned, f"{UNLOCKED}: the packages and hashes in the result are inconsistent or not valid"
    there = cached_environment(mechanism.requires or (), mechanism.python_version)
    if there is not None and there.lock is not None and there.lock.hashes == lock.hashes:
        return planned, ""
    return replace(planned, lock=lock), ""


def _lock(about: Provenance, version: str, requires: list[str] | tuple[str, ...]) -> Lock | None:
    packages = dict(about.mechanism_packages or {})
    urls = {project_name(one): parsed_requirement(one).url or "" for one in requires}
    try:
        files = {
            name: Archive(packages[name], sha256.removeprefix("sha256:"), urls.get(project_name(name), ""))
            for name, sha256 in (about.mechanism_hashes or {}).items()
        }
        return lock_of(version, normalised(requires), packages, files)
    except (KeyError, ValueError):  # a name, version or hash in the result is invalid, or a hash has no package
        return None
