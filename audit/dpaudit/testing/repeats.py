"""Detects audits that may repeat the runs of an earlier session."""

from __future__ import annotations

from collections.abc import Set

from dpaudit.result.model import AuditResult
from dpaudit.text.reasons import About, is_about


def repetition(result: AuditResult, known: Set[str], jobs: int) -> str:
    """Explain why an audit adds no evidence to earlier sessions.

    Returns:
        The reason; "" if the audit adds evidence.
    """
    if known & set(result.provenance.first_outputs or ()):
        return (
            "the first outputs equal the first outputs of an earlier run in the baseline, so this run adds no "
            "evidence; let the mechanism use the rng argument, not a generator with a fixed seed; if several copies of "
            "the baseline file exist, use only one of them"
        )
    if known and jobs != 1 and uses_global_state(result):
        return (
            "the mechanism uses global random state in worker processes, where this state may be the same in every "
            "session, so this run adds no evidence to the baseline; let the mechanism use the rng argument, or use "
            "jobs=1"
        )
    return ""


def uses_global_state(result: AuditResult) -> bool:
    """Whether the audit detected that the mechanism uses the global generators of numpy or Python."""
    return any(is_about(warning, About.GLOBAL_STATE) for warning in result.warnings)
