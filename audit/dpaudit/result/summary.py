"""Writes a result in plain text: its numbers, rounded to the safe side, and a summary of at most four lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dpaudit.claims import ApproxDP, GaussianDP, PureDP, Reported
from dpaudit.result.confirmation import confirmation_words
from dpaudit.result.evidence import given_scores, spent
from dpaudit.result.scores_evidence import table_words
from dpaudit.result.values import MEASUREMENT, Verdict, Witness
from dpaudit.result.words import words_of
from dpaudit.rounding import count, lower, percent_at_least, percent_at_most, rate_at_most, upper
from dpaudit.text import one_line

AuditResult = Any  # `result.model`, which uses this module, defines it


def p_value_words(result: AuditResult, write: Callable[..., str] = upper) -> str:
    """Write the p-value, rounded up, with enough digits to distinguish it from the significance of the audit."""
    return write(result.p_value, under=1 - result.confidence)


def size_words(result: AuditResult) -> list[str]:
    """Write what the fresh runs say about a violation, and whether the bounds state its size, each on one line."""
    found = result.confirmation
    lines = [] if found is None else [confirmation_words(found)]
    if result.refuted_at is not None and result.stopped_by != "evidence":
        after = spent(result.evidence, result.refuted_at)
        lines.append(f"refuted after {after}" + f"; {words_of(result.evidence).went_on}" * result.bounded)
    elif not result.bounded:
        lines.append("how much more is lost than reported is not measured")
    elif result.evidence.kind.anytime and (found is None or found.counts is None):
        lines.append("stopped at the first proof; the bounds do not estimate the size of the violation")
    elif (needed := result.runs_for_size) is not None:
        runs = "" if math.isinf(needed) else f" (about {count(int(needed))} fresh runs would)"
        lines.append(f"more than claimed; how much more is not measured{runs}")
    return lines


def certified_words(result: AuditResult) -> str:
    """Write the certified lower bounds on one line of plain text: epsilon alone for a claim that states an epsilon."""
    if not result.bounds_valid:
        return "nothing is certified"
    if not result.bounded:
        return ""
    if isinstance(result.claim, PureDP | ApproxDP):
        delta = float(result.claim.parameters.get("delta", 0.0))
        return f"epsilon >= {_epsilon_words(result, delta)} at delta = {delta:g}"
    mu = lower(result.mu_lower, over=result.claim.mu() if result.violated else -math.inf)
    return f"mu >= {mu}, epsilon >= {_epsilon_words(result, 0.0)} at delta = 0"


def _epsilon_words(result: AuditResult, delta: float) -> str:
    """Write `epsilon_lower(delta)`, rounded down; for a violation, with enough digits to exceed the claim's epsilon."""
    return lower(result.epsilon_lower(delta), over=result.claim.epsilon(delta) if result.violated else -math.inf)


def allowed_rate(result: AuditResult) -> float:
    """Return the largest rate under d1 that the claim allows at the upper end of the 95 % interval under d0."""
    found = result.witness
    if found is None or not result.bounds_valid or found.counted == "moving" or math.isnan(found.allowed_upper):
        return math.nan
    claim, end = result.claim.symmetrized(), found.alpha_upper
    rounding = float(claim.beta(end)) - float(claim.beta(min(1.0, rate_at_most(end))))
    allowed = found.allowed_upper + max(0.0, rounding)
    return allowed if result.violated or 1 - found.beta <= allowed else math.nan


def witness_words(result: AuditResult, found: Witness) -> str:
    """Describe a witness in a sentence of plain text, for example for an error message."""
    if not result.bounds_valid:
        return f"{found.region}: the counts prove nothing ({found.pair})"
    if result.violated and found.counted == "moving":
        return (
            f"{found.region}, an illustration of the proof, which rests on all runs (pair {found.pair}; "
            f"attack {found.attack}; the region changed while the attack learned, so its rates are not known)"
            + found.told
        )
    if result.violated and isinstance(result.claim, Reported):
        k0, k1 = (count(times) for times in beyond_reports(found))
        return (
            f"more than reported: {k0} of {count(found.counts.n0)} sessions on d0, although thinned, and {k1} of "
            f"{count(found.counts.n1)} on d1; right reports allow no more on d0 (pair {found.pair})"
        )
    allowed, compared = allowed_rate(result), ""
    if result.violated and result.evidence.kind.anytime and not 1 - found.beta > allowed:
        compared = ", an illustration of the proof, which rests on all runs"
    elif not math.isnan(allowed):
        end = percent_at_most(found.alpha_upper)
        compared = f"; the claim allows at most {percent_at_most(allowed)}, even if d0's rate is {end}"
    return found.describe(compared + ("" if result.violated else "; not significant"))


def beyond_reports(found: Witness) -> tuple[int, int]:
    """Return how many sessions on d0 survived and are beyond what they report, and how many on d1 look like these."""
    return found.counts.n0 - found.counts.false_positives, found.counts.false_negatives


ORDINARY_DELTA = 1e-6  # delta of the bound for claims that state neither an epsilon nor a mu
_WEAK = 1 / 3  # an audit that proves a smaller share of the claim could not see much


def weakness(result: AuditResult) -> str:
    """Return why an audit without a violation could not see much; "" if it could.

    No attack told the datasets apart better than guessing, or little is proven; the best case then is no measure.
    """
    if result.verdict is not Verdict.NO_VIOLATION or not result.bounded:
        return ""
    losses = [row.log_loss for row in result.attacks if not math.isnan(row.log_loss)]
    if losses and result.mu_lower <= 0 and min(losses) > math.log(2) - 1 / max(1, result.trials_used):
        return "no attack told the two datasets apart better than guessing"
    claim = result.claim
    if isinstance(claim, GaussianDP):
        proven, claimed, name = result.mu_lower, float(claim.mu()), "mu"
    else:
        own = isinstance(claim, PureDP | ApproxDP)
        delta = float(claim.parameters.get("delta", 0.0)) if own else ORDINARY_DELTA
        proven, claimed, name = float(result.epsilon_lower(delta)), float(claim.epsilon(delta)), "epsilon"
    if not claimed < math.inf or proven >= _WEAK * claimed:
        return ""
    return f"only {name} >= {lower(proven)} of {upper(claimed, 4)} is proven"


def summary_of(result: AuditResult, delta: float | None = None) -> str:
    """Return the verdict, what is proven, what was seen, and warnings, each on one line of plain text."""
    claim, rows = f"{result.claim.label}{result.scope}", result.bounds_at(delta)
    warnings = [words for words in result.warnings if words != MEASUREMENT]
    if result.measurement:
        verdict = "measurement, no claim was tested"
    else:
        verdict = {
            Verdict.VIOLATION: f"VIOLATION of {claim}",
            Verdict.NO_VIOLATION: f"no violation of {claim} found",
            Verdict.INCONCLUSIVE: f"inconclusive about {claim}",
        }[result.verdict]
    if warnings and not result.bounds_valid and given_scores(result.evidence) is not None:
        verdict = f"nothing is proven: {warnings.pop()}"
    confidence = f"confidence {percent_at_least(result.confidence)}".replace("\u00a0", " ")
    p = f"p <= {p_value_words(result)}, " if result.violated else ""
    bounds = certified_words(result)
    proven = "" if rows or not bounds else f"; {bounds}{' proven' if result.bounds_valid else ''}"
    assumed = f"; assumed, not tested: {words}" if (words := words_of(result.evidence).assumption) else ""
    runs = f"{spent(result.evidence, result.trials_used)} in {result.elapsed_s:.1f} s; {p}{confidence}{assumed}"
    lines = [f"{result.name}: {verdict}{proven}", f"  {runs}", *table_words(rows)]
    lines += [f"  {words}" for words in _seen(result) if words]
    if warnings:
        lines.append(f"  warning: {'; '.join(warnings)}")
    return "\n".join(map(one_line, lines))


def _seen(result: AuditResult) -> list[str]:
    """Return what confirms and shows a violation, or which violation would have been found, one line each."""
    if result.violated:
        shown = "" if result.witness is None else witness_words(result, result.witness)
        return ["; ".join(size_words(result)), shown]
    if result.measurement or not result.bounded:
        return []
    if why := weakness(result):
        return [f"could not see much: {why}; other pairs, attacks or more runs may show more"]
    seen = result.detectable
    if not seen.claim:
        return [seen.needed or "no violation of any size would have been found"]
    needed = f"; {seen.needed}" if seen.needed else ""
    return [f"would have been found with 90 % probability: {seen.claim}, {seen.assumption}{needed}"]
