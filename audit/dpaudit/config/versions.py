"""Replaces the versions of packages that the audits of configs require, or pins them to lock files."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from packaging.version import Version

from dpaudit.config.models import AuditConfig
from dpaudit.config.planned import ConfigError, PlannedAudit
from dpaudit.running.environments import read_lock
from dpaudit.running.requirements import (
    is_bare_name,
    normalised,
    parsed_requirement,
    pinned_version,
    project_name,
    this_version,
    with_extras,
)
from dpaudit.text import hint, read_foreign


def with_requirements(audits: Iterable[PlannedAudit], requirements: Sequence[str]) -> list[PlannedAudit]:
    changed = list(audits)
    seen: set[str] = set()
    for requirement in requirements:
        try:
            project = project_name(requirement)
        except ValueError as error:
            raise ConfigError(f"--with: {error}") from None
        if project in seen:
            raise ConfigError(f"--with: {project} is given twice; dpaudit compare audits several versions")
        seen.add(project)
        if not any(project in _projects(audit) for audit in changed):
            raise _not_required(f"--with {requirement}: no audit requires {project}", project, changed)
        changed = [_with_requirement(audit, project, requirement) for audit in changed]
    return changed


def _with_requirement(audit: PlannedAudit, project: str, requirement: str, *, add: bool = False) -> PlannedAudit:
    """Replace the requirement of a project; `add` adds it to an audit that does not require the project."""
    mechanism = audit.config.mechanism
    if project in _projects(audit):
        requires = [
            with_extras(requirement, old) if project_name(old) == project else old for old in mechanism.requires or ()
        ]
    elif add:
        requires = [*(mechanism.requires or ()), requirement]
    else:
        return audit
    return audit.changed(mechanism=mechanism.model_copy(update={"requires": requires}))


def _projects(audit: PlannedAudit) -> list[str]:
    return [project_name(requirement) for requirement in audit.config.mechanism.requires or ()]


def _not_required(problem: str, project: str, audits: Iterable[PlannedAudit]) -> ConfigError:
    """Return the error that no audit requires a package, with the packages that audits require."""
    known = sorted({name for audit in audits for name in _projects(audit)})
    return ConfigError(f"{problem}; " + hint(project, known, f"the audits require {', '.join(known) or 'no packages'}"))


def requiring(audits: Sequence[PlannedAudit], package: str) -> list[PlannedAudit]:
    try:
        project = project_name(package)
        bare = is_bare_name(package)
    except ValueError as error:
        raise ConfigError(f"PACKAGE: {error}") from None
    if not bare:
        raise ConfigError(f"PACKAGE must be a name such as {project}, got {package!r:.200}; see --from and --to")
    concerned = [audit for audit in audits if project in _projects(audit)]
    if not concerned:
        raise _not_required(f"PACKAGE {project}: no audit requires {project}", project, audits)
    return concerned


def pinned_versions(audits: Iterable[PlannedAudit], package: str) -> set[Version]:
    """Return the versions of a package that audits require exactly, such as 0.14.1 for `opendp[polars]==0.14.1`."""
    requirements = (requirement for audit in audits for requirement in audit.config.mechanism.requires or ())
    parsed = [parsed_requirement(one) for one in requirements if project_name(one) == project_name(package)]
    single = [next(iter(one.specifier)) for one in parsed if len(one.specifier) == 1]
    return {Version(one.version) for one in single if one.operator == "==" and not one.version.endswith(".*")}


def side_by_side(audits: Sequence[PlannedAudit], versions: Sequence[str]) -> dict[tuple[str, str], PlannedAudit]:
    beside: dict[tuple[str, str], PlannedAudit] = {}
    names: set[str] = set()  # without capitals, as the names are those of files
    before: list[dict[str, Version]] = []
    for given in versions:
        packages = _to_compare(given)
        version = " ".join(packages)
        numbers = {project_name(package): (pinned_version(package) or ("", ""))[1] for package in packages}
        exact = {project: Version(number) for project, number in numbers.items()}
        if exact in before:
            raise ConfigError(f"--with {version:.200}: the version is given twice")
        before.append(exact)
        concerned = [audit for audit in audits if numbers.keys() & set(_projects(audit))]
        if not concerned:
            words = f"--with {given}: no audit requires {' or '.join(numbers)}"
            raise _not_required(words, next(iter(numbers)), audits)
        different: list[tuple[Path, AuditConfig]] = []  # audits that would make different runs
        for old in concerned:
            new = old
            for package in packages:
                new = _with_requirement(new, project_name(package), package, add=True)
            runs = new.file, new.changed(name="", source="", expect=None).config
            if runs in different:
                continue
            different.append(runs)
            title, name = _titles(old, numbers)
            whole = "-".join([old.config.name, *(f"{p}-{n}" for p, n in numbers.items())])
            title = _unused((title, old.config.name), {other.casefold() for other, v in beside if v == version})
            name = _unused((name, whole), names)
            names.add(name.casefold())
            beside[title, version] = new.changed(name=name, expect=None)
    return beside


def _unused(wanted: Sequence[str], taken: Collection[str]) -> str:
    """Return the first wanted name that no other audit has.  Two audits with one name would share one result."""
    numbered = (f"{wanted[-1]}-{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain(wanted, numbered) if name.casefold() not in taken)


def _to_compare(version: str) -> list[str]:
    """Split an option such as "opendp==0.14.2 numpy==1.26.4" into its packages."""
    packages = re.sub(r"\s*==\s*", "==", version).split()
    projects: set[str] = set()
    for package in packages or [""]:
        pinned = None
        with contextlib.suppress(ValueError):
            pinned = pinned_version(package)
        if pinned is None:
            raise ConfigError(
                '--with: a version must have the form package==number, such as "opendp==0.14.2", got '
                f"{version!r:.200}; spaces separate several packages"
            )
        if project_name(package) in projects:
            raise ConfigError(f"--with {version!r:.200}: {project_name(package)} is given twice")
        projects.add(project_name(package))
    return packages


def _titles(audit: PlannedAudit, numbers: Mapping[str, str]) -> tuple[str, str]:
    """Return two names for the audit: without versions of the projects, and with the versions `numbers`."""
    title = name = audit.config.name
    for project, number in numbers.items():
        pins = (pinned_version(one) for one in audit.config.mechanism.requires or () if project_name(one) == project)
        written = next((pin for pin in pins if pin and "-".join(pin) in audit.config.name), None)
        if written is None:
            name = f"{name}-{project}-{number}"
        else:
            title = title.replace("-".join(written), written[0])
            name = name.replace("-".join(written), f"{written[0]}-{number}")
    return title, name


def lock_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.lock"


def with_locks(audits: Iterable[PlannedAudit], folder: Path) -> list[PlannedAudit]:
    """Return the audits; each audit with an environment gets its lock file."""
    found, problems = [], []
    for audit in audits:
        try:
            found.append(_locked(audit, lock_file(folder, audit.config.name)))
        except ConfigError as error:
            again = "Run once without --locked to write the file, and check the packages in it"
            problems.append(f"{audit.address}: --locked: {error}.  {again}")
    if problems:
        raise ConfigError("\n".join(problems))
    return found


def _locked(audit: PlannedAudit, file: Path) -> PlannedAudit:
    mechanism = audit.config.mechanism
    if not mechanism.installs:
        return audit
    try:
        lock = read_lock(read_foreign(file))
    except FileNotFoundError:
        raise ConfigError(f"there is no lock file {file}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except ValueError as error:
        raise ConfigError(f"{file}:{error}") from None
    wanted, version = normalised(mechanism.requires or ()), mechanism.python_version or this_version()
    for name, here, there in (("requires", wanted, list(lock.requires)), ("Python", version, lock.python_version)):
        if here != there:
            raise ConfigError(f"{file} was made for {name} {there}, but this audit has {here}")
    return replace(audit, lock=lock)
