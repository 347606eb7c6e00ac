"""Audits as assertions in test suites, with the pytest plugin or without pytest."""

from __future__ import annotations

from dpaudit.testing.assertion import AuditInconclusive, PrivacyViolation, assert_audit, assert_private

__all__ = ["AuditInconclusive", "PrivacyViolation", "assert_audit", "assert_private"]
