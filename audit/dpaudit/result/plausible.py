"""Checks statements of a result that its evidence does not prove: the e-value, the runs, the detectable violation."""

from __future__ import annotations

import math
import re

from dpaudit.claims import PureDP, TradeoffFunction, parse_claim
from dpaudit.inference.power import in_family
from dpaudit.inference.resolution import rule_of_three_rate
from dpaudit.result.own_forms import quotation
from dpaudit.result.recorded_detect import detect_of
from dpaudit.result.sequential_evidence import NEARLY
from dpaudit.result.stated import Stated
from dpaudit.result.values import Detectable, Verdict
from dpaudit.text.printable import one_line, shortened
from dpaudit.text.reasons import quoted
from dpaudit.text.rounding import count, upper

# Runs per dataset that need no counted outputs: attacks learn from the first runs on each pair.
_RUNS_ALWAYS, _RUNS_OF_A_PAIR = 1_000_000, 10_000
# Runs per dataset for each counted output.  A valid audit counts at least a quarter of its runs after the first ones.
_RUNS_TIMES = 8
_LARGEST = 699.0  # logarithm above which the engine may write an e-value as inf
_POWER = 0.9  # probability with which the detectable violation is detected; see `Detectable`
_MAX_SHOWN = 100  # characters of a statement in a message

_ASSUMPTION = re.compile(
    r"if the mechanism's trade-off curve"
    r"(?: on this pair| on the pair with the most trials| on the pair that the pilot chose| at every step)?"
    r" is that of (?P<claim>.+) and "
    r"(?:the attack is optimal|scores are likelihood ratios(?:, independent of each other)?)",
)
_EARLIER = (
    "",
    "if an attack knows the likelihood ratio; learning it costs more",
    "if every guess is right with odds e^epsilon",
    "if the noise has the claim's own shape",
)
"""Assumptions that earlier versions wrote."""


def e_value_of_counts(result: Stated) -> float:
    """Return the largest e-value that the counts support: the wealth at the end, or 1 if the wealth is smaller.

    If the number of trials was fixed, the e-value is the one that is computed from the p-value.
    """
    if not result.bounds_valid:
        return 1.0
    evidence = result.evidence
    p_value = evidence.p_value(evidence.tested(result.claim))
    if p_value == 0:
        return math.inf
    return 1 / p_value if evidence.anytime else 0.5 / math.sqrt(p_value)


def of_e_value(result: Stated) -> list[str]:
    """Describe an e-value that exceeds the one of the counts."""
    most = e_value_of_counts(result)
    if math.log(most) > _LARGEST or result.e_value <= most * (1 + NEARLY):
        return []
    if math.log(result.e_value) <= math.log(most) * (1 + NEARLY):  # the logarithm is what is rounded
        return []
    return [f"the e-value is {upper(result.e_value, 6)}, but its counts give at most {upper(most, 6)}"]


def of_runs(result: Stated) -> list[str]:
    """Compare the number of runs with the number of counted outputs, with the rows of pairs and with the maximum."""
    counted, used = result.evidence.trials, result.trials_used
    found = []
    if counted > used:
        found.append(f"{count(counted)} runs per dataset are counted, but only {count(used)} were made")
    if used > result.trials_allowed:
        found.append(f"{count(used)} runs per dataset were made, but at most {count(result.trials_allowed)} allowed")
    if result.pairs and (made := sum(pair.trials for pair in result.pairs)) != used:
        found.append(f"{count(used)} runs per dataset were made, but its pairs have {count(made)}")
    if not result.pairs and counted != used:
        found.append(f"{count(used)} runs per dataset were made, but {count(counted)} are counted")
    most = max(_RUNS_ALWAYS, _RUNS_TIMES * counted, _RUNS_OF_A_PAIR * len(result.pairs))
    if result.bounds_valid and used > most:
        found.append(f"{count(used)} runs per dataset were made, but its counts support at most {count(most)}")
    return found


def of_detectable(result: Stated) -> list[str]:
    """Describe a detectable violation that is not a claim."""
    text = result.detectable.claim
    return [] if not text or is_claim(text) else [f"its detectable violation is not a claim: {_shown(text)}"]


def of_power(result: Stated) -> list[str]:
    """Describe a detectable violation, or a rate of rare events, that is smaller than the counts allow."""
    stated, found = result.detectable, []
    rate = rule_of_three_rate(result.evidence.tries)
    if stated.rule_of_three_rate < rate * (1 - NEARLY):
        found.append(
            f"it states that an event of probability {upper(stated.rule_of_three_rate, 6)} occurs in some run, but its "
            f"counts give {upper(rate, 6)}"
        )
    if stated.claim and is_claim(stated.claim) and not _detects(result, parse_claim(stated.claim)):
        found.append(f"its detectable violation is smaller than its counts allow: {_shown(stated.claim)}")
    if not stated.claim and result.verdict is Verdict.NO_VIOLATION:
        found.append("no violation is reported, but it states that no violation would have been detected")
    return found


def _detects(result: Stated, violation: TradeoffFunction) -> bool:
    """Whether the audit detects a violation, which must be in the family of the claim."""
    claim, evidence = result.claim, result.evidence
    # other curves may take long to compute; earlier versions stated a pure claim for every claim about one run
    if not (in_family(claim, violation) or in_family(evidence.tested(claim), violation) or type(violation) is PureDP):
        return False
    needed = 0 if result.witness is None else result.witness.needed
    return evidence.detects(claim, violation, confidence=result.confidence, power=_POWER, needed=needed)


def of_assumption(result: Stated) -> list[str]:
    """Describe an assumption about the detectable violation that dpaudit does not make."""
    stated = result.detectable
    if _is_known(stated):
        return []
    return [f"it states an assumption about the detectable violation that is unknown: {_shown(stated.assumption)}"]


def of_planned(result: Stated, *, complete: bool) -> list[str]:
    """Compare the planned violations of the evidence with the confidence and the config that the result states."""
    planned, audit = result.evidence.planned, result.provenance.audit
    sought = "" if audit is None else detect_of(audit)
    if planned is None:
        if not (complete and sought and result.evidence.anytime and result.evidence.of_pairs):
            return []
        return [f"its config plans to detect {_shown(sought)}, but its evidence states no planned violation"]
    found = []
    if planned.confidence != result.confidence:
        found.append(
            f"its bets were planned at confidence {planned.confidence!r}, but its verdict holds at "
            f"{result.confidence!r}"
        )
    stated = [str(violation) for violation in planned.violations]
    if audit is not None and sought is not None and stated != _as_claims(sought):
        words = _shown(sought) if sought else "no violation"
        found.append(f"its bets were planned to detect {_shown(', '.join(stated))}, but its config states {words}")
    return found


def unread_plan(result: Stated) -> str:
    """Say that the planned violation is not compared with the config, because the config cannot be read; or ""."""
    evidence, audit = result.evidence, result.provenance.audit
    matters = evidence.planned is not None or (evidence.anytime and evidence.of_pairs)
    if audit is None or not matters or detect_of(audit) is not None:
        return ""
    return "the violation to detect was not compared with its config, which is too large or has an unknown form"


def _as_claims(sought: str) -> list[str]:
    """Return the text of a claim in the form that results record, in a list; an empty list if it is not a claim."""
    return [str(parse_claim(sought))] if is_claim(sought) else []


def claim_text(stated: Detectable) -> str:
    """Return a detectable violation, as a quotation unless it is a claim."""
    return stated.claim if is_claim(stated.claim) else quotation(stated.claim)


def assumption_words(stated: Detectable) -> str:
    """Return the assumption about a detectable violation, as a quotation unless it has a form that dpaudit writes."""
    return stated.assumption if _is_known(stated) else quoted(stated.assumption)


def _is_known(stated: Detectable) -> bool:
    if stated.assumption in _EARLIER:
        return True
    found = _ASSUMPTION.fullmatch(stated.assumption)
    return found is not None and found["claim"] == (stated.claim or found["claim"]) and is_claim(found["claim"])


def is_claim(text: str) -> bool:
    """Whether a text is a claim, without a comment or a line break, which the parser of claims would ignore."""
    if not text.isascii() or not text.isprintable() or "#" in text:
        return False
    try:
        parse_claim(text)
    except ValueError:
        return False
    return True


def _shown(text: str) -> str:
    return one_line(shortened(text, _MAX_SHOWN))
