"""The violations that the audit could not have detected."""

from __future__ import annotations

import math

from dpaudit.result.model import AuditResult
from dpaudit_reports.blocks import Math, Span
from dpaudit_reports.claim_words import least_found_in_words
from dpaudit_reports.claimed import enlarged
from dpaudit_reports.numbers import at_least, at_most, percent_at_most
from dpaudit_reports.reasons import why_void

_ON_BITS = ("float_bits", "last_bit", "reachable_floats")
"""Attacks on the low-order bits of floats, which "auto" uses for external programs only."""

_AT_LEAST, _AT_MOST = "≥\u00a0", "≤\u00a0"


def unseen(result: AuditResult, *, short: bool = False) -> tuple[Span, ...]:
    """Return the limits of the audit in sentences."""
    *first, last = _sentences(result, short=short)
    return (*first, last.rstrip() if isinstance(last, str) else last)


def _sentences(result: AuditResult, *, short: bool) -> tuple[Span, ...]:
    if void := why_void(result):
        return (f"Unknown, since nothing is certified: {void}.",)
    untried = () if short else (result.evidence.words.untried,)
    if result.detectable.rule_of_three_rate >= 1:
        return "No event could be seen, since no output was counted. ", *untried
    loss, rate = _loss(result), _rate(result)
    if result.measurement:
        return *rate, *loss, *untried
    if result.violated:
        return f"The proof says nothing about {result.evidence.words.others}. ", *loss
    return *_size(result, short=short), *rate, *loss, *(() if short else _bits(result)), *untried


def _bits(result: AuditResult) -> tuple[str, ...]:
    """State that the low-order bits of outputs were not used, if outputs of an audit may be floats."""
    if not (result.attacks and result.evidence.of_pairs) or any(row.name in _ON_BITS for row in result.attacks):
        return ()
    return ("The last bits of floats were not tested. ",)


def _size(result: AuditResult, *, short: bool) -> tuple[Span, ...]:
    if not result.detectable.claim:
        few = "one run" if result.evidence.once else "this number of runs"
        return (f"No violation of any size would have been found with 90\u00a0% probability by {few}. ",)
    others = f"Larger ones may have been missed, too, with {result.evidence.words.others}, or with another curve. "
    return (
        "Violations smaller than ",
        *least_found_in_words(result),
        f" may have been missed. {others}",
        *(() if short else _best_case(result)),
    )


def _best_case(result: AuditResult) -> tuple[str, ...]:
    words = assumption(result)
    return (f"The best case, which may not hold: {words.removeprefix('if ')}. ",) if words else ()


def assumption(result: AuditResult) -> str:
    """Return the assumption behind the smallest detectable violation; "" if there is no assumption."""
    return enlarged(result.detectable.assumption.replace("e^epsilon", "e^ε"))


def _rate(result: AuditResult) -> tuple[str, ...]:
    """State the probability below which an output is missed with a probability above 5 %, rounded up."""
    rate = result.detectable.rule_of_three_rate
    if math.isnan(rate):
        return ()
    runs = at_least(1 / rate, 2).removeprefix(_AT_LEAST) if 0 < rate < 0.1 else ""
    odds = f"1 in {runs} runs" if runs else f"{percent_at_most(rate, 2)} of runs"
    where = " on the pair with the most runs, and more frequent outputs on other pairs" if len(result.pairs) > 1 else ""
    return (f"Outputs that are rarer than {odds} may have been missed{where}. ",)


def _loss(result: AuditResult) -> tuple[Span, ...]:
    """Return a sentence about the largest epsilon that could have been certified."""
    epsilon = result.detectable.largest_epsilon
    if not math.isfinite(epsilon) or (result.evidence.trials and result.epsilon_lower(0.0) > epsilon):
        return ()
    limit = f" = {at_most(epsilon, 4).removeprefix(_AT_MOST)} at "
    few = "One run proves" if result.evidence.once else "This number of runs proves"
    return f"{few} no more than ", Math("ε"), limit, Math("δ = 0"), ", however large the loss is. "
