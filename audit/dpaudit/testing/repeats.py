"""Detects audits that may repeat the runs of an earlier session."""

from __future__ import annotations

from collections.abc import Set

from dpaudit.result.model import AuditResult
from dpaudit.text.reasons import About, is_about


def repetition(result: AuditResult, known: Set[str], jobs: int) -> str:
    """Explain why an audit adds no evidence to earlier sessions.

    Args:
        result: Result of this session's audit.
        known: Fingerprints of the first outputs of earlier audits of the same test.
        jobs: Number of processes that the mechanism ran in.

    Returns:
        The reason; "" if the audit adds evidence.
    """
    if known & set(result.provenance.first_outputs or ()):
        return (
            "the first outputs equal those of an earlier run in the baseline, so this run adds no evidence; let the "
            "mechanism draw from the rng it is given, not from a generator with a fixed seed; if this is a copy of the "
            "baseline, use only one of the copies"
        )
    if known and jobs != 1 and uses_global_state(result):
        return (
            "the mechanism uses global random state in worker processes, where it may be the same in every session, so "
            "this run adds no evidence to the baseline; let the mechanism draw from the rng it is given, or use jobs=1"
        )
    return ""


def uses_global_state(result: AuditResult) -> bool:
    """Whether the audit detected that the mechanism uses the global generators of numpy or Python."""
    return any(is_about(warning, About.GLOBAL_STATE) for warning in result.warnings)
