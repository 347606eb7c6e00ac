"""Reads audits from YAML files, and checks them completely before any trial runs."""

from dpaudit.config.files import only_named, read_configs, read_text
from dpaudit.config.models import FROM_MECHANISM, AuditConfig, schema
from dpaudit.config.planned import ConfigError, PlannedAudit
from dpaudit.config.versions import lock_file, pinned_versions, requiring, side_by_side, with_locks, with_requirements

__all__ = [
    "FROM_MECHANISM",
    "AuditConfig",
    "ConfigError",
    "PlannedAudit",
    "lock_file",
    "only_named",
    "pinned_versions",
    "read_configs",
    "read_text",
    "requiring",
    "schema",
    "side_by_side",
    "with_locks",
    "with_requirements",
]
