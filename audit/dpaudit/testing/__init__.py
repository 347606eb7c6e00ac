"""Audits as assertions in test suites, with the pytest plugin or without pytest.

May import: `claims`, `engine`, `inference`, `learning`, `pairs`, `result`, `rounding`, `running`, `settings`, `text`,
`values`.
Public names: the names in `__all__`.
"""

from __future__ import annotations

from dpaudit.testing.assertion import AuditInconclusive, PrivacyViolation, assert_audit, assert_private

__all__ = ["AuditInconclusive", "PrivacyViolation", "assert_audit", "assert_private"]
