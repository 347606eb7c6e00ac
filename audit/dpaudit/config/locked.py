"""Pins the environments of audits to exactly the packages of their lock files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dpaudit.config.planned import ConfigError, PlannedAudit
from dpaudit.mechanisms.environments import normalised
from dpaudit.mechanisms.interpreters import this_version
from dpaudit.mechanisms.locks import read_lock
from dpaudit.text.foreign_files import read_foreign

_MAX_LOCK_BYTES = 2**20  # larger files are refused before they are parsed


def lock_file(folder: Path, name: str) -> Path:
    """Return the lock file of an audit in an output folder."""
    return folder / f"{name}.lock"


def with_locks(audits: Iterable[PlannedAudit], folder: Path) -> list[PlannedAudit]:
    """Return the audits; each audit with an environment gets its lock file."""
    found, problems = [], []
    for audit in audits:
        try:
            found.append(_locked(audit, lock_file(folder, audit.config.name)))
        except ConfigError as error:
            problems.append(f"{audit.file}:{audit.line}: audit {audit.config.name}: {error}")
    if problems:
        raise ConfigError("\n".join(problems))
    return found


def _locked(audit: PlannedAudit, file: Path) -> PlannedAudit:
    mechanism = audit.config.mechanism
    if not mechanism.isolated:
        return audit
    try:
        lock = read_lock(read_foreign(file, _MAX_LOCK_BYTES))
    except FileNotFoundError:
        raise ConfigError(
            f"--locked: there is no lock file {file}.  Run once without --locked to write the file, and check the "
            "packages in the file"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--locked: {file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except ValueError as error:
        raise ConfigError(f"--locked: {file}:{error}.  Run once without --locked to write the file again") from None
    wanted, version = normalised(mechanism.requires or ()), mechanism.python_version or this_version()
    for name, here, there in (("requires", wanted, list(lock.requires)), ("Python", version, lock.python_version)):
        if here != there:
            raise ConfigError(
                f"--locked: {file} was made for {name} {there}, but this audit has {here}.  Run once without --locked "
                "to write the file again"
            )
    return replace(audit, lock=lock)
