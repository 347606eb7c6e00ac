"""Finds the warnings that explain why an audit is inconclusive or certifies nothing."""

from __future__ import annotations

from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict
from dpaudit.text.reasons import About, FromFile, is_about, nothing_holds, quoted, sign

_MAX_CHARACTERS = 90  # a longer reason is given only at the top of a report, not in each section
_STOPPED = {"failure": About.FAILURE, "interruption": About.INTERRUPTION}


def why_inconclusive(result: AuditResult) -> tuple[str, ...]:
    """Return the warnings that made the audit inconclusive.

    The kinds of warnings are searched in a fixed order: dependent runs, then a failure or an interruption, then too few
    runs.  The first kind that occurs is returned.  If none occurs, the last warning is returned, since warnings about
    the verdict come last.
    """
    if result.verdict is not Verdict.INCONCLUSIVE:
        return ()
    if found := tuple(filter(nothing_holds, result.warnings)):
        return found
    for about in (_STOPPED.get(result.stopped_by), About.TOO_FEW):
        if about and (found := tuple(warning for warning in result.warnings if is_about(warning, about))):
            return found
    return result.warnings[-1:]


def reason(result: AuditResult) -> str:
    """Return the reason why the audit is inconclusive, in sentences; "" if it is conclusive or recorded no warning."""
    found = why_inconclusive(result)
    if _foreign(found):
        return f"{_capital(quoted('; '.join(found)))}."
    signs = [sign(warning) for warning in found if nothing_holds(warning)]
    if signs:
        return f"Runs depend on each other: {'; '.join(signs)}. So no guarantee holds."
    return " ".join(f"{_capital(warning).rstrip('.')}." for warning in found)


def _foreign(warnings: tuple[str, ...]) -> bool:
    """Return whether warnings come from a file."""
    return any(isinstance(warning, FromFile) for warning in warnings)


def _capital(words: str) -> str:
    """Return the words with a capital letter, unless they begin with d0 or d1, which are names."""
    return words if words.startswith(("d0 ", "d1 ")) else f"{words[:1].upper()}{words[1:]}"


def why_void(result: AuditResult) -> str:
    """Return the reason why the counts prove nothing, as part of a sentence; "" if bounds are certified."""
    if result.bounds_valid:
        return ""
    if any(map(nothing_holds, result.warnings)):
        return "the runs depend on each other"
    short = f"{result.trials_used:,} of {result.trials_allowed:,} runs, although the number was fixed beforehand"
    if result.evidence.frozen and result.stopped_by == "interruption":
        return f"the audit was interrupted after {short}"
    if result.evidence.frozen and result.stopped_by == "failure":
        return f"the mechanism failed after {short}"
    if result.evidence.frozen and result.trials_used < result.trials_allowed:
        return f"the audit ended after {short}"
    found = why_inconclusive(result)
    words = "; ".join(found).rstrip(".") or "the reason was not recorded"
    words = quoted(words) if _foreign(found) else words
    return words if len(words) <= _MAX_CHARACTERS else "the verdict at the top states the reason"
