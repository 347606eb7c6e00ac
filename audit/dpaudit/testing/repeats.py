"""Whether an audit may have made the runs of an earlier session again."""

from __future__ import annotations

from collections.abc import Set

from dpaudit.result.model import AuditResult

_GLOBAL_STATE = "global random state"  # in the warning about a mechanism that draws from it


def repetition(result: AuditResult, known: Set[str], jobs: int) -> str:
    """Why the audit is no new evidence beside the earlier ones, in words; "" if it is.

    Args:
        result: Of this session's audit.
        known: Fingerprints of the first outputs of earlier audits of the same test.
        jobs: Processes that the mechanism ran in.
    """
    if known & set(result.environment.get("first outputs", ())):
        return (
            "the first outputs are those of an earlier run in the baseline, so this run adds no evidence: let the "
            "mechanism draw from the rng it is given, not from a generator that begins with the same seed each time; "
            "or keep one line of succession, if this is a copy of the baseline"
        )
    if known and jobs != 1 and uses_global_state(result):
        return (
            "the mechanism uses global random state in other processes, where it may be the same in every session, so "
            "this run adds no evidence to the baseline: let the mechanism draw from the rng it is given, or use jobs=1"
        )
    return ""


def uses_global_state(result: AuditResult) -> bool:
    """Whether the mechanism was seen to use the global generators of numpy or Python."""
    return any(_GLOBAL_STATE in warning for warning in result.warnings)
