"""What a report says about a verdict: its mark, its reasons, its confirmation, and what could not be seen."""

from __future__ import annotations

import math
from dataclasses import replace

from dpaudit.result.confirmation import Confirmation, confirmation_words
from dpaudit.result.evidence import given_scores, once
from dpaudit.result.model import AuditResult
from dpaudit.result.values import Verdict
from dpaudit.result.words import quotation, words_of
from dpaudit.rounding import at_least, at_most, percent_at_most, upper
from dpaudit.text import SIGNS, Reason, WarningCode, has_code, nothing_holds, quoted
from dpaudit_reports.blocks import Math, Span, bare
from dpaudit_reports.claimed import enlarged, least_found_in_words

MARKS = {verdict: SIGNS[verdict.value] for verdict in Verdict}

WORST_FIRST = (Verdict.VIOLATION, Verdict.INCONCLUSIVE, Verdict.NO_VIOLATION)


def title_of(result: AuditResult) -> str:
    """Return the name of the result, or a substitute because documents, parts and links need a title."""
    return result.name if result.name.strip() else "audit without a name"


def fresh(result: AuditResult) -> Confirmation | None:
    """Return the fresh runs that counted the region of a violation; None if there are none."""
    found = result.confirmation
    return found if result.violated and found is not None and found.counts is not None else None


def outcome(result: AuditResult) -> str:
    """Return what the fresh runs say about a violation in a word, after a semicolon; "" if there is no violation."""
    found = result.confirmation
    return f"; {found.outcome}" if result.violated and found is not None else ""


def confirmation(result: AuditResult) -> str:
    """Return what the fresh runs say about a violation, as part of a sentence; "" if the result does not record it."""
    found = result.confirmation
    if not result.violated or found is None:
        return ""
    words = confirmation_words(replace(found, reason=quotation(found.reason)))
    return words.replace(f"p <= {upper(found.p_value)}", f"p\u00a0{at_most(found.p_value)}")


def shows_size(result: AuditResult) -> bool:
    """Return whether the bounds exceed the claim, and come from fresh runs or from given scores."""
    if given_scores(result.evidence) is not None:
        return any(row.verdict and row.epsilon > row.claimed for row in result.bounds)
    return fresh(result) is not None and result.runs_for_size is None


_STOPPED = {"failure": WarningCode.FAILURE, "interruption": WarningCode.INTERRUPTION}


def why_inconclusive(result: AuditResult) -> tuple[str, ...]:
    """Return the warnings that made the audit inconclusive."""
    if result.verdict is not Verdict.INCONCLUSIVE:
        return ()
    if found := tuple(filter(nothing_holds, result.warnings)):
        return found
    for code in (_STOPPED.get(result.stopped_by), WarningCode.TOO_FEW):
        if code and (found := tuple(warning for warning in result.warnings if has_code(warning, code))):
            return found
    return result.warnings[-1:]


def reason(result: AuditResult) -> str:
    """Return the reason why the audit is inconclusive, in sentences; "" if it is conclusive or recorded no warning."""
    found = why_inconclusive(result)
    if any(Reason.of(warning).foreign for warning in found):
        return f"{_capital(quoted('; '.join(found)))}."
    signs = [Reason.of(warning).sign for warning in found if nothing_holds(warning)]
    if signs:
        return f"Runs depend on each other: {'; '.join(signs)}. So no guarantee holds."
    return " ".join(f"{_capital(warning).rstrip('.')}." for warning in found)


def _capital(words: str) -> str:
    """Return the words with a capital letter, unless they begin with d0 or d1, which are names."""
    return words if words.startswith(("d0 ", "d1 ")) else f"{words[:1].upper()}{words[1:]}"


def why_void(result: AuditResult) -> str:
    """Return the reason why the counts prove nothing, as part of a sentence; "" if bounds are certified."""
    if result.bounds_valid:
        return ""
    if any(map(nothing_holds, result.warnings)):
        return "the runs depend on each other"
    if result.evidence.kind.frozen:
        short = f"{result.trials_used:,} of {result.trials_allowed:,} runs, although the number was fixed beforehand"
        if result.stopped_by == "interruption":
            return f"the audit was interrupted after {short}"
        if result.stopped_by == "failure":
            return f"the mechanism failed after {short}"
        if result.trials_used < result.trials_allowed:
            return f"the audit ended after {short}"
    found = why_inconclusive(result)
    words = "; ".join(found).rstrip(".") or "the reason was not recorded"
    words = quoted(words) if any(Reason.of(warning).foreign for warning in found) else words
    return words if len(words) <= 90 else "the verdict at the top states the reason"


def unseen(result: AuditResult) -> tuple[Span, ...]:
    """Return the limits of the audit in sentences."""
    if void := why_void(result):
        return (f"Unknown, since nothing is certified: {void}.",)
    if result.detectable.rule_of_three_rate >= 1:
        return ("No event could be seen, since no output was counted.",)
    if not result.bounded:
        return ("Losses that are seldom beyond what is reported, and losses with other analysts or pairs. ",)
    limits: list[Span] = []
    if not (result.violated or result.measurement):
        limits += _size(result)
    rate, epsilon = result.detectable.rule_of_three_rate, result.detectable.largest_epsilon
    if not result.violated and rate < 0.5:  # with few runs, any output may have been missed
        odds = f"1 in {bare(at_least(1 / rate, 2))} runs" if 0 < rate < 0.1 else f"{percent_at_most(rate, 2)} of runs"
        where = " on the pair with the most runs, and more frequent outputs on other pairs" * (len(result.pairs) > 1)
        limits.append(f"Outputs that are rarer than {odds} may have been missed{where}. ")
    if 0 < epsilon < math.inf and not (result.evidence.trials and result.epsilon_lower(0.0) > epsilon):
        few = "With one run" if once(result.evidence) else "With this many runs"
        limits += [f"{few}, even a total leak would be certified only as ", Math("ε")]
        limits += [f" ≥ {bare(at_most(epsilon, 4))} at ", Math("δ = 0"), ". "]
    return tuple(limits) or ("No more than what is stated above is known.",)


def _size(result: AuditResult) -> tuple[Span, ...]:
    if not result.detectable.claim:
        few = "one run" if once(result.evidence) else "this number of runs"
        return (f"No violation of any size would have been found with 90\u00a0% probability by {few}. ",)
    others = f"larger ones with {words_of(result.evidence).others}, or with another curve. "
    best = f"The size holds in the best case only: {words}. " if (words := assumption(result)) else ""
    return "Violations smaller than ", *least_found_in_words(result), f" may have been missed, and {others}{best}"


def assumption(result: AuditResult) -> str:
    """Return the assumption behind the smallest detectable violation; "" if there is no assumption."""
    return enlarged(result.detectable.assumption.replace("e^epsilon", "e^ε"))
