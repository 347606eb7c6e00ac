"""Replaces the versions of packages that the audits of configs require."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from packaging.version import Version

from dpaudit.config.planned import ConfigError, PlannedAudit
from dpaudit.mechanisms.requirements import is_bare_name, parsed_requirement, pinned_version, project_name, with_extras
from dpaudit.text.spelling import hint


def with_requirements(audits: Iterable[PlannedAudit], requirements: Sequence[str]) -> list[PlannedAudit]:
    """Return the audits with other versions of packages.

    Args:
        audits: Audits of configs.
        requirements: Requirements such as "opendp==0.14.2"; each replaces the requirements of the same project.

    Raises:
        ConfigError: If a requirement is not valid, or if no audit requires its project.
    """
    changed = list(audits)
    seen: set[str] = set()
    for requirement in requirements:
        try:
            project = project_name(requirement)
        except ValueError as error:
            raise ConfigError(f"--with: {error}") from None
        if project in seen:
            raise ConfigError(f"--with: {project} is given twice")
        seen.add(project)
        before, changed = changed, [_with_requirement(audit, project, requirement) for audit in changed]
        if all(new is old for new, old in zip(changed, before, strict=True)):
            known = sorted({project_name(r) for audit in before for r in audit.config.mechanism.requires or []})
            raise ConfigError(
                f"--with {requirement}: no audit requires {project}; "
                + hint(project, known, f"the audits require {', '.join(known) or 'no packages'}")
            )
    return changed


def _with_requirement(audit: PlannedAudit, project: str, requirement: str) -> PlannedAudit:
    mechanism = audit.config.mechanism
    if project not in map(project_name, mechanism.requires or ()):
        return audit
    requires = [with_extras(requirement, r) if project_name(r) == project else r for r in mechanism.requires or ()]
    changed = mechanism.model_copy(update={"requires": requires})
    return replace(audit, config=audit.config.model_copy(update={"mechanism": changed}))


def requiring(audits: Iterable[PlannedAudit], package: str) -> list[PlannedAudit]:
    """Return the audits that require a package.

    Args:
        audits: Audits of configs.
        package: The name of the package, without a version.

    Raises:
        ConfigError: If `package` is not a name, or if no audit requires the package.
    """
    try:
        project = project_name(package)
        bare = is_bare_name(package)
    except ValueError as error:
        raise ConfigError(f"PACKAGE: {error}") from None
    if not bare:
        raise ConfigError(f"PACKAGE must be a name such as {project}, got {package!r:.200}; see --from and --to")
    required = [(one, {project_name(r) for r in one.config.mechanism.requires or ()}) for one in audits]
    found = [one for one, projects in required if project in projects]
    if not found:
        known = sorted({name for _, projects in required for name in projects})
        raise ConfigError(
            f"PACKAGE {project}: no audit requires {project}; "
            + hint(project, known, f"the audits require {', '.join(known) or 'no packages'}")
        )
    return found


def pinned_versions(audits: Iterable[PlannedAudit], package: str) -> set[Version]:
    """Return the versions of a package that audits require exactly, such as 0.14.1 for `opendp[polars]==0.14.1`.

    Args:
        audits: Audits of configs.
        package: The name of the package.
    """
    project, found = project_name(package), set()
    for requirement in (one for audit in audits for one in audit.config.mechanism.requires or ()):
        parsed = parsed_requirement(requirement)
        if project_name(requirement) == project and len(parsed.specifier) == 1:
            (only,) = parsed.specifier
            if only.operator == "==" and not only.version.endswith(".*"):
                found.add(Version(only.version))
    return found


def side_by_side(audits: Sequence[PlannedAudit], versions: Sequence[str]) -> dict[tuple[str, str], PlannedAudit]:
    """Return a copy of each audit for each version.

    Args:
        audits: Audits of configs.  Audits that do not require the project are skipped.  If audits differ only in name,
            source and expectation, the first is used.
        versions: Versions such as "opendp==0.14.2".

    Returns:
        The audits by (name without a version, version).

    Raises:
        ConfigError: If a version is not valid, or if no audit requires its project.
    """
    beside: dict[tuple[str, str], PlannedAudit] = {}
    for version in versions:
        project, number = _to_compare(version)
        different: list[PlannedAudit] = []
        for old, new in zip(audits, with_requirements(audits, [version]), strict=True):
            concerned = project in map(project_name, old.config.mechanism.requires or ())
            if not concerned or any(_same(new, other) for other in different):
                continue
            different.append(new)
            title, name = _titles(old, project, number)
            if (title, version) in beside:
                title, name = old.config.name, f"{old.config.name}-{project}-{number}"
            beside[title, version] = new.named(name, expect=None)
    return beside


def _to_compare(version: str) -> tuple[str, str]:
    """Split an option such as "opendp==0.14.2" into project and version."""
    with contextlib.suppress(ValueError):
        if pinned := pinned_version(version):
            return project_name(version), pinned[1]
    raise ConfigError(
        f'--with: a version must have the form package==number, such as "opendp==0.14.2", got {version!r}'
    )


def _same(one: PlannedAudit, other: PlannedAudit) -> bool:
    """Whether two audits would make the same runs."""
    labels = {"name": "", "source": "", "expect": None}
    return one.file == other.file and one.config.model_copy(update=labels) == other.config.model_copy(update=labels)


def _titles(audit: PlannedAudit, project: str, number: str) -> tuple[str, str]:
    """Return two names for the audit: one without a version of the project, and one with the version `number`."""
    name = audit.config.name
    for requirement in audit.config.mechanism.requires or ():
        own, pinned = pinned_version(requirement) or ("", "")
        if pinned and project_name(requirement) == project and f"{own}-{pinned}" in name:
            return name.replace(f"{own}-{pinned}", own), name.replace(f"{own}-{pinned}", f"{own}-{number}")
    return name, f"{name}-{project}-{number}"
