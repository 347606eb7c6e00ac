"""Chooses audits by their names."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from dpaudit.config.planned import ConfigError, PlannedAudit
from dpaudit.text.spelling import hint

_MAX_LISTED = 8  # names that a message lists


def only_named(audits: Sequence[PlannedAudit], patterns: Sequence[str]) -> list[PlannedAudit]:
    """Return the audits whose names match a pattern, in their original order; all audits if there is no pattern."""
    names = [audit.config.name for audit in audits]
    problems = [
        f"--only {pattern}: no audit has this name; {hint(pattern, names, _listed(names))}"
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
    if problems:
        raise ConfigError(*problems)
    return [
        audit
        for audit, name in zip(audits, names, strict=True)
        if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    ]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return f"the audits are {', '.join(names[:_MAX_LISTED])}{more}"
